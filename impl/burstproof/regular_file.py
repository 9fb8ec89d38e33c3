"""Inputs are regular files: a pipe or a device would keep the reader waiting, or never end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def check_regular(path: Path) -> None:
    """Refuse a folder, pipe, socket or device before it is opened.

    Raises
    ------
    OSError
        There is no such file, its name cannot be one, or it is none of the regular ones.
    """
    try:
        mode = path.stat().st_mode
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file but a pipe, socket or device", str(path))


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The content of a file of at most ``most_bytes``.

    Raises
    ------
    OSError
        As ``check_regular``; or the file cannot be read, or is larger.
    """
    check_regular(path)
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content
