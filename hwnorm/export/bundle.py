"""The folder that ``hwnorm verilog`` writes: RTL, test benches, and files for other tools."""

import hashlib
import json
import os
from pathlib import Path

from hwnorm.design import dumps
from hwnorm.export.bench_axilite import header
from hwnorm.export.cocotb_test import cocotb_files
from hwnorm.export.constraints import constraint_files, project_files
from hwnorm.export.fusesoc import core_text
from hwnorm.export.readme import readme
from hwnorm.export.tables import coe_words, design_tables, json_text, mem_words, mif_words
from hwnorm.export.templates import template_files
from hwnorm.export.testbench import testbench
from hwnorm.files import finite, write_tree
from hwnorm.hdl.axilite import registers
from hwnorm.hdl.style import Style
from hwnorm.hdl.verilog import WAIVERS, export, top_name
from hwnorm.measure import measure

#: What simulators leave behind in a bundle's folders: nobody's work is lost with it.
LEFT_BEHIND = {"build", "__pycache__", ".pytest_cache", "tb.vvp", "results.xml"}


def bundle(design, name, x, gamma=None, beta=None, style=None, vlnv=None):
    """The files of a design's bundle.

    Parameters
    ----------
    design : hwnorm.Norm
    name : str
        Becomes the name of the top module.
    x : numpy.ndarray of int, (rows, dim)
        Stimuli of the test bench, and what the manifest's accuracy is measured on.
    gamma, beta : numpy.ndarray of int or None, (dim,)
    style : hwnorm.hdl.Style or None
        Attributes, tables, names of clock and reset.
    vlnv : str or None
        Name of the FuseSoC core; None: ``hwnorm:norms:TOP:VERSION``.

    Returns
    -------
    dict of str to str
        Relative path to text; the same for the same arguments.
    """
    style = style or Style()
    top = top_name(name)
    made = export(design, top, style)
    contents, shell = made.contents, made.shell
    files = {f"rtl/{top}.v": made.text, "design.toml": dumps(design)}
    tables = {f"{file}.mem": mem_words(c.values, c.width) for file, c in contents.items()}
    files |= {f"rtl/{file}": text for file, text in tables.items()}
    for file, c in contents.items():
        files[f"rtl/{file}.coe"] = coe_words(c.values, c.width)
        files[f"rtl/{file}.mif"] = mif_words(c.values, c.width)
    bench = testbench(design, top, x, gamma, beta, style)
    # Simulators look for tables where they run.
    for file, text in (bench | tables | cocotb_files(design, top, style)).items():
        files[f"tb/{file}"] = text
    rtl = [f"rtl/{top}.v", *(f"rtl/{file}" for file in tables)]
    files[f"{top}.core"] = core_text(design, top, rtl, [f"tb/{file}" for file in bench], vlnv)
    files |= constraint_files(design, top, style)
    files |= project_files(design, top, style, rtl, shell.bus_names)
    files |= template_files(design, top, shell)
    if design.control == "axilite":
        files[f"software/{top}_regs.h"] = header(design, top)
    files["README.md"] = readme(design, top, style, shell, files)
    facts = finite(manifest(design, top, x, gamma, beta))
    if design.control == "axilite":
        facts["registers"] = {r.name: r.offset for r in registers(design)}
    facts |= {
        "profile": style.profile,
        "table_files": style.tables,
        "clock": style.clock,
        "reset": style.reset,
        "reset_active_low": style.reset_low,
        "files": {path: checksum(text) for path, text in sorted(files.items())},
    }
    files["manifest.json"] = json.dumps(facts, indent=2) + "\n"
    return files


def checksum(text):
    """What the manifest says of a file."""
    return hashlib.sha256(text.encode()).hexdigest()


def manifest(design, top, x, gamma=None, beta=None):
    """What a script wants to know of a design and its accuracy, as a dict for JSON."""
    report = measure(design, x, gamma, beta).all
    return {
        "top": top,
        "norm": design.kind,
        "dim": design.dim,
        "dim_max": design.dim_max,
        "lanes": design.lanes,
        "eps": design.eps,
        "formats": {
            field: fmt.spelling
            for field in ("x", "gamma", "beta", "y")
            if (fmt := getattr(design, field)) is not None
        },
        "rsqrt_method": design.rsqrt.method,
        "parameter_store": design.store if design.parameters else None,
        "control": design.control,
        "ready": design.ready,
        "clock_enable": design.clock_enable,
        "latency_cycles": design.latency,
        "beats_per_row": design.beats,
        "cycles_per_beat": 1,
        "target": design.target,
        "period_ns": design.period_ns,
        "bound_ulp": round(design.bound_ulp, 6),
        "measured": {
            "rows": report.rows,
            "max_ulp": round(report.max_ulp, 6),
            "rms_ulp": round(report.rms_ulp, 6),
            "sqnr_db": round(report.sqnr_db, 3),
            "ideal_sqnr_db": round(report.ideal_sqnr_db, 3),
            "misrounded": report.misrounded
            if report.misrounded is None
            else round(report.misrounded, 6),
            "saturated": report.saturated,
        },
        "tables": {
            name: {
                "sha256": hashlib.sha256(json_text(table).encode()).hexdigest(),
                "rom_bits": table.rom_bits,
                "segments": table.segments,
                "max_error": float(f"{table.max_error:.6e}"),
            }
            for name, table in design_tables(design).items()
        },
        "lint_waivers": WAIVERS,
    }


def own_files(folder):
    """The files in a folder that a bundle wrote and nobody has changed since.

    Parameters
    ----------
    folder : str or pathlib.Path

    Returns
    -------
    list of str
        Relative paths.
    """
    folder = Path(folder)
    try:
        facts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        written = sorted(dict(facts["files"]).items())
    except (OSError, ValueError, KeyError, TypeError):
        return []
    own = ["manifest.json"]
    for name, expected in written:
        path = folder / name
        inside = path.resolve().is_relative_to(folder.resolve())
        try:
            if inside and hashlib.sha256(path.read_bytes()).hexdigest() == expected:
                own.append(name)
        except OSError:
            continue
    return sorted(own)


def first_foreign(folder, own):
    """The first file in a folder that is not among `own` nor left behind by a simulator, or None.

    It is looked for no further: the folder may be anything.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - LEFT_BEHIND)
        for name in sorted(set(names) - LEFT_BEHIND):
            path = (Path(place) / name).relative_to(folder).as_posix()
            if path not in own:
                return path
    return None


def write_bundle(design, folder, name, x, gamma=None, beta=None, style=None, force=False):
    """Write a design's bundle into a folder; returns the relative paths.

    Files of an earlier bundle are replaced, and those that the new one does not have are removed.

    Parameters
    ----------
    folder : str or pathlib.Path
    force : bool
        Also write if the folder holds other files, or files of a bundle that were changed. Those
        of the same name are replaced, the others stay.

    Raises
    ------
    ValueError
        If the folder holds such files and `force` is not given, or cannot be written to.
    """
    own = own_files(folder)
    if not force and (foreign := first_foreign(folder, own)):
        raise ValueError(
            f"output {folder} must hold nothing but an earlier bundle, unless --force is given, "
            f"got {foreign}"
        )
    files = bundle(design, name, x, gamma, beta, style)
    write_tree(folder, files)
    for path in set(own) - set(files):
        (Path(folder) / path).unlink(missing_ok=True)
    return sorted(files)
