"""Constraints, and the project files of Vivado and Quartus that take the core in."""

from string import Template

_XDC = Template("""\
# Out-of-context clock of $top: the period that its pipelines were laid out for.
# set_property USED_IN {synthesis implementation out_of_context} [get_files $file]
create_clock -name $clock -period $period [get_ports $clock]
""")

_SDC = Template("""\
# Clock of $top: the period that its pipelines were laid out for.
create_clock -name $clock -period $period [get_ports $clock]
""")

_VIVADO = Template("""\
# Packages $top for the IP catalogue of Vivado, into the folder ip beside this file:
#
#   vivado -mode batch -source ${top}_package.tcl
#
# Ports are recognised as interfaces by their names; clock and reset are associated here.
set here [file dirname [file normalize [info script]]]
set root [file dirname $$here]

create_project -in_memory ${top}_package
foreach file {
$sources
} {
  add_files -norecurse [file join $$root {*}$$file]
}
add_files -fileset constrs_1 -norecurse [file join $$root constraints ${top}_ooc.xdc]
set_property USED_IN {synthesis implementation out_of_context} [get_files ${top}_ooc.xdc]
set_property top $top [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir [file join $$here ip] -vendor hwnorm -library norms \\
  -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property name $top $$core
set_property version 1.0 $$core
set_property display_name {$top} $$core
set_property description {$headline} $$core

ipx::infer_bus_interface $clock xilinx.com:signal:clock_rtl:1.0 $$core
ipx::infer_bus_interface $reset xilinx.com:signal:reset_rtl:1.0 $$core
foreach bus {$buses} {
  ipx::associate_bus_interfaces -busif $$bus -clock $clock $$core
}
ipx::associate_bus_interfaces -clock $clock -reset $reset $$core
set polarity [ipx::add_bus_parameter POLARITY [ipx::get_bus_interfaces $reset -of_objects $$core]]
set_property value ACTIVE_$level $$polarity

ipx::create_xgui_files $$core
ipx::update_checksums $$core
ipx::check_integrity $$core
ipx::save_core $$core
close_project
""")

_QIP = Template("""\
# Takes the core into a Quartus project: set_global_assignment -name QIP_FILE $top.qip
$lines""")


def constraint_files(design, top, style):
    """Clock constraints: an out-of-context XDC, and an SDC for the other tools.

    Returns
    -------
    dict of str to str
        Relative path to text.
    """
    file = f"{top}_ooc.xdc"
    values = {
        "top": top,
        "file": file,
        "clock": style.clock,
        "period": f"{design.period_ns:.3f}",
    }
    return {
        f"constraints/{file}": _XDC.substitute(values),
        f"constraints/{top}.sdc": _SDC.substitute(values),
    }


def project_files(design, top, style, sources, buses):
    """What brings the core into Vivado and into Quartus.

    Parameters
    ----------
    design : hwnorm.Norm
    top : str
    style : hwnorm.hdl.style.Style
    sources : list of str
        Relative paths of the Verilog file and of what it reads, the Verilog first.
    buses : list of str
        Names of the bus interfaces.

    Returns
    -------
    dict of str to str
        Relative path to text.
    """
    vivado = _VIVADO.substitute(
        top=top,
        headline=design.headline,
        sources="\n".join("  {" + path.replace("/", " ") + "}" for path in sources),
        clock=style.clock,
        reset=style.reset,
        buses=" ".join(buses),
        level="LOW" if style.reset_low else "HIGH",
    )
    kinds = {"v": "VERILOG_FILE", "sdc": "SDC_FILE"}
    lines = "".join(
        f"set_global_assignment -name {kinds.get(path.rpartition('.')[2], 'MISC_FILE')} "
        f'[file join $::quartus(qip_path) "../{path}"]\n'
        for path in [*sources, f"constraints/{top}.sdc"]
    )
    return {
        f"vivado/{top}_package.tcl": vivado,
        f"quartus/{top}.qip": _QIP.substitute(top=top, lines=lines),
    }
