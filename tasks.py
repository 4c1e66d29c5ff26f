"""Set up and run, with nothing but Python 3.11 or newer: python3 tasks.py TASK

Tasks: demo (the tour), test (all that CI runs), regenerate (rtl/ and luts/), setup (.venv only).
Everything is installed into .venv. The tests also need some programs of the system, which are
installed by apt-get where they are missing.
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


#: What the tests need of the system: program to packages.
JUDGES = {
    "g++": ["g++"],
    "iverilog": ["iverilog"],
    "ghdl": ["ghdl-mcode"],
    "tclsh": ["tcl"],
    # A page without a font is laid out without text.
    "chromium": ["chromium", "fonts-dejavu-core"],
}


def install_judges():
    """Install the programs that the tests hold our files against, where they are missing."""
    missing = {program: names for program, names in JUDGES.items() if not shutil.which(program)}
    if not missing:
        return
    if not shutil.which("apt-get"):
        sys.exit(f"tests need {', '.join(missing)} on the PATH, got none; please install them")
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    packages = [name for names in missing.values() for name in names]
    run(*sudo, "apt-get", "update", "-qq")
    run(*sudo, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)


def unpack_old_yosys():
    """Get the Yosys of the distribution (0.23 in Debian 12), which has to accept rtl/ as well.

    It is unpacked into .venv and not installed: on the PATH it would stand in for the newer one of
    pyosys. Where there is none, tools/accept.py says so and goes without.
    """
    folder = VENV / "judges"
    if not shutil.which("apt-get") or folder.exists():
        return
    folder.mkdir()
    for command in (
        ["apt-get", "download", "-qq", "yosys", "libtcl8.6", "libreadline8", "libffi8"],
        ["sh", "-c", "for package in *.deb; do dpkg -x $package .; done"],
    ):
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
        install_judges()
        unpack_old_yosys()
        run(PYTHON, "-m", "ruff", "check", ".")
        run(PYTHON, "-m", "ruff", "format", "--check", ".")
        run(PYTHON, "-m", "pytest", "-n", "auto", "--durations=10", *sys.argv[2:])
    elif task == "regenerate":
        run(PYTHON, "tools/regenerate.py")


if __name__ == "__main__":
    main()
