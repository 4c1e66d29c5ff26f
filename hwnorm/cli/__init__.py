"""The command line: parse, call, print. Every command is a thin skin on the Python API."""

import signal
import sys

import click

# The modules of commands: importing them adds them to the group.
from hwnorm.cli import design, export, simulate, synth, tune  # noqa: F401
from hwnorm.cli.base import CheckError, commands
from hwnorm.sim import SimulationError


def run():
    """The console script."""
    # Who ends it politely wants what a key would do: processes stopped, folders removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())


def main(arguments=None):
    """Run the command line; returns the exit code."""
    try:
        commands.main(arguments, prog_name="hwnorm", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.exceptions.Abort:
        click.echo("hwnorm: interrupted", err=True)
        return 130
    except click.ClickException as error:
        click.echo(f"hwnorm: {_one_line(error.format_message())}", err=True)
        return 2
    except ValueError as error:
        click.echo(f"hwnorm: {_one_line(str(error))}", err=True)
        return 2
    except OSError as error:
        click.echo(f"hwnorm: files must be readable and writable, got: {error}", err=True)
        return 2
    except (ArithmeticError, MemoryError, RecursionError) as error:
        # No rule foresaw it; still one line, and nothing is written.
        click.echo(f"hwnorm: input beyond what can be computed: {error!r:.200}", err=True)
        return 2
    except (CheckError, SimulationError) as error:
        click.echo(f"hwnorm: {_one_line(str(error))}", err=True)
        return 1
    return 0


def _one_line(text):
    return " ".join(text.split())
