"""Sealed folders: a file counts only if this user wrote it, as it is and under its name, and nobody else could."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from burstproof.engine.sealed import SealedFolder

pytestmark = pytest.mark.requirement("BE-5")

CONTENT = b"what a kernel might be"


@pytest.fixture
def sealed(tmp_path: Path) -> SealedFolder:
    """A folder with one file, ``kernel``."""
    folder = SealedFolder(tmp_path / "cache" / "kernels", tmp_path / "own" / "key")
    assert folder.read("kernel") is None
    assert folder.write("kernel", CONTENT)
    assert folder.read("kernel") == CONTENT
    return folder


def modes(*paths: Path) -> list[str]:
    return [f"{path.stat().st_mode & 0o777:o}" for path in paths]


def test_nobody_else_can_read_or_write(sealed: SealedFolder, tmp_path: Path) -> None:
    assert modes(sealed.path, sealed.path / "kernel", tmp_path / "own" / "key") == ["700", "600", "600"]
    assert [path.name for path in sealed.path.iterdir()] == ["kernel"], "no temporary file stays"


def test_no_flipped_bit_and_no_other_length_counts(sealed: SealedFolder) -> None:
    file = sealed.path / "kernel"
    whole = file.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :] for at in range(len(whole))]

    def accepted() -> list[bytes]:
        contents = [*flipped, *(whole[:length] for length in range(len(whole))), whole + b"\0"]
        return [content for content in contents if file.write_bytes(content) >= 0 and sealed.read("kernel") is not None]

    with pytest.warns(UserWarning, match="kernel is damaged") as said:
        assert accepted() == []
    assert len(said) == 1
    file.write_bytes(whole)
    assert sealed.read("kernel") == CONTENT


def _folder_of_others(sealed: SealedFolder, _: pytest.MonkeyPatch) -> None:
    sealed.path.chmod(0o770)


def _file_of_others(sealed: SealedFolder, _: pytest.MonkeyPatch) -> None:
    (sealed.path / "kernel").chmod(0o620)


def _another_user(sealed: SealedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: sealed.path.stat().st_uid + 1)


def _linked_folder(sealed: SealedFolder, _: pytest.MonkeyPatch) -> None:
    moved = sealed.path.rename(sealed.path.with_name("moved"))
    sealed.path.symlink_to(moved)


def _linked_file(sealed: SealedFolder, _: pytest.MonkeyPatch) -> None:
    moved = (sealed.path / "kernel").rename(sealed.path / "moved")
    (sealed.path / "kernel").symlink_to(moved)


def _renamed(sealed: SealedFolder, _: pytest.MonkeyPatch) -> None:
    sealed.write("other", b"another kernel")
    (sealed.path / "other").replace(sealed.path / "kernel")


def _pipe(sealed: SealedFolder, _: pytest.MonkeyPatch) -> None:
    (sealed.path / "kernel").unlink()
    os.mkfifo(sealed.path / "kernel", 0o600)


def _another_key(sealed: SealedFolder, _: pytest.MonkeyPatch) -> None:
    (sealed.path.parents[1] / "own" / "key").write_bytes(bytes(32))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_folder_of_others, r"the folder is open to other users \(mode 770\)"),
        (_file_of_others, r"kernel is open to other users \(mode 620\)"),
        (_another_user, "the folder belongs to user"),
        (_linked_folder, "this is no folder"),
        (_linked_file, "symbolic links"),
        (_renamed, "kernel is damaged, or was not written by this user"),
        (_pipe, "kernel is no regular file"),
        (_another_key, "kernel is damaged, or was not written by this user"),
    ],
)
def test_what_somebody_else_may_have_written_does_not_count(
    sealed: SealedFolder,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[SealedFolder, pytest.MonkeyPatch], None],
    said: str,
) -> None:
    change(sealed, monkeypatch)
    with pytest.warns(UserWarning, match=said):
        assert sealed.read("kernel") is None


def test_a_linked_file_is_replaced_and_not_followed(sealed: SealedFolder) -> None:
    victim = sealed.path.parent / "victim"
    victim.write_bytes(b"mine")
    (sealed.path / "kernel").unlink()
    (sealed.path / "kernel").symlink_to(victim)
    assert sealed.write("kernel", b"new")
    assert (sealed.read("kernel"), victim.read_bytes()) == (b"new", b"mine")


def test_a_folder_open_to_others_takes_nothing(sealed: SealedFolder) -> None:
    sealed.path.chmod(0o777)
    with pytest.warns(UserWarning, match="mode 777"):
        assert not sealed.write("other", CONTENT)
    assert (sealed.names(), (sealed.path / "other").exists()) == ([], False)


@pytest.mark.parametrize("spoil", [lambda key: key.write_bytes(b"short"), lambda key: key.chmod(0o644)])
def test_a_bad_key_is_replaced(sealed: SealedFolder, tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(tmp_path / "own" / "key")
    with pytest.warns(UserWarning, match="key (is open to other users|has 5 bytes)"):
        assert sealed.read("kernel") is None
    assert sealed.write("kernel", CONTENT)
    assert sealed.read("kernel") == CONTENT


def test_a_folder_that_cannot_be_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = SealedFolder(tmp_path / "file" / "kernels", tmp_path / "key")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not folder.write("kernel", CONTENT)


_WRITER = """
import sys
from pathlib import Path
from burstproof.engine.sealed import SealedFolder

here = Path(sys.argv[1])
folder = SealedFolder(here / "kernels", here / "own" / "key")
sys.stdin.readline()
for number in range(200):
    assert folder.write(f"kernel {number % 3}", bytes([number % 3]) * 9999)
    content = folder.read(f"kernel {number % 3}")
    assert content == bytes([number % 3]) * 9999, content
"""


def test_processes_that_begin_at_once_share_key_and_files(tmp_path: Path) -> None:
    impl = str(Path(__file__).parents[4] / "impl")
    command = [sys.executable, "-W", "error", "-c", _WRITER, str(tmp_path)]
    writers = [
        subprocess.Popen(command, env={**os.environ, "PYTHONPATH": impl}, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    ends = [(writer.communicate()[1], writer.returncode) for writer in writers]
    assert ends == [(b"", 0)] * 3
