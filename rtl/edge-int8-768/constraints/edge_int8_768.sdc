# Clock of edge_int8_768: the period that its pipelines were laid out for.
create_clock -name aclk -period 5.500 [get_ports aclk]
