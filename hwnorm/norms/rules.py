"""What the fields of a norm may be, and the sentence for each that breaks its rule."""

from hwnorm.fixed import OVERFLOWS, ROUNDINGS, is_integer
from hwnorm.norms.turns import SOLVERS
from hwnorm.targets import TARGETS


def check_fields(design):
    """Raise ValueError, with one line, unless every field of a norm keeps its rule.

    Parameters
    ----------
    design : hwnorm.Norm
        With its fields in their types already.
    """
    _check_sizes(design)
    _check_choices(design)
    _check_contents(design)
    _check_ports(design)


def _check_sizes(design):
    if design.dim_max is not None:
        _check_lengths(design)
    if design.dim is None:
        raise ValueError("dim must be given, got none")
    for name in ("dim", "lanes"):
        if not is_integer(getattr(design, name)):
            raise ValueError(f"{name} must be an integer, got {getattr(design, name)!r}")
    if not 2 <= design.dim <= 16384:
        name = "dim" if design.dim_max is None else "dim_max"
        raise ValueError(f"{name} must lie in 2..16384, got {design.dim}")
    if design.lanes < 1 or design.dim % design.lanes:
        raise ValueError(f"lanes must divide dim, got lanes={design.lanes} and dim={design.dim}")
    for name in ("x", "y"):
        if getattr(design, name) is None or not getattr(design, name).signed:
            raise ValueError(f"format.{name} must be signed, got {getattr(design, name)}")
    for name in ("x", "y", "gamma", "beta"):
        value = getattr(design, name)
        if value is not None and not 2 <= value.width <= 32:
            raise ValueError(f"format.{name} must have 2 to 32 bits, got {value.spelling}")
        if value is not None and value != value.word:
            raise ValueError(f"format.{name} must be a whole word, got {value}")
        if value is not None and not -64 <= value.frac <= 64:
            raise ValueError(
                f"format.{name} must have -64 to 64 fraction bits, got {value.spelling}"
            )
    for name in ("eps", "gamma_offset", "period_ns"):
        value = getattr(design, name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} must be a finite number, got {value!r}")
        if not abs(value) < 2.0**1000:
            raise ValueError(f"{name} must be a finite number, got {value!r:.20}")
    if not design.eps > 0:
        raise ValueError(
            f"eps must be positive, or an all-zero row divides by zero, got {design.eps}"
        )
    if not 2.0**-100 < design.eps < 2.0**64:
        raise ValueError(f"eps must lie between 2**-100 and 2**64, got {design.eps}")
    if not design.period_ns >= 0.1:
        raise ValueError(f"period_ns must be at least 0.1, got {design.period_ns}")


def _check_lengths(design):
    """What a design must be like whose rows differ in length."""
    if not is_integer(design.dim_max):
        raise ValueError(f"dim_max must be an integer, got {design.dim_max!r}")
    if not design.has_lengths:
        raise ValueError(f"dim_max is not for {design.kind}, got {design.dim_max}")
    if design.rsqrt.method not in ("direct", "linear", "quadratic"):
        raise ValueError(
            f"dim_max needs rsqrt.method direct, linear or quadratic, got {design.rsqrt.method!r}"
        )
    if design.ready is False:
        raise ValueError(
            "dim_max needs ready: a short row waits behind a long one, got ready false"
        )


def _check_choices(design):
    for name in ("gamma", "beta"):
        if getattr(design, name) is not None and name not in design.parameter_names:
            raise ValueError(f"format.{name} is not a parameter of {design.kind}")
    for name, value, choices in (
        ("store", design.store, ("ram", "rom", "stream")),
        ("control", design.control, ("none", "axilite")),
        ("rounding", design.rounding, ROUNDINGS),
        ("overflow", design.overflow, OVERFLOWS),
        ("target", design.target, tuple(TARGETS)),
        ("solve", design.solver, (None, *SOLVERS)),
        ("rsqrt.method", design.rsqrt.method, design.all_methods()),
    ):
        if value not in choices:
            known = ", ".join(choice for choice in choices if choice is not None)
            raise ValueError(f"{name} of {design.kind} must be one of {known}, got {value!r}")


def _check_contents(design):
    if design.rsqrt.method == "exact" and design.rounding != "nearest_even":
        raise ValueError(f"exact rounds to nearest_even, got rounding {design.rounding!r}")
    if design.gamma is None and design.gamma_offset:
        raise ValueError(f"gamma_offset needs format.gamma, got {design.gamma_offset}")
    if design.gamma is not None:
        steps = design.gamma_offset * 2.0**design.gamma.frac
        if abs(steps) >= 2**33:
            raise ValueError(
                f"gamma_offset must keep gamma in 34 bits of lsb {design.gamma.lsb:g}, "
                f"got {design.gamma_offset}"
            )
        if steps != int(steps):
            raise ValueError(
                f"gamma_offset must be a multiple of the lsb of {design.gamma.spelling}, "
                f"got {design.gamma_offset}"
            )
    for name in ("gamma", "beta"):
        values, fmt = getattr(design, f"{name}_init"), getattr(design, name)
        if values is None:
            continue
        if design.store == "stream":
            raise ValueError(f"{name}_init must not be given with store 'stream', got contents")
        if fmt is None:
            raise ValueError(f"{name}_init needs format.{name}, got none")
        if len(values) != design.dim:
            raise ValueError(f"{name}_init must have dim={design.dim} elements, got {len(values)}")
        odd = [value for value in values if not is_integer(value)]
        if odd:
            raise ValueError(f"{name}_init must be integers, got {odd[0]!r}")
        if min(values) < fmt.lo or max(values) > fmt.hi:
            raise ValueError(
                f"{name}_init must fit {fmt.spelling}, got {min(values)}..{max(values)}"
            )


def _check_ports(design):
    for name in ("ready", "clock_enable"):
        if not isinstance(getattr(design, name), bool):
            raise ValueError(f"{name} must be true or false, got {getattr(design, name)!r}")
    if design.store == "stream" and not design.parameters:
        raise ValueError("store 'stream' needs format.gamma or format.beta, got none")
    if design.store == "stream" and not design.ready:
        raise ValueError("store 'stream' needs ready: its streams wait for each other, got false")
    if design.clock_enable and design.control != "none":
        raise ValueError(
            f"clock_enable needs control 'none': a bus does not stop, got {design.control!r}"
        )
