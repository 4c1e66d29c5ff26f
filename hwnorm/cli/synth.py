"""The command synth: cells and clock of a design."""

from pathlib import Path

import click

from hwnorm.cli.base import (
    CheckError,
    as_json,
    commands,
    design_argument,
    print_result,
    progress_bar,
)
from hwnorm.design import load
from hwnorm.files import write_bytes


@commands.command()
@design_argument
@click.option("--target", required=True, help="FPGA family: ecp5, ice40, xc7 or gowin.")
@click.option("--device", help="One of the family's; without, its first.")
@click.option("--pnr", is_flag=True, help="Also place and route, for the clock rate.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Of --pnr.")
@click.option("--period", type=float, metavar="NS", help="To be reached; exit code 1 if not.")
@click.option("--bitstream", metavar="FILE", help="Pack the placed loopback (ecp5, ice40).")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="At a time.")
@click.option("--no-cache", is_flag=True, help="Neither look up results nor keep them.")
@as_json
def synth(design, target, device, pnr, seeds, period, bitstream, jobs, no_cache, as_json):
    """Cells of DESIGN on an FPGA family, and with --pnr its clock rate."""
    # Yosys and nextpnr's wrappers are needed by this command only.
    from hwnorm.synth.run import steps, synthesise

    design = load(design)
    pnr = pnr or bitstream is not None
    if not pnr:
        for option, given in (("--seeds", seeds > 1), ("--period", period is not None)):
            if given:
                raise ValueError(f"{option} goes with --pnr, got it without")
    if bitstream and Path(bitstream).is_dir():
        raise ValueError(f"bitstream {bitstream} must be a file, got a folder")
    with progress_bar(steps(pnr, seeds), f"synth {target}") as bar:
        result = synthesise(
            design,
            target,
            device,
            pnr,
            seeds,
            period,
            bitstream=bitstream is not None,
            jobs=jobs,
            cache=not no_cache,
            progress=bar.update,
        )
    if bitstream:
        write_bytes(bitstream, result.bitstream)
    print_result(as_json, result.to_dict(), f"{design.headline}\n{result.to_text()}")
    if not result.meets:
        raise CheckError(
            f"period must be reachable, got {period:g} ns: best "
            f"{1000 / result.fmax_best_mhz:.2f} ns ({result.fmax_best_mhz:.1f} MHz), limited by "
            f"{result.limiting}"
        )
