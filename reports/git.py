"""Runs git in a checkout, without the environment variables and settings that would change its answers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_LOOK = ("core.fsmonitor=false", "core.untrackedCache=false", "core.trustctime=true", "core.checkStat=default")
"""Settings with which git looks at every file, although those of the checkout may let it skip some."""


def ask_git(root: Path, *args: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git in ``root`` with the arguments ``args``, and return its exit status and output.

    Raises
    ------
    OSError
        git is not installed.
    subprocess.TimeoutExpired
        git did not answer within ``timeout_s`` seconds; ``None`` waits without a limit.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = [word for setting in _LOOK for word in ("-c", setting)]
    command = ["git", "--no-replace-objects", *settings, *args]
    return subprocess.run(
        command, cwd=root, env=own, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
    )
