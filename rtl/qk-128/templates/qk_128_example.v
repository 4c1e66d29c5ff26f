// How qk_128 is instantiated: copy the instance, connect your own signals.
`timescale 1ns/1ps

module qk_128_example (
  input  wire aclk,
  input  wire aresetn,
  input  wire [255:0] s_axis_tdata,
  input  wire s_axis_tvalid,
  output wire s_axis_tready,
  input  wire s_axis_tlast,
  output wire [255:0] m_axis_tdata,
  output wire m_axis_tvalid,
  input  wire m_axis_tready,
  output wire m_axis_tlast,
  input  wire [255:0] s_axis_gamma_tdata,
  input  wire s_axis_gamma_tvalid,
  output wire s_axis_gamma_tready,
  input  wire s_axis_gamma_tlast,
  input  wire clear,
  output wire framing_error,
  output wire saturated
);
  qk_128 norm (
    .aclk(aclk),
    .aresetn(aresetn),
    .s_axis_tdata(s_axis_tdata),
    .s_axis_tvalid(s_axis_tvalid),
    .s_axis_tready(s_axis_tready),
    .s_axis_tlast(s_axis_tlast),
    .m_axis_tdata(m_axis_tdata),
    .m_axis_tvalid(m_axis_tvalid),
    .m_axis_tready(m_axis_tready),
    .m_axis_tlast(m_axis_tlast),
    .s_axis_gamma_tdata(s_axis_gamma_tdata),
    .s_axis_gamma_tvalid(s_axis_gamma_tvalid),
    .s_axis_gamma_tready(s_axis_gamma_tready),
    .s_axis_gamma_tlast(s_axis_gamma_tlast),
    .clear(clear),
    .framing_error(framing_error),
    .saturated(saturated)
  );
endmodule
