// Self-checking test bench of ice40_log_256: feeds stim.mem, compares with gold.mem.
//
//   iverilog -g2005 -o tb.vvp ice40_log_256_tb.v ../rtl/ice40_log_256.v && vvp -N tb.vvp
//
// Plusargs: +stall=PERCENT (default 30) random gaps on both sides, +seed=N, +vcd=FILE.
// Prints PASS or FAIL. On failure it ends with $stop, which `vvp -N` turns into exit code 1.
`timescale 1ns/1ps

module ice40_log_256_tb;
  localparam ROWS = 16;
  localparam BEATS = 256;
  localparam TOTAL = ROWS * BEATS;
  localparam LATENCY = 298;

  reg aclk = 0;
  reg aresetn = 0;
  reg clear = 0;
  wire framing_error, saturated;

  reg  [7:0] s_axis_tdata = 0;
  reg  s_axis_tvalid = 0, s_axis_tlast = 0;
  wire s_axis_tready;
  wire [7:0] m_axis_tdata;
  wire m_axis_tvalid, m_axis_tlast;
  reg  m_axis_tready = 0;
  reg  [7:0] s_axis_gamma_tdata = 0;
  reg  s_axis_gamma_tvalid = 0, s_axis_gamma_tlast = 0;
  wire s_axis_gamma_tready;

  ice40_log_256 dut (
    .aclk(aclk), .aresetn(aresetn),
    .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
    .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast),
    .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid),
    .m_axis_tready(m_axis_tready), .m_axis_tlast(m_axis_tlast),
    .s_axis_gamma_tdata(s_axis_gamma_tdata),
    .s_axis_gamma_tvalid(s_axis_gamma_tvalid),
    .s_axis_gamma_tready(s_axis_gamma_tready),
    .s_axis_gamma_tlast(s_axis_gamma_tlast),
    .clear(clear), .framing_error(framing_error), .saturated(saturated)
  );

  reg [7:0] stim [0:TOTAL-1];
  reg [7:0] gold [0:TOTAL-1];
  reg [7:0] gamma [0:BEATS-1];

  integer stall, seed, cycle, sent, got, wrong, started, first, first_out, limit;
  reg [7:0] held;
  reg held_last, held_valid;
  reg [8*256-1:0] vcd;

  always #12.5 aclk = ~aclk;

  // The source holds a beat until it is taken; the sink takes beats at random.
  task next_beat;
    begin
      if (sent < TOTAL && $unsigned($random(seed)) % 100 >= stall) begin
        s_axis_tvalid <= 1;
        s_axis_tdata <= stim[sent];
        s_axis_tlast <= (sent % BEATS) == BEATS - 1;
        sent = sent + 1;
      end else begin
        s_axis_tvalid <= 0;
      end
    end
  endtask

  task complain;
    input [8*24-1:0] what;
    begin
      wrong = wrong + 1;
      if (wrong <= 10)
        $display("row %0d beat %0d, cycle %0d: %0s, got %h, expected %h", got / BEATS,
                 got % BEATS, cycle, what, m_axis_tdata, got < TOTAL ? gold[got] : held);
    end
  endtask

  always @(posedge aclk) if (started) begin
    cycle = cycle + 1;
    if (!s_axis_tvalid || s_axis_tready) next_beat;
    if (first < 0 && s_axis_tvalid && s_axis_tready) first = cycle;
    m_axis_tready <= $unsigned($random(seed)) % 100 >= stall;
    if (m_axis_tvalid !== 1'b0 && m_axis_tvalid !== 1'b1) complain("valid is unknown");
    if (held_valid && (!m_axis_tvalid || m_axis_tdata !== held || m_axis_tlast !== held_last))
      complain("a stalled beat changed");
    held = m_axis_tdata;
    held_last = m_axis_tlast;
    held_valid = m_axis_tvalid && !m_axis_tready;
    if (m_axis_tvalid && m_axis_tready) begin
      if (got >= TOTAL) complain("a beat too many");
      else begin
        if (m_axis_tdata !== gold[got]) complain("data differs");
        if (m_axis_tlast !== ((got % BEATS) == BEATS - 1)) complain("last differs");
      end
      if (got == 0) first_out = cycle;
      got = got + 1;
      if (got == TOTAL) $display("%0d beats in %0d cycles", TOTAL, cycle - first + 1);
    end
  end

  integer n;
  initial begin
    stall = 30;
    seed = 1;
    cycle = 0; sent = 0; got = 0; wrong = 0; started = 0; held_valid = 0;
    first = -1; first_out = -1;
    if ($value$plusargs("stall=%d", n)) stall = n;
    if ($value$plusargs("seed=%d", n)) seed = n;
    if ($value$plusargs("vcd=%s", vcd)) begin
      $dumpfile(vcd);
      $dumpvars(0, ice40_log_256_tb);
    end
    if (stall < 0 || stall > 99) begin
      $display("FAIL: +stall must lie in 0..99");
      $stop;
    end
    limit = 1000 + 4 * (TOTAL + LATENCY) * (100 / (100 - stall)) * (100 / (100 - stall) + 1);
    $readmemh("stim.mem", stim);
    $readmemh("gold.mem", gold);
    $readmemh("gamma.mem", gamma);
    repeat (4) @(posedge aclk);
    aresetn <= 1;
    @(posedge aclk);
    for (n = 0; n < BEATS; n = n + 1) begin
      s_axis_gamma_tvalid <= 1;
      s_axis_gamma_tdata <= gamma[n];
      s_axis_gamma_tlast <= n == BEATS - 1;
      @(posedge aclk);
      while (!s_axis_gamma_tready) @(posedge aclk);
    end
    s_axis_gamma_tvalid <= 0;
    repeat (8) @(posedge aclk);
    started = 1;
    n = 0;
    // Some cycles more, so that a beat too many is seen.
    while (n < 64 && cycle < limit) begin
      @(posedge aclk);
      if (got >= TOTAL) n = n + 1;
    end
    if (got != TOTAL) begin
      wrong = wrong + 1;
      $display("%0d of %0d beats came in %0d cycles", got, TOTAL, cycle);
    end
    // Without stalls the first beat comes exactly when it is promised.
    if (stall == 0 && first_out - first != LATENCY) begin
      wrong = wrong + 1;
      $display("latency is %0d cycles, expected %0d", first_out - first, LATENCY);
    end
    if (framing_error !== 1'b0) begin
      wrong = wrong + 1;
      $display("framing_error is set");
    end
    if (saturated !== 1'b1) begin
      wrong = wrong + 1;
      $display("saturated is %b, expected 1", saturated);
    end
    if (wrong != 0) begin
      $display("FAIL: %0d errors", wrong);
      $stop;
    end else begin
      $display("PASS: %0d rows of %0d elements", ROWS, 256);
      $finish;
    end
  end
endmodule
