# Packages ice40_log_256 for the IP catalogue of Vivado, into the folder ip beside this file:
#
#   vivado -mode batch -source ice40_log_256_package.tcl
#
# Ports are recognised as interfaces by their names; clock and reset are associated here.
set here [file dirname [file normalize [info script]]]
set root [file dirname $here]

create_project -in_memory ice40_log_256_package
foreach file {
  {rtl ice40_log_256.v}
} {
  add_files -norecurse [file join $root {*}$file]
}
add_files -fileset constrs_1 -norecurse [file join $root constraints ice40_log_256_ooc.xdc]
set_property USED_IN {synthesis implementation out_of_context} [get_files ice40_log_256_ooc.xdc]
set_property top ice40_log_256 [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir [file join $here ip] -vendor hwnorm -library norms \
  -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property name ice40_log_256 $core
set_property version 1.0 $core
set_property display_name {ice40_log_256} $core
set_property description {rmsnorm, dim 256, 1 lane, x s8/4, gamma s8/6, y s8/4, rsqrt log} $core

ipx::infer_bus_interface aclk xilinx.com:signal:clock_rtl:1.0 $core
ipx::infer_bus_interface aresetn xilinx.com:signal:reset_rtl:1.0 $core
foreach bus {s_axis m_axis s_axis_gamma} {
  ipx::associate_bus_interfaces -busif $bus -clock aclk $core
}
ipx::associate_bus_interfaces -clock aclk -reset aresetn $core
set polarity [ipx::add_bus_parameter POLARITY [ipx::get_bus_interfaces aresetn -of_objects $core]]
set_property value ACTIVE_LOW $polarity

ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
close_project
