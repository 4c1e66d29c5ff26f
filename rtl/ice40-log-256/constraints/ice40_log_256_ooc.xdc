# Out-of-context clock of ice40_log_256: the period that its pipelines were laid out for.
# set_property USED_IN {synthesis implementation out_of_context} [get_files ice40_log_256_ooc.xdc]
create_clock -name aclk -period 25.000 [get_ports aclk]
