# Clock of ice40_log_256: the period that its pipelines were laid out for.
create_clock -name aclk -period 25.000 [get_ports aclk]
