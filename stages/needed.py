"""What the runner cannot do without; imports nothing that might be missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from burstproof.errors import EnvironmentInvalidError

NEEDED = ("numpy", "numba", "jinja2", "pytest", "pytest_benchmark")


def complaint() -> EnvironmentInvalidError | None:
    """Return the error that names every missing package, or ``None`` if all are here."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if not missing:
        return None
    return EnvironmentInvalidError(
        f"{', '.join(missing)} cannot be imported",
        where=sys.executable,
        cure="pip install -e '.[test]' there, or let `python3 noxfile.py -s stages` make an environment.",
    )
