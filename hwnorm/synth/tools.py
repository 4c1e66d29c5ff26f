"""The programs that are run: where they are, which version, and each in a process of its own."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata, util

#: The oldest Yosys on the path that is used where the wheel is missing: what Amaranth's
#: Verilog needs, and the one that writes $scopeinfo and names cells after wires.
OLDEST_YOSYS = (0, 40)
#: Likewise of nextpnr: older ones do not take today's netlists or write no JSON report.
OLDEST_NEXTPNR = (0, 6)

INSTALL = "pip install hwnorm[synth]"

# A failing pass of Yosys ends the whole process.
_YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""

_YOWASP = "import sys, {module} as tool; sys.exit(tool.{function}(sys.argv[1:]))"


@dataclass(frozen=True)
class Tool:
    """A program.

    Parameters
    ----------
    name : str
        With its version, as results state it.
    command : tuple of str
        What its arguments are put behind.
    """

    name: str
    command: tuple

    def run(self, folder, *arguments):
        """Run it in a folder; files are named relative to that.

        YoWASP's tools see neither other folders nor an absolute path below ``/tmp``.

        Returns
        -------
        int, str
            Exit status, and all that it printed.
        """
        done = subprocess.run(
            [*self.command, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return done.returncode, done.stdout


def yosys():
    """Yosys: the wheel pyosys, or else the one on the path.

    Raises
    ------
    ValueError
        If there is none that is new enough; with the install line.
    """
    if util.find_spec("pyosys"):
        name = f"pyosys {metadata.version('pyosys')}"
        return Tool(name, (sys.executable, "-c", _YOSYS))
    version = _version_on_path("yosys", "-V")
    if version and version >= OLDEST_YOSYS:
        return Tool(f"yosys {_dotted(version)}", ("yosys", "-q"))
    raise ValueError(_missing("Yosys", "yosys", OLDEST_YOSYS, version))


def yosys_arguments(tool, commands):
    """Commands as the arguments of either Yosys."""
    return commands if tool.command[0] == sys.executable else ("-p", "; ".join(commands))


def nextpnr(family):
    """nextpnr of a family: YoWASP's wheel, or else the one on the path.

    Raises
    ------
    ValueError
        If there is none that is new enough; with the install line.
    """
    return _wasm_or_native(
        f"nextpnr-{family}", f"nextpnr-{family}", f"nextpnr {family}", OLDEST_NEXTPNR
    )


def packer(name, family):
    """The packer of bitstreams, which YoWASP ships with nextpnr.

    Raises
    ------
    ValueError
        If it is missing; with the install line.
    """
    return _wasm_or_native(name, f"nextpnr-{family}", name, ())


def _wasm_or_native(program, package, words, oldest):
    module = f"yowasp_{package.replace('-', '_')}"
    if util.find_spec(module):
        version = metadata.version(f"yowasp-{package}")
        # Without its build number, which says nothing of the program's behaviour.
        version = re.match(r"\d+\.\d+(\.\d+)?", version)[0]
        function = f"run_{program.replace('-', '_')}"
        script = _YOWASP.format(module=module, function=function)
        return Tool(f"yowasp-{program} {version}", (sys.executable, "-c", script))
    version = _version_on_path(program, "--version") if oldest else ()
    if shutil.which(program) and version is not None and version >= oldest:
        return Tool(f"{program} {_dotted(version)}".strip(), (program,))
    raise ValueError(_missing(words, program, oldest, version))


def _version_on_path(program, option):
    """The version of a program on the path: a tuple; None if there is none."""
    if not shutil.which(program):
        return None
    done = subprocess.run([program, option], capture_output=True, text=True, check=False)
    found = re.search(r"(?<![\w.])(?:nextpnr-)?(\d+)\.(\d+)", done.stdout + done.stderr)
    return tuple(int(part) for part in found.groups()) if found else None


def _missing(words, program, oldest, version):
    if oldest and version:
        return f"{program} must be {_dotted(oldest)} or newer, got {_dotted(version)}; {INSTALL}"
    return f"{words} must be installed, got none; install it with: {INSTALL}"


def _dotted(version):
    return ".".join(str(part) for part in version)
