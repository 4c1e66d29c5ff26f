"""A point as a design file, without building the design."""

import tomllib

import tomli_w

from hwnorm.design import dumps


def point_toml(space, point):
    """The design file of a point.

    Parameters
    ----------
    space : hwnorm.tune.space.Space
    point : dict

    Returns
    -------
    str
    """
    data = _base(space)
    data["lanes"] = point["lanes"]
    if point["period_ns"] != type(space.base).period_ns:
        data["period_ns"] = point["period_ns"]
    formats = {name: point[name] for name in ("x", "y", "gamma", "beta") if point[name]}
    rsqrt = {"method": point["method"], "guard_bits": point["guard_bits"]}
    log = {"method": point["log_method"], "segments": point["segments"], "frac": point["log_frac"]}
    sections = {
        "format": formats | {"rounding": point["rounding"], "overflow": space.base.overflow},
        "rsqrt": rsqrt,
    }
    if point["method"] == "log":
        sections["log"] = {key: value for key, value in log.items() if value is not None}
    else:
        rsqrt["segments"] = point["segments"]
    return tomli_w.dumps(data | sections)


def _base(space):
    """What a design file says above its sections, as data."""
    data = tomllib.loads(dumps(space.base))
    data.pop("period_ns", None)
    return {key: value for key, value in data.items() if not isinstance(value, dict)}
