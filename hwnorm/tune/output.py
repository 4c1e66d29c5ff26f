"""Everything that a tuning writes into its folder."""

import json
from pathlib import Path

from hwnorm.design import dumps
from hwnorm.files import finite, write_tree
from hwnorm.tune.html import page, plotly_script
from hwnorm.tune.plots import draw_all
from hwnorm.tune.report import file_of, front_csv, tuning_data
from hwnorm.tune.views import View


def check_extras():
    """Raise ValueError unless what the output needs is installed."""
    from hwnorm.plots import new_figure

    new_figure()
    plotly_script()


def write_tuning(tuning, folder, cells=None):
    """Write the front, its designs, the pictures and the report.

    Designs of an earlier run are removed.

    Parameters
    ----------
    tuning : hwnorm.tune.Tuning
    folder : str or pathlib.Path
    cells : dict or None
        The synthesised front, of `hwnorm.tune.synth.measured_cells`.

    Returns
    -------
    list of str
        The files, relative to the folder.

    Raises
    ------
    ValueError
        If the folder cannot be written to.
    """
    folder = Path(folder)
    view = View.of(tuning)
    data = tuning_data(tuning) | ({"synthesised": cells} if cells else {})
    files = {
        "front.csv": front_csv(tuning),
        "front.json": json.dumps(finite(data), indent=1) + "\n",
        "report.html": page(tuning, view, cells),
    }
    for place, one in enumerate(tuning.front):
        files[file_of(place)] = dumps(tuning.design_of(one))
    for old in folder.glob("designs/point-*.toml"):
        if f"designs/{old.name}" not in files:
            old.unlink()
    write_tree(folder, files)
    return sorted([*files, *draw_all(tuning, view, folder)])
