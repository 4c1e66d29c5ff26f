"""The FuseSoC description of a bundle: a core with the targets default, sim and lint."""

import hwnorm


def core_text(design, top, rtl, tb, vlnv=None):
    """A core file (CAPI 2, flow API).

    Parameters
    ----------
    design : hwnorm.Norm
    top : str
    rtl, tb : list of str
        Relative paths of the sources and of the test bench; files that are no Verilog are
        copied to where the simulator runs.
    vlnv : str or None
        Name of the core; None: ``hwnorm:norms:TOP:VERSION``.

    Returns
    -------
    str
    """
    vlnv = vlnv or f"hwnorm:norms:{top}:{hwnorm.__version__}"
    return f"""\
CAPI=2:
name: {vlnv}
description: "{design.headline}"

filesets:
  rtl:
    files:
{_files(rtl)}\
  tb:
    files:
{_files(tb)}\

targets:
  default: &default
    filesets: [rtl]
    toplevel: {top}

  sim:
    <<: *default
    description: Self-checking test bench, prints PASS or FAIL
    filesets_append: [tb]
    toplevel: {top}_tb
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2005]
      # $stop, with which a failed test bench ends, is exit code 1.
      vvp_options: [-N]

  lint:
    <<: *default
    description: Verilator's warnings; the rules that are waived stand in the Verilog
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
"""


def _files(paths):
    lines = []
    for path in paths:
        name = path.rpartition("/")[2]
        # What is read by name lies where the tool runs.
        kind = "verilogSource-2005" if name.endswith(".v") else f"mem, copyto: {name}"
        lines.append(f"      - {path}: {{file_type: {kind}}}\n")
    return "".join(lines)
