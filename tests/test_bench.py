"""What the engines do to the hardware before and beside its rows."""

import pytest
from small import GAMMA, SMALL, X

from hwnorm.bitexact import compare

ENGINES = ("verilator", "icarus")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "seen",
    [
        "if (s_axis_tvalid) busy <= 1; if (busy && !aresetn) seen <= 1;",
        "if (aresetn && !s_axis_tvalid && s_axis_tdata != 0 && s_axis_tlast) seen <= 1;",
        "busy <= s_axis_gamma_tvalid; if (age > 25 && age < 50 && busy && !s_axis_gamma_tvalid"
        " && s_axis_gamma_tdata != 0) seen <= 1;",
    ],
    ids=["reset in the midst of rows", "junk while idle", "junk in the gaps of a load"],
)
def test_the_bench_is_unkind(own, engine, seen):
    """A top that remembers a situation and shows it as a flag: the situation did occur."""
    path = own(more=f"reg busy = 0, seen = 0; always @(posedge aclk) begin {seen} end",
               saturated="seen")  # fmt: skip
    found = compare(SMALL, X, GAMMA, verilog=path, engine=engine, stall=0.4)
    assert found.flags == ["the flag saturated must be False, got True"]
