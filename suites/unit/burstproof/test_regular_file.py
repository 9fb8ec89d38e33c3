"""Only regular files are read, and no more of them than was asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from burstproof.regular_file import read_regular

pytestmark = pytest.mark.requirement("BE-18")


def test_a_file_has_at_most_so_many_bytes(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_regular(file, 5) == b"12345"
    with pytest.raises(OSError, match="too large"):
        read_regular(file, 4)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_would_never_end_is_refused(tmp_path: Path) -> None:
    pipe, zeros = tmp_path / "pipe", tmp_path / "zeros"
    os.mkfifo(pipe)
    zeros.symlink_to("/dev/zero")
    for path in (pipe, zeros):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(path, 5)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path, 5)
