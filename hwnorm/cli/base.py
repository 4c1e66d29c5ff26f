"""What the commands share: the group, options, printing, rows."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from hwnorm import __version__
from hwnorm.design import CATALOGUE
from hwnorm.files import finite
from hwnorm.fixed import quantise
from hwnorm.rows import (
    Layer,
    corner_rows,
    endless_rows,
    fitting_layers,
    load_layers,
    random_rows,
)
from hwnorm.targets import TARGETS


class CheckError(Exception):
    """A check that the command made did not hold: exit code 1."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="hwnorm %(version)s")
def commands():
    """Transformer norms without dividers or square roots: models, RTL, Verilog.

    DESIGN is a TOML file (see: hwnorm new rmsnorm), the name of a preset, or FILE.py:NAME.
    """


commands.help += "\n\nPresets: " + ", ".join(CATALOGUE) + "."

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
design_argument = click.argument("design")
data_option = click.option(
    "--data", metavar="FILE", help="Rows: .npy, or .npz with x, gamma, beta."
)
target_option = click.option("--target", help=f"Instead of the design's: {', '.join(TARGETS)}.")
period_option = click.option("--period", type=float, metavar="NS", help="Instead of the design's.")
seed_option = click.option("--seed", type=click.IntRange(0), default=0, show_default=True)


def timed(design, target, period):
    """The design for another target or period, where one is given."""
    changes = {"target": target, "period_ns": period}
    return replace(design, **{key: value for key, value in changes.items() if value is not None})


def print_result(as_json, data, text):
    click.echo(json.dumps(finite(data)) if as_json else text)


def progress_bar(length, label):
    """A progress bar on stderr, silent unless that is a terminal."""
    return click.progressbar(
        length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    )


def layers_of(design, data, rows, seed):
    """What to run a design on, and what to call it."""
    if data is not None:
        layers, source = load_layers(data), Path(data).name
    elif layers := fitting_layers(design):
        source = "real activations"
    else:
        x = np.concatenate([corner_rows(design), random_rows(design, 256, seed)])
        layers, source = [Layer("corner and random rows", x)], "corner and seeded random rows"
    for layer in layers:
        if layer.x.shape[-1] not in design.dims:
            dim = f"dim={design.dim}"
            if design.dim_max is not None:
                dim = f"at most {dim} in whole beats"
            raise ValueError(f"data of {source} must have {dim}, got {layer.x.shape[-1]}")
    if rows is not None:
        layers = first_rows(layers, rows)
    return layers, source


def given_rows(design, data, rows, seed):
    """At most `rows` rows for a simulation, block by block.

    Returns
    -------
    str, iterator of numpy.ndarray, dict
        What to call them; the rows; parameters, unless the design has them in ROM.
    """
    if data is None and (design.dim_max is not None or not fitting_layers(design)):
        lengths = " of all lengths" if design.dim_max is not None else ""
        return f"corner and random rows{lengths}", endless_rows(design, rows, seed), {}
    layers = layers_of(design, data, None, seed)[0]
    used = first_rows(layers, rows)
    return _name(used), (layer.x for layer in used), _loads(design, used)


def first_rows(layers, rows):
    """At most `rows` rows, of as few layers as hold them."""
    kept = []
    for layer in layers:
        if rows > 0:
            kept.append(replace(layer, x=layer.x[:rows]))
            rows -= len(kept[-1].x)
    return kept


def bench_of(design, layers, rows):
    """At most `rows` rows of all layers, with the first one's parameters, as integers.

    Returns
    -------
    str, numpy.ndarray, dict
        What to call them; the rows; parameters, unless the design has them in ROM.
    """
    used = first_rows(layers, rows)
    x = np.concatenate([quantise(design.x, layer.x, "x") for layer in used])
    return _name(used), x, _loads(design, used)


def _name(layers):
    return layers[0].name + (f" and {len(layers) - 1} more" if len(layers) > 1 else "")


def _loads(design, layers):
    """The first layer's parameters; those that are streamed, of each layer with its rows."""
    given = {} if design.store == "rom" else parameters_in(design, layers[0])
    if design.streamed:
        given = {
            name: np.concatenate(
                [np.broadcast_to(getattr(layer, name), layer.x.shape) for layer in layers]
            )
            for name in given
        }
    return {name: quantise(getattr(design, name), value, name) for name, value in given.items()}


def parameters_in(design, layer):
    """The layer's parameters that the design has formats for."""
    return {
        name: getattr(layer, name) for name in design.parameters if getattr(layer, name) is not None
    }
