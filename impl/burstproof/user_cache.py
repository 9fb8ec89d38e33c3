"""Where the package keeps what it may compute again: tuned launches, compiled images."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The package's folder in the user's cache."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base or Path.home() / "AppData" / "Local") / "burstproof" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "burstproof"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "burstproof"
