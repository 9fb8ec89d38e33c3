"""What git says of a checkout: of the one that was named, whatever repository the environment names."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_LOOK = ("core.fsmonitor=false", "core.untrackedCache=false", "core.trustctime=true", "core.checkStat=default")
"""Settings of git: it looks at every file, whatever those of the checkout save it."""


def ask_git(root: Path, *args: str, timeout_s: float | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git in ``root`` with the arguments ``args``, and return its exit status and what it wrote.

    Raises
    ------
    OSError
        There is no git.
    subprocess.TimeoutExpired
        It gave no answer within ``timeout_s`` seconds; ``None`` waits for it.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = [word for setting in _LOOK for word in ("-c", setting)]
    command = ["git", "--no-replace-objects", *settings, *args]
    return subprocess.run(
        command, cwd=root, env=own, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
    )
