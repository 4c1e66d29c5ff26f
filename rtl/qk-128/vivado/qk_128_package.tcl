# Packages qk_128 for the IP catalogue of Vivado, into the folder ip beside this file:
#
#   vivado -mode batch -source qk_128_package.tcl
#
# Ports are recognised as interfaces by their names; clock and reset are associated here.
set here [file dirname [file normalize [info script]]]
set root [file dirname $here]

create_project -in_memory qk_128_package
foreach file {
  {rtl qk_128.v}
} {
  add_files -norecurse [file join $root {*}$file]
}
add_files -fileset constrs_1 -norecurse [file join $root constraints qk_128_ooc.xdc]
set_property USED_IN {synthesis implementation out_of_context} [get_files qk_128_ooc.xdc]
set_property top qk_128 [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir [file join $here ip] -vendor hwnorm -library norms \
  -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property name qk_128 $core
set_property version 1.0 $core
set_property display_name {qk_128} $core
set_property description {rmsnorm, dim 128, 16 lanes, x s16/10, gamma s16/13, y s16/11, rsqrt linear} $core

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
