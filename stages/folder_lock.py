"""One runner at a time in the folder of a run: two would write over each other's results."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from burstproof.errors import InputError
from burstproof.network.files.atomic import make_folder

LOCK_NAME = ".lock"


@contextmanager
def hold(folder: Path) -> Iterator[int | None]:
    """Keep others out of ``folder``, which is made if need be.

    The lock is the kernel's: it ends with the last process that has the file descriptor open, however that ends.

    Yields
    ------
    int or None
        The file descriptor; ``None`` on Windows, where nothing is locked.

    Raises
    ------
    InputError
        Somebody else holds it.
    EnvironmentInvalidError
        The folder cannot be made.
    """
    make_folder(folder)
    if os.name == "nt":
        yield None
        return
    import fcntl

    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            cure = "Wait until it has ended; what a killed one left behind ends within half a minute."
            raise InputError("another run is under way in this folder", where=str(folder), cure=cure) from None
        except OSError:  # a file system without locks
            pass
        yield descriptor
    finally:
        os.close(descriptor)
