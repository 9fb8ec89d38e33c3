"""Writing a file as a whole or not at all."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from burstproof.errors import BurstproofError, EnvironmentInvalidError
from burstproof.termination import ENDING, seen_to

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
"""What the machine lacks, whatever the path."""

_NAME_BYTES = 200
"""Most of a file's name in that of its temporary file: file systems allow 255 bytes."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of ``path`` when the block ends, and vanishes if it raises.

    The bytes go to a temporary file in the same folder, are flushed to the disk and renamed with ``os.replace``;
    nobody ever sees half a file. A symbolic link is followed, so that its target is replaced. If the process is killed,
    the temporary file ``.NAME.HEX.part`` stays until the next write of ``path``, except on Windows.

    Raises
    ------
    OSError
        The folder does not exist or cannot be written, the disk is full, or ``path`` is a folder, a device, a pipe or
        a socket.
    """
    final = Path(os.path.realpath(path))
    if final.is_dir():
        raise IsADirectoryError(f"{final} is a folder")
    if final.exists() and not final.is_file():  # a device or a pipe would be gone afterwards
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket", str(final))
    kept = os.fsdecode(os.fsencode(final.name)[:_NAME_BYTES])
    _remove_abandoned(final.parent, f".{glob.escape(kept)}.{'[0-9a-f]' * 16}.part")
    temporary = final.with_name(f".{kept}.{secrets.token_hex(8)}.part")
    with _removed_if_terminated(temporary):
        try:
            with os.fdopen(_made(temporary), "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                if os.name != "nt":
                    os.replace(temporary, final)  # while it is locked
            if os.name == "nt":
                os.replace(temporary, final)  # an open file cannot be moved there
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _made(temporary: Path) -> int:
    """Make ``temporary``, locked as long as it is open; another writer may find and remove it before it is locked."""
    while True:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
        if os.name == "nt":
            return descriptor
        import fcntl

        with suppress(OSError):  # a file system without locks, on which nothing is removed either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if temporary.exists():
            return descriptor
        os.close(descriptor)


def _remove_abandoned(folder: Path, pattern: str) -> None:
    """Remove temporary files whose writers are gone: nobody holds their locks."""
    if os.name == "nt":
        return
    import fcntl

    for path in folder.glob(pattern):
        with suppress(OSError), path.open("r+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                path.unlink()


def _removed_if_terminated(temporary: Path) -> AbstractContextManager[None]:
    """Within it, a signal of ``ENDING`` that would end the process removes ``temporary`` first."""

    def end(number: int, _: FrameType | None) -> None:
        temporary.unlink(missing_ok=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    return seen_to(dict.fromkeys(ENDING, signal.SIG_DFL), end)


def refused_write(error: OSError, where: str, kind: type[BurstproofError]) -> BurstproofError:
    """The error for a file that could not be written: the environment's if space is lacking, else of ``kind``."""
    lacking = error.errno in _NO_SPACE
    return (EnvironmentInvalidError if lacking else kind)(
        f"cannot be written: {error.strerror or error}",
        where=where,
        cure="Free space there or choose another place" if lacking else "Check folder, permissions and free space",
    )


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it there: readers see the old file or the new one.

    Raises
    ------
    EnvironmentInvalidError
        The file system refused (full, read-only).
    """
    try:
        with atomic_write(path) as stream:
            stream.write(content)
    except OSError as error:
        raise refused_write(error, str(path), EnvironmentInvalidError) from None


def make_folder(folder: Path) -> None:
    """Make ``folder`` and those above it, as far as they are missing.

    Raises
    ------
    EnvironmentInvalidError
        The file system refused, or a file stands in the way.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentInvalidError(
            f"the folder cannot be made: {error.strerror}", where=str(folder), cure="Choose another place"
        ) from None
