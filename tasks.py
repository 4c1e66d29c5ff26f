"""Set up and run, with nothing but Python 3.11 or newer: python3 tasks.py TASK

Tasks: demo (the tour), test (all that CI runs), regenerate (rtl/ and luts/), setup (.venv only).
Everything is installed into .venv. The tests also need Icarus Verilog, which is installed by
apt-get where it is missing; GHDL and the distribution's Yosys are tried, and used if they come.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"


def run(*command):
    """Run a command in the repository; stop with its exit code if it fails."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def setup():
    """Make .venv and install the package with what its tests need, once a pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_bytes()
    stamp, state = VENV / "installed", hashlib.sha256(text).hexdigest()
    if stamp.exists() and stamp.read_text() == state:
        return
    print("setting up .venv ...", file=sys.stderr)
    venv.create(VENV, with_pip=True, clear=True)
    needs = tomllib.loads(text.decode())["dependency-groups"]["test"]
    run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", ".", *needs)
    stamp.write_text(state)


def install_icarus():
    """Install Icarus Verilog where it is missing."""
    if shutil.which("iverilog"):
        return
    if not shutil.which("apt-get"):
        sys.exit("tests need Icarus Verilog (iverilog) on the PATH, got none; please install it")
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    run(*sudo, "apt-get", "update", "-qq")
    run(*sudo, "apt-get", "install", "-y", "-qq", "iverilog")


def try_more_judges():
    """Get GHDL and an old Yosys: more tools that have to accept what is written.

    Neither is required, so a failure is only said. The Yosys of the distribution (0.23 in
    Debian 12) is unpacked into .venv and not installed: on the PATH it would stand in for the
    newer one of pyosys.
    """
    if not shutil.which("apt-get") or (VENV / "judges").exists():
        return
    folder = VENV / "judges"
    folder.mkdir()
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    commands = [
        ["apt-get", "download", "-qq", "yosys", "libtcl8.6", "libreadline8", "libffi8"],
        ["sh", "-c", "for package in *.deb; do dpkg -x $package .; done"],
    ]
    if not shutil.which("ghdl"):
        commands.append([*sudo, "apt-get", "install", "-y", "-qq", "ghdl-mcode"])
    for command in commands:
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, check=False, timeout=120
            ).returncode
        except (OSError, subprocess.TimeoutExpired):
            done = 1
        if done:
            print(f"not available here: {' '.join(command)}", file=sys.stderr)


def main():
    """Run one task."""
    task = sys.argv[1] if len(sys.argv) > 1 else ""
    if task not in ("demo", "test", "regenerate", "setup"):
        sys.exit(__doc__)
    setup()
    if task == "demo":
        run(PYTHON, "-m", "hwnorm", "demo", *sys.argv[2:])
    elif task == "test":
        install_icarus()
        try_more_judges()
        run(PYTHON, "-m", "ruff", "check", ".")
        run(PYTHON, "-m", "ruff", "format", "--check", ".")
        run(PYTHON, "-m", "pytest", "-n", "auto", "--durations=10", *sys.argv[2:])
    elif task == "regenerate":
        run(PYTHON, "tools/regenerate.py")


if __name__ == "__main__":
    main()
