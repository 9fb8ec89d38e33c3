"""A file is written as a whole or not at all, also when the process is asked to end meanwhile."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from burstproof.errors import EnvironmentInvalidError, NetworkFileError
from burstproof.network.files.atomic import atomic_write, refused_write

pytestmark = pytest.mark.requirement("BE-2")

IMPL = Path(__file__).parents[5] / "impl"

_WRITER = """
import signal, sys, time
from burstproof.network.files.atomic import atomic_write
with atomic_write(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    print("begun", flush=True)
    time.sleep(100)
"""


@contextmanager
def writing(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has begun to write ``file``."""
    command, environment = [sys.executable, "-c", _WRITER, str(file)], {**os.environ, "PYTHONPATH": str(IMPL)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        yield process


def test_a_process_that_is_asked_to_end_leaves_nothing_half_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"before")
    with writing(file) as process:
        assert len(list(tmp_path.iterdir())) == 2
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM, "as if nobody had seen to it"
    assert [(path, path.read_bytes()) for path in tmp_path.iterdir()] == [(file, b"before")]


@pytest.mark.skipif(os.name == "nt", reason="nothing is locked on Windows")
def test_the_next_writer_removes_what_a_killed_one_left_and_nothing_of_one_at_work(tmp_path: Path) -> None:
    file, another = tmp_path / "file[1]", tmp_path / ".file[1].more.0123456789abcdef.part"
    another.touch()
    with writing(file) as process:
        process.kill()
    assert len(list(tmp_path.iterdir())) == 2
    with atomic_write(file) as slow:
        assert len(list(tmp_path.iterdir())) == 2, "its own and that of another file"
        with atomic_write(file) as fast:
            fast.write(b"fast")
        slow.write(b"slow")
    assert file.read_bytes() == b"slow"
    assert sorted(tmp_path.iterdir()) == [another, file]


def test_the_programs_own_handler_stays(tmp_path: Path) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with atomic_write(tmp_path / "file") as stream:
            os.kill(os.getpid(), signal.SIGTERM)
            stream.write(b"whole")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (seen, (tmp_path / "file").read_bytes()) == ([signal.SIGTERM], b"whole")
    with atomic_write(tmp_path / "file") as stream:
        stream.write(b"again")
    assert signal.getsignal(signal.SIGTERM) is before


def test_other_threads_write_too(tmp_path: Path) -> None:
    def write() -> None:
        with atomic_write(tmp_path / "file") as stream:
            stream.write(b"whole")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_a_full_disk_is_the_machines_and_a_wrong_path_is_not() -> None:
    full = refused_write(OSError(errno.ENOSPC, "No space left on device"), "here", NetworkFileError)
    wrong = refused_write(OSError(errno.ENOENT, "No such file or directory"), "here", NetworkFileError)
    assert (type(full), type(wrong)) == (EnvironmentInvalidError, NetworkFileError)
    assert "No space left on device" in str(full)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe with a name is POSIX")
def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    """A file in the place of a device or a pipe would be found by others."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="a device, a pipe or a socket"), atomic_write(pipe) as stream:
        stream.write(b"lost")
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
