"""Results that are kept: one JSON file for each question, named by what it depends on."""

import contextlib
import hashlib
import json
from functools import cache
from pathlib import Path

from hwnorm.files import code_digest, write_text
from hwnorm.sim.cache import cache_folder


@cache
def own_code():
    """What this package's files hold: results of other code are not looked up."""
    return code_digest(Path(__file__).parent)


def cached(question, answer, use=True, enough=lambda found: True):
    """An answer from the cache, or a new one, which is kept.

    Parameters
    ----------
    question : tuple
        All that the answer depends on, of texts, numbers and tuples.
    answer : callable
        Without arguments, to what JSON can hold.
    use : bool
        Whether to look and to keep; else it is only computed.
    enough : callable
        Whether what is found will do.
    """
    digest = hashlib.sha256(repr((own_code(), question)).encode()).hexdigest()
    path = cache_folder() / "synth" / f"{digest[:40]}.json"
    if use:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = None
        if isinstance(found, dict) and enough(found):
            return found
    new = answer()
    if use:
        # A cache that is full or read-only only costs time.
        with contextlib.suppress(ValueError):
            write_text(path, json.dumps(new))
    return new
