"""What all tests share: hypothesis tries the same examples on every run; a top of one's own."""

import pytest
from hypothesis import settings
from small import SMALL

from hwnorm import verilog
from hwnorm.hdl.axi import port_bits

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.load_profile("ci")


@pytest.fixture
def own(tmp_path):
    """A function that writes the exported Verilog inside of a top of one's own.

    Outputs are given as expressions of the original, which is named with an underscore behind;
    `age` counts clock edges. `ports` are (direction, bits) or None, to change or drop some.
    """

    def write(name="my_top", more="", ports=None, **outputs):
        inner = port_bits(SMALL)
        outer = {n: port for n, port in (inner | (ports or {})).items() if port}
        lines = [
            f"module {name}(",
            ",\n".join(_declare(n, *port) for n, port in outer.items()),
            ");",
        ]
        lines += ["reg [13:0] age = 0;", "always @(posedge aclk) age <= age + 1;", more]
        lines += [f"wire [{bits - 1}:0] {n}_;" for n, (_, bits) in inner.items()]
        for n, (way, _) in inner.items():
            if n in outer:
                lines.append(f"assign {n}_ = {n};" if way == "input" else
                             f"assign {n} = {outputs.get(n, n + '_')};")  # fmt: skip
        connected = ", ".join(f".{n}({n}_)" for n in inner)
        text = verilog(SMALL, "inner")
        path = tmp_path / f"{name}.v"
        path.write_text("\n".join([text, *lines, f"inner inner({connected});", "endmodule", ""]))
        return path

    return write


def _declare(name, direction, bits):
    return f"  {direction} [{bits - 1}:0] {name}"
