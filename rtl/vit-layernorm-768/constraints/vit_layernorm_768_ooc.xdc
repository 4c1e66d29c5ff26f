# Out-of-context clock of vit_layernorm_768: the period that its pipelines were laid out for.
# set_property USED_IN {synthesis implementation out_of_context} [get_files vit_layernorm_768_ooc.xdc]
create_clock -name aclk -period 6.000 [get_ports aclk]
