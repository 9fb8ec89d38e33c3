"""A folder of files that only this user can have written: each is sealed with this user's secret key.

The contents of a cache are decoded into code that runs. So the folder and its files must belong to this user and be
closed to others, no link is followed, and a file is accepted only if its seal, an HMAC-SHA256 over name and content, is
right. The key is outside the folder, so files in a folder copied or planted by somebody else are not accepted.
"""

from __future__ import annotations

import errno
import hmac
import os
import secrets
import stat
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_KEY_BYTES = 32
_SEAL_BYTES = 32
_LOOK_AGAIN_S = 0.05
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_POSSIBLE = hasattr(os, "geteuid") and os.open in os.supports_dir_fd

_said: set[Path] = set()


class _UnsafeError(Exception):
    """A file or folder that cannot be trusted, with the reason."""


def _say(folder: Path, problem: object) -> None:
    """Warn, once per process and folder."""
    if folder not in _said:
        _said.add(folder)
        warnings.warn(f"{folder}: {problem}; the kernels are compiled again", stacklevel=3)


def _check_ours(descriptor: int, name: str, *, folder: bool = False) -> None:
    """Refuse a descriptor of the wrong kind, of another user, or open to other users."""
    found = os.fstat(descriptor)
    kind = stat.S_ISDIR if folder else stat.S_ISREG
    if not kind(found.st_mode):
        raise _UnsafeError(f"{name} is no {'folder' if folder else 'regular file'}")
    if found.st_uid != os.geteuid():
        raise _UnsafeError(f"{name} belongs to user {found.st_uid}, not to {os.geteuid()}")
    if found.st_mode & _OTHERS:
        raise _UnsafeError(f"{name} is open to other users (mode {stat.S_IMODE(found.st_mode):o})")


def _content(name: str, folder: int) -> bytes:
    """The content of a regular file of this user in the open ``folder``."""
    descriptor = os.open(name, os.O_RDONLY | _NO_LINK, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        _check_ours(file.fileno(), name)
        return file.read()


@contextmanager
def _temporary(name: str, content: bytes, folder: int) -> Iterator[str]:
    """A temporary file with ``content`` and mode 0600 in the open ``folder``; removed when the block ends."""
    temporary = f".{name}.{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _NO_LINK, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield temporary
    finally:
        _remove(temporary, folder)


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


class SealedFolder:
    """Sealed files by name; folder and ``key_file`` are created when the first file is written.

    A file or folder that cannot be trusted is treated as absent, with one warning.
    """

    def __init__(self, path: Path, key_file: Path) -> None:
        self.path = path
        self._key_file = key_file

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """A descriptor of the folder, after checks."""
        if not _POSSIBLE:
            raise FileNotFoundError(self.path)
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
        except NotADirectoryError:  # also for a link
            raise _UnsafeError("this is no folder") from None
        try:
            _check_ours(descriptor, "the folder", folder=True)
            yield descriptor
        finally:
            os.close(descriptor)

    def read(self, name: str) -> bytes | None:
        """The content of the file ``name``, or ``None`` if there is none that this user sealed."""
        try:
            with self._opened() as folder:
                sealed = _content(name, folder)
                return self._unsealed(name, sealed, _key(self._key_file))
        except FileNotFoundError:
            return None
        except (OSError, _UnsafeError) as problem:
            _say(self.path, problem)
            return None

    @staticmethod
    def _unsealed(name: str, sealed: bytes, key: bytes) -> bytes:
        seal, content = sealed[:_SEAL_BYTES], sealed[_SEAL_BYTES:]
        if not hmac.compare_digest(seal, _seal(key, name, content)):
            raise _UnsafeError(f"{name} is damaged, or was not written by this user")
        return content

    def claim(self, name: str, most_s: float) -> int | None:
        """Take the lock of ``name``; waits for a process that holds it.

        Returns
        -------
        int or None
            A descriptor for :meth:`release`; the lock also ends with the process. ``None`` if the folder supports no
            locks, or if another process holds the lock for longer than ``most_s`` seconds.
        """
        if not _POSSIBLE:
            return None
        import fcntl

        deadline = time.monotonic() + most_s
        try:
            self._make()
            with self._opened() as folder:
                descriptor = os.open(_lock(name), os.O_CREAT | os.O_RDWR | _NO_LINK, 0o600, dir_fd=folder)
        except (OSError, _UnsafeError):
            return None
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno != errno.EWOULDBLOCK or time.monotonic() >= deadline:
                    os.close(descriptor)
                    return None
                time.sleep(_LOOK_AGAIN_S)
            else:
                return descriptor

    def release(self, name: str, claimed: int) -> None:
        """Release the lock and remove its file; a process that waits for it then finds what was written meanwhile."""
        self.remove(_lock(name))
        os.close(claimed)

    def _make(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)

    def write(self, name: str, content: bytes) -> bool:
        """Write ``content`` under ``name``, atomically; returns whether that was possible."""
        if not _POSSIBLE:
            return False
        try:
            self._make()
            with self._opened() as folder:
                seal = _seal(_key(self._key_file, make=True), name, content)
                with _temporary(name, seal + content, folder) as temporary:
                    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except _UnsafeError as problem:
            _say(self.path, problem)
            return False
        except OSError:
            return False
        return True

    def names(self) -> list[str]:
        """Names of the files; none if the folder cannot be trusted."""
        try:
            with self._opened() as folder:
                return sorted(os.listdir(folder))
        except (OSError, _UnsafeError):
            return []

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        try:
            with self._opened() as folder:
                _remove(name, folder)
        except (OSError, _UnsafeError):
            return


def _lock(name: str) -> str:
    return f".{name}.lock"


def _seal(key: bytes, name: str, content: bytes) -> bytes:
    return hmac.digest(key, name.encode() + b"\0" + content, "sha256")


def _key(file: Path, *, make: bool = False) -> bytes:
    """The key in ``file``; one that is absent or cannot be trusted is replaced if ``make`` is set."""
    try:
        return _kept_key(file)
    except (FileNotFoundError, _UnsafeError):
        if not make:
            raise
    file.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with _temporary(file.name, secrets.token_bytes(_KEY_BYTES), folder) as temporary:
            _link_key(file, temporary, folder)
    finally:
        os.close(folder)
    return _kept_key(file)


def _link_key(file: Path, temporary: str, folder: int) -> None:
    """Make the file ``temporary`` the key, unless another process has created one meanwhile."""
    try:
        _kept_key(file)
        return
    except FileNotFoundError:
        pass
    except _UnsafeError:
        _remove(file.name, folder)
    try:
        os.link(temporary, file.name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError:
        return


def _kept_key(file: Path) -> bytes:
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        key = _content(file.name, folder)
    except FileNotFoundError:
        raise
    except OSError as error:  # a link among them
        raise _UnsafeError(f"{file} cannot be read ({error.strerror})") from None
    finally:
        os.close(folder)
    if len(key) != _KEY_BYTES:
        raise _UnsafeError(f"{file} has {len(key)} bytes, not {_KEY_BYTES}")
    return key
