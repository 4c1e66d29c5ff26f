# Clock of vit_layernorm_768: the period that its pipelines were laid out for.
create_clock -name aclk -period 6.000 [get_ports aclk]
