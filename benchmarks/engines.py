"""Cycles a second of the simulation engines, on one design in one run.

python benchmarks/engines.py [--preset NAME]
"""

import time

import click
import numpy as np

from hwnorm import model, simulate
from hwnorm.design import CATALOGUE
from hwnorm.rows import random_rows

#: Rows that take each engine a second or so.
ROWS = {"pysim": 20, "icarus": 100, "cxxrtl": 20000, "verilator": 20000}


@click.command()
@click.option("--preset", default="tiny-64", show_default=True)
def main(preset):
    """Measure and print a line an engine; building is timed apart."""
    design = CATALOGUE[preset]
    for engine, rows in ROWS.items():
        x = random_rows(design, rows)
        start = time.perf_counter()
        simulate(design, x[:1], engine=engine)
        built = time.perf_counter()
        result = simulate(design, x, engine=engine)
        seconds = time.perf_counter() - built
        assert np.array_equal(result.y, model(design, x))
        click.echo(
            f"{engine:<10} {result.cycles / seconds:12,.0f} cycles/s, {rows / seconds:9,.0f} "
            f"rows/s; first row after {built - start:.1f} s"
        )


if __name__ == "__main__":
    main()
