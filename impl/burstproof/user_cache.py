"""Where the package keeps what it may compute again: tuned launches, compiled images."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path | None:
    """The package's folder in the user's cache; ``None`` for a user without a home folder, for whom nothing is kept.

    A folder that others can write to is no substitute: code that is kept runs, and its key is kept here, too.
    """
    try:
        return _folder()
    except RuntimeError:
        return None


def _folder() -> Path:
    """The folder as this system has it; a ``RuntimeError`` says that there is no home folder."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base or Path.home() / "AppData" / "Local") / "burstproof" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "burstproof"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "burstproof"
