"""The folder that ``hwnorm verilog`` writes: RTL, test bench, manifest."""

import hashlib
import json

from hwnorm.design import dumps
from hwnorm.export.cocotb_test import cocotb_files
from hwnorm.export.tables import design_tables, json_text
from hwnorm.export.testbench import testbench
from hwnorm.files import finite, write_tree
from hwnorm.hdl.verilog import WAIVERS, top_name, verilog
from hwnorm.measure import measure


def bundle(design, name, x, gamma=None, beta=None):
    """The files of a design's bundle.

    Parameters
    ----------
    design : hwnorm.Norm
    name : str
        Becomes the name of the top module.
    x : numpy.ndarray of int, (rows, dim)
        Stimuli of the test bench, and what the manifest's accuracy is measured on.
    gamma, beta : numpy.ndarray of int or None, (dim,)

    Returns
    -------
    dict of str to str
        Relative path to text; the same for the same arguments.
    """
    top = top_name(name)
    files = {f"rtl/{top}.v": verilog(design, top), "design.toml": dumps(design)}
    benches = testbench(design, top, x, gamma, beta) | cocotb_files(design, top)
    for file, text in benches.items():
        files[f"tb/{file}"] = text
    facts = finite(manifest(design, top, x, gamma, beta))
    files["manifest.json"] = json.dumps(facts, indent=2) + "\n"
    return files


def manifest(design, top, x, gamma=None, beta=None):
    """What a script wants to know of a bundle, as a dict for JSON."""
    report = measure(design, x, gamma, beta).all
    return {
        "top": top,
        "norm": design.kind,
        "dim": design.dim,
        "lanes": design.lanes,
        "eps": design.eps,
        "formats": {
            field: fmt.spelling
            for field in ("x", "gamma", "beta", "y")
            if (fmt := getattr(design, field)) is not None
        },
        "rsqrt_method": design.rsqrt.method,
        "parameter_store": design.store if design.parameters else None,
        "latency_cycles": design.latency,
        "beats_per_row": design.beats,
        "cycles_per_beat": 1,
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


def write_bundle(design, folder, name, x, gamma=None, beta=None):
    """Write a design's bundle into a folder; returns the relative paths."""
    files = bundle(design, name, x, gamma, beta)
    write_tree(folder, files)
    return sorted(files)
