"""Set up and run, with nothing but Python 3.11 or newer: python3 tasks.py TASK

Tasks: demo (the tour), test (all that CI runs), regenerate (rtl/ and luts/), setup (.venv only).
Everything is installed into .venv. The tests also need Icarus Verilog and Chromium, which are
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


def install_programs():
    """Install Icarus Verilog, and Chromium for the tuning report, where they are missing."""
    lacking = [name for name in ("iverilog", "chromium") if not shutil.which(name)]
    if not lacking:
        return
    if not shutil.which("apt-get"):
        sys.exit(f"tests need {' and '.join(lacking)} on the PATH, got none; please install them")
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    # A page without a font is laid out without text.
    packages = [*lacking, *(["fonts-dejavu-core"] if "chromium" in lacking else [])]
    run(*sudo, "apt-get", "update", "-qq")
    run(*sudo, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)


def main():
    """Run one task."""
    task = sys.argv[1] if len(sys.argv) > 1 else ""
    if task not in ("demo", "test", "regenerate", "setup"):
        sys.exit(__doc__)
    setup()
    if task == "demo":
        run(PYTHON, "-m", "hwnorm", "demo", *sys.argv[2:])
    elif task == "test":
        install_programs()
        run(PYTHON, "-m", "ruff", "check", ".")
        run(PYTHON, "-m", "ruff", "format", "--check", ".")
        run(PYTHON, "-m", "pytest", "-n", "auto", "--durations=10", *sys.argv[2:])
    elif task == "regenerate":
        run(PYTHON, "tools/regenerate.py")


if __name__ == "__main__":
    main()
