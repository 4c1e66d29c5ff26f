"""``python -m hwnorm``."""

from hwnorm.cli import run

run()
