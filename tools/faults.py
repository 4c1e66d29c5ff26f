"""Put faults into exported Verilog and count how many a bit-exact simulation with stalls notices.

python tools/faults.py [--faults N] [--seed N]

The designs are small and have every part: sums, solve, apply, row buffer, parameters. A fault is
a change of one place in the text, drawn at random (seeded) so that every kind and every module
has its share. What is not noticed is printed, with its line before and after.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
import numpy as np

from hwnorm import LayerNorm, RMSNorm, Rsqrt, verilog
from hwnorm.bitexact import compare
from hwnorm.rows import corner_rows, random_rows

#: Rows of two beats, where rows overlap most; rows of many; the log domain.
DESIGNS = {
    "rms": RMSNorm(dim=6, lanes=3, x="s10/6", gamma="s9/7", y="s10/6"),
    "layer": LayerNorm(dim=12, lanes=2, x="s12/6", gamma="s9/7", beta="s8/4", y="s10/5"),
    "log": RMSNorm(dim=8, lanes=2, x="s9/4", gamma="s8/6", y="s9/5", rsqrt=Rsqrt("log")),
}

#: Kind of fault to a pattern and what becomes of it. Only right sides of assignments and
#: conditions are touched, so that the text stays Verilog.
FAULTS = {
    "swapped operands": (r"(?<== )([\w\[\]:]+) - ([\w\[\]:]+);", r"\2 - \1;"),
    "minus for plus": (r" \+ ", " - "),
    "plus for minus": (r" - (?=\w)", " + "),
    "product off by one": (r" \* ([\w\[\]:$()]+);", r" * \1 + 1'h1;"),
    "or for and": (r" & ", " | "),
    "and for or": (r" \| ", " & "),
    "dropped term of an and": (r"(?<=[ =(])(\w+) & (?=[\w~])", ""),
    "missing inversion": (r"~(?=\w)", ""),
    "swapped choice": (r" \? ([^:?;]+) : ([^:?;]+);", r" ? \2 : \1;"),
    "slice a bit up": (r"(\w+)\[(\d+):(\d+)\]", None),
    "bit off by one": (r"(\w+)\[(\d+)\](?!:)", None),
    "shift off by one": (r"(>>>?|<<) (?=\w)", r"\1 1 + "),
    "equal for less": (r" < ", " <= "),
    "unequal for equal": (r" == ", " != "),
    "constant off by one": (r"(\d+)'h([0-9a-f]+)(?=[;, )])", None),
    "lost reset": (r"^    if \(rst\) begin$", "    if (1'h0) begin"),
    "lost reset of a register": (r"^    if \(rst\) (\w+) <= [^\n]*$", r"    ;"),
    "reset to another value": (r"(?<=rst\) )(\w+) <= (\d+)'h0;", r"\1 <= \2'h1;"),
    "lost register": (r"always @\(posedge aclk\)(?=\n    \w+ <=)", "always @*"),
    "wrong edge": (r"always @\(posedge aclk\)", "always @(negedge aclk)"),
    "lost write enable": (r"^    if \((\w+)\)\n      (\w+\[)", r"    begin\n      \2"),
}


def _shifted(kind, found):
    """The faults that need arithmetic on what was found."""
    if kind == "slice a bit up":
        name, high, low = found[1], int(found[2]), int(found[3])
        return f"{name}[{high}:{low + 1}]" if low < high else found[0]
    if kind == "bit off by one":
        return f"{found[1]}[{max(int(found[2]) - 1, 0)}]"
    bits, value = int(found[1]), int(found[2], 16)
    return f"{bits}'h{(value + 1) % (1 << bits):x}"


def sites(text):
    """Every possible fault: kind, start, end, new text."""
    found = []
    for kind, (pattern, new) in FAULTS.items():
        for match in re.finditer(pattern, text, re.M):
            changed = match.expand(new) if new is not None else _shifted(kind, match)
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            # Comments, declarations and initial contents (tables have rows enough of their own).
            if changed == match[0] or re.match(
                r"\s*(//|wire|reg|input|output|initial|module)", line
            ):
                continue
            found.append((kind, match.start(), match.end(), changed))
    return found


def draw(rng, count):
    """Faults of all designs, so that every kind has about the same share."""
    texts = {name: verilog(design, "dut") for name, design in DESIGNS.items()}
    pools = {}
    for name, text in texts.items():
        for kind, *place in sites(text):
            pools.setdefault(kind, []).append((name, kind, *place))
    for pool in pools.values():
        rng.shuffle(pool)
    drawn = []
    while len(drawn) < count and any(pools.values()):
        drawn += [pool.pop() for pool in pools.values() if pool]
    return texts, [(str(n), str(k), int(a), int(b), str(t)) for n, k, a, b, t in drawn[:count]]


#: Share and pattern of stalls; each with parameters of its own.
RUNS = ((0.4, "random"), (0.6, "bursty"), (0.0, "random"), (0.2, "random")) * 3


def notice(design, text, folder):
    """Why a text is refused; empty if it passes."""
    path = folder / "dut.v"
    path.write_text(text, encoding="utf-8")
    x = np.concatenate([corner_rows(design), random_rows(design, 200)])
    for seed, (stall, pattern) in enumerate(RUNS):
        rng = np.random.default_rng(seed)
        given = {n: rng.integers(f.lo, f.hi + 1, design.dim) for n, f in design.parameters.items()}
        given["gamma"][:3] = 0, design.gamma.lo, design.gamma.hi
        try:
            found = compare(
                design, x, **given, verilog=path, engine="icarus", stall=stall, pattern=pattern,
                seed=seed,
            )  # fmt: skip
        except ValueError as error:
            return f"does not compile: {str(error).splitlines()[-1].strip()}"
        if not found.bit_exact:
            return found.summary.splitlines()[0]
        if not stall and found.result.latency_cycles != design.latency:
            return f"latency is {found.result.latency_cycles}, not {design.latency}"
        if not stall and found.result.beats_per_cycle != 1:
            return f"{found.result.beats_per_cycle:.3f} beats a cycle"
    return ""


#: After so long a proof is given up.
PATIENCE_SECONDS = 60

#: Proves that a fault changes no register's next value and no output of its module: flattened,
#: with memories as registers, what has the same name is taken to be equal, but for the names that
#: `differing` lists, and then so must be what drives it.
EQUIVALENCE = """
read_verilog gold.v; prep -flatten -top {top}; memory_map; opt_clean; rename {top} gold
design -stash gold
read_verilog gate.v; prep -flatten -top {top}; memory_map; opt_clean; rename {top} gate
design -stash gate
design -copy-from gold -as gold gold; design -copy-from gate -as gate gate
equiv_make -blacklist differing gold gate equiv; hierarchy -top equiv; opt_clean
equiv_simple; equiv_induct -seq 3; equiv_status -assert
"""


def is_equivalent(text, changed, module, folder):
    """Whether a fault is none: proven, in the time there is.

    A wire inside may differ, as long as nothing that it drives does: what cannot be proven is no
    longer taken to be equal, and so on until all is proven or an output is left.
    """
    (folder / "gold.v").write_text(text, encoding="utf-8")
    (folder / "gate.v").write_text(changed, encoding="utf-8")
    (folder / "run.ys").write_text(EQUIVALENCE.format(top=module), encoding="utf-8")
    body = re.search(rf"^module {module}\(.*?^endmodule", text, re.M | re.S)[0]
    outputs = set(re.findall(r"^ *output (?:reg )?(?:\[\d+:0\] )?(\w+);", body, re.M))
    # A pass that fails ends the process.
    code = "from pyosys import libyosys as y; y.run_pass('script run.ys', y.Design())"
    differing, end = set(), time.monotonic() + PATIENCE_SECONDS
    while not differing & outputs:
        (folder / "differing").write_text("".join(f"\\{name}\n" for name in differing))
        try:
            done = subprocess.run(
                [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True,
                check=False, timeout=max(end - time.monotonic(), 1),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        if done.returncode == 0:
            return True
        more = set(re.findall(r"Unproven \$equiv \S+ \\(\S+)_gold", done.stdout))
        if more <= differing:
            return False
        differing |= more
    return False


@click.command()
@click.option("--faults", default=150, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--verbose", is_flag=True, help="Also say what noticed each fault.")
def main(faults, seed, verbose):
    """Draw faults, simulate each, print what is not noticed and the shares by kind."""
    texts, drawn = draw(np.random.default_rng(seed), faults)
    total, caught, equivalent = Counter(), Counter(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = name
        for design, text in texts.items():
            assert not notice(DESIGNS[design], text, folder), "the text itself must pass"
        for design, kind, start, end, new in drawn:
            text = texts[design]
            changed = text[:start] + new + text[end:]
            why = notice(DESIGNS[design], changed, folder)
            if why.startswith("does not compile"):
                continue
            module = re.findall(r"^module (\w+)", text[:start], re.M)[-1]
            if not why and is_equivalent(text, changed, module, folder):
                equivalent += 1
                continue
            total[kind] += 1
            caught[kind] += bool(why)
            if verbose or not why:
                # A condition or an edge is shown with what hangs on it.
                stop = text.index("\n", end)
                if text[:stop].endswith(("begin", "aclk)")):
                    stop = text.index("\n", stop + 1)
                line = slice(text.rfind("\n", 0, start) + 1, stop)
                click.echo(f"{'noticed' if why else 'NOT NOTICED'}: {kind} in {design} {module}")
                click.echo(f"  - {text[line].strip():.300}")
                click.echo(
                    f"  + {(text[line.start : start] + new + text[end : line.stop]).strip():.300}"
                )
                if why:
                    click.echo(f"  {why:.200}")
    for kind, count in total.items():
        click.echo(f"{caught[kind]:4} of {count:3}  {kind}")
    click.echo(f"{sum(caught.values()):4} of {sum(total.values()):3}  faults noticed")
    click.echo(f"{equivalent} more change nothing, by proof")


if __name__ == "__main__":
    main()
