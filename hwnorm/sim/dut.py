"""What is simulated: a design's own RTL, or hardware of a user's with the same ports."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from amaranth.lib import wiring

from hwnorm.hdl.axi import AxiStreamTop, port_bits
from hwnorm.hdl.engine import RowEngine, engine_signature
from hwnorm.hdl.verilog import verilog


@dataclass(frozen=True)
class Dut:
    """The design under test.

    Parameters
    ----------
    design : hwnorm.Norm
        What it has to do, and which ports it has.
    files : tuple of pathlib.Path
        Verilog of a user's instead of the design's own.
    top : str
        The module to simulate.
    component : amaranth.lib.wiring.Component or None
        Amaranth hardware of a user's, with the ports of `hwnorm.component`.
    """

    design: object
    files: tuple = ()
    top: str = "dut"
    component: object = None

    @cached_property
    def ports(self):
        """The Verilog ports that it must have: name to (direction, bits)."""
        return port_bits(self.design)

    @property
    def core(self):
        """The Amaranth component, for engines that simulate that."""
        return self.component if self.component is not None else RowEngine(self.design)

    @property
    def shell(self):
        """The same behind the ports of the exported Verilog."""
        return AxiStreamTop(self.design, component=self.component)

    @property
    def folder(self):
        """Where the Verilog finds the files that it reads, or None."""
        return self.files[0].parent.resolve() if self.files else None

    @cached_property
    def texts(self):
        """The Verilog: file name to text."""
        if not self.files:
            return {"dut.v": verilog(self.design, "dut", component=self.component)}
        return {f"{n}_{path.name}": _read(path) for n, path in enumerate(self.files)}

    @property
    def companions(self):
        """What the Verilog includes or reads beside its first file: relative path to bytes."""
        found, texts = {}, list(self.texts.values()) if self.files else []
        while texts:
            for name in re.findall(r'"([^"\n]+)"', texts.pop()):
                path = (self.folder / name).resolve()
                if name in found or not path.is_relative_to(self.folder) or not path.is_file():
                    continue
                found[name] = path.read_bytes()
                texts.append(found[name].decode("utf-8", "replace"))
        return found

    @property
    def whole(self):
        """Whether `texts` is all that is compiled: no further files are included."""
        return not any("`include" in text for text in self.texts.values())

    def check_ports(self, found):
        """Compare the ports of the elaborated module with those that it must have.

        Parameters
        ----------
        found : dict of str to (str, int)
            Name to direction, ``input`` or ``output``, and bits.

        Raises
        ------
        ValueError
            If one is missing or has another width, or there is an input more.
        """
        name = f"module {self.top}"
        if missing := [port for port in self.ports if port not in found]:
            raise ValueError(f"{name} must have the ports of the design, {_lacks(missing)}")
        for port, (direction, bits) in self.ports.items():
            if found[port] != (direction, bits):
                raise ValueError(
                    f"{name} must have {port} as {direction} of {bits} bits, got "
                    f"{found[port][0]} of {found[port][1]} bits"
                )
        more = [n for n, (way, _) in found.items() if way == "input" and n not in self.ports]
        if more:
            raise ValueError(f"{name} must have no further inputs, got {', '.join(more)}")


def make_dut(design, verilog=None, top=None, component=None):
    """What a user gives, checked as far as it can be before it is compiled.

    Raises
    ------
    ValueError
        If both or neither fit, or a file is missing.
    """
    if verilog is not None and component is not None:
        raise ValueError("verilog and component must not be given together, got both")
    if verilog is None:
        if top is not None:
            raise ValueError(f"top goes with verilog, got top={top!r} alone")
        if component is not None:
            _check_component(design, component)
        return Dut(design, component=component)
    given = [verilog] if isinstance(verilog, str | Path) else list(verilog)
    if not given:
        raise ValueError("verilog must name at least one file, got none")
    files = tuple(Path(file) for file in given)
    for file in files:
        _read(file)
    return Dut(design, files, top or files[0].stem)


def _read(path):
    try:
        # Comments may be in any encoding.
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise ValueError(f"verilog {path} must be a readable file, got: {error.strerror}") from None


def _check_component(design, component):
    signature = getattr(component, "signature", None)
    if not isinstance(signature, wiring.Signature):
        raise ValueError(
            f"component must be an Amaranth wiring.Component, got {type(component).__name__}"
        )
    needed, has = engine_signature(design).members, signature.members
    if missing := [name for name in needed if name not in has]:
        raise ValueError(f"component must have the ports of the design, {_lacks(missing)}")
    for name, member in needed.items():
        if has[name] != member:
            raise ValueError(f"component must have {name} as {member!r}, got {has[name]!r}")
    more = [n for n, m in has.items() if n not in needed and m.flow is wiring.In]
    if more:
        raise ValueError(f"component must have no further inputs, got {', '.join(more)}")


def _lacks(missing):
    return f"got none named {', '.join(missing)}"
