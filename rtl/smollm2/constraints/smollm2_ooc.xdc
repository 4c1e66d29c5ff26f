# Out-of-context clock of smollm2: the period that its pipelines were laid out for.
# set_property USED_IN {synthesis implementation out_of_context} [get_files smollm2_ooc.xdc]
create_clock -name aclk -period 5.500 [get_ports aclk]
