"""The door of every command: one message, an exit code that does not lie, and output that cannot steer a terminal."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from burstproof.door import guarded
from burstproof.errors import GenomeError, visible
from suites.support.cli_door import GOLDEN, SMALL, Door, assert_one_error, door

__all__ = ["door"]

pytestmark = pytest.mark.requirement("RE-2")

ROOT = Path(__file__).parents[3]


def _raise(error: BaseException) -> Callable[[], int]:
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (GenomeError("bad \x1b[2J name", cure="Rename it"), 4, r"bad \x1b[2J name. Rename it"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 3, "not enough memory"),
        (OSError(errno.ENOSPC, "No space left on device"), 3, "No space left on device"),
        (IndexError("list index out of range"), 2, "unexpected IndexError: list index out of range"),
    ],
)
def test_every_error_is_one_message_and_a_code(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, words: str
) -> None:
    assert guarded("prog", _raise(error)) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("prog: error: ")
    assert words in line


def test_a_value_that_cannot_be_shown_is_described() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert "got list" in str(GenomeError("bad", got=nested))
    assert "got a number of 20001 bits" in str(GenomeError("bad", got=1 << 20_000))
    assert len(str(GenomeError("bad", got="x" * 1000))) < 150


def test_an_unexpected_error_names_the_file_with_its_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert guarded("prog", _raise(KeyError("x"))) == 2
    (kept,) = tmp_path.iterdir()
    assert str(kept) in capsys.readouterr().err
    assert kept.read_text().startswith("Traceback")
    assert "KeyError: 'x'" in kept.read_text()


def test_where_no_file_can_be_kept_the_traceback_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    assert guarded("prog", _raise(KeyError("x"))) == 2
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert printed.splitlines()[-1].endswith("report it with the traceback above")


def test_control_characters_are_made_visible(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> int:
        print("name\x1b]0;title\x07\r\x9b2J\u202egpj.\tend")
        return 0

    assert guarded("prog", command) == 0
    assert capsys.readouterr().out == "name\\x1b]0;title\\x07\\r\\x9b2J\\u202egpj.\tend\n"
    assert visible("Zürich\n日本") == "Zürich\n日本"


@pytest.mark.requirement("BE-18")
def test_names_in_a_genome_do_not_reach_the_terminal(door: Door, tmp_path: Path) -> None:
    genome = SMALL.read_text()
    tree = json.loads(genome)
    named = [key for key in tree["blueprint"] if key.endswith("cx-__name-t")]
    tree["blueprint"] |= dict.fromkeys(named, "\x1b[31mred\x1b[2J")
    path = tmp_path / "genome.json"
    path.write_text(json.dumps(tree))
    assert "\\u001b[31mred" in path.read_text()
    answer = door("run", path, "--bursts", "3", "--all")
    assert answer.code == 0, answer.err
    assert "\x1b" not in answer.out
    assert "red" in answer.out


@pytest.mark.parametrize("module", ["stages", "reports", "hardware"])
def test_a_fault_of_a_command_is_2(module: str, tmp_path: Path) -> None:
    """Nothing was judged, so nothing failed."""
    script = (
        "import argparse, runpy; argparse.ArgumentParser.parse_args = lambda *a, **k: 1 // 0\n"
        f"runpy.run_module({module!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'impl'}:{ROOT}", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert f"{module}: error: unexpected ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="this system's shell cannot close a stream")
@pytest.mark.parametrize(
    ("arguments", "closed", "code"),
    [
        (["burstproof", "convert", SMALL, "out.connectome"], ">&-", 0),
        (["burstproof", "convert", SMALL, "out.connectome"], "2>&-", 0),
        (["burstproof", "run", "absent.json"], ">&- 2>&-", 4),
        (["hardware"], ">&-", 0),
        (["reports", "goals", "absent"], ">&-", 4),
        (["stages", "list"], ">&-", 0),
    ],
    ids=["stdout", "stderr", "both", "hardware", "reports", "stages"],
)
def test_a_closed_stream_changes_no_exit_code(
    arguments: list[str | Path], closed: str, code: int, tmp_path: Path
) -> None:
    """Python has ``None`` in the place of such a stream."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m "$@" {closed}', sys.executable, *map(str, arguments)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'impl'}:{ROOT}", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "unexpected" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == (["out.connectome"] if "convert" in arguments else [])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    ("arguments", "full", "code"),
    [
        ("burstproof nope", "2>/dev/full", 4),
        ("stages nope", "2>/dev/full", 4),
        ("reports goals absent", "2>/dev/full", 4),
        ("hardware --nope", "2>/dev/full", 4),
        ("hardware", ">/dev/full 2>&1", 3),
        ("stages list", ">/dev/full", 3),
    ],
)
def test_a_full_disk_behind_a_stream_is_no_verdict(
    arguments: str, full: str, code: int, unbuffered: str, tmp_path: Path
) -> None:
    """Python itself exits with 1 for an error that it cannot print, and with 120 for output that it cannot flush."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m {arguments} {full}', sys.executable],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'impl'}:{ROOT}", "PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        check=False,
    )
    assert done.returncode == code, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_help_that_cannot_be_written_is_no_success(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m hardware --help >/dev/full', sys.executable],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'impl'}:{ROOT}", "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "No space left on device" in done.stderr


def test_characters_that_the_encoding_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii", errors="strict"))

    def command() -> int:
        print("9 µs, 4 ×")
        return 0

    assert guarded("prog", command) == 0
    assert shown.getvalue() == b"9 \\xb5s, 4 \\xd7\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.requirement("BE-18")
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "pipe.json"],
        ["run", "pipe.connectome"],
        ["run", "pipe.bpnet"],
        ["run", SMALL, "--config", "pipe"],
        ["run", SMALL, "--resume", "pipe"],
        ["run", SMALL, "--record", "pipe"],
        ["run", SMALL, "--checkpoint", "pipe"],
        ["verify", "pipe"],
        ["convert", "pipe.bpnet", "out.bpnet"],
        ["train", "pipe"],
        ["compile", "pipe", "--capability", "9.0"],
    ],
)
def test_a_pipe_is_refused_without_waiting(door: Door, arguments: list[str | Path]) -> None:
    for name in ("pipe", "pipe.json", "pipe.npz", "pipe.connectome", "pipe.bpnet"):
        os.mkfifo(name)
    assert_one_error(door(*arguments), 4, "pipe")


@pytest.mark.requirement("BE-18")
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["run", SMALL, "--record", ""], "--record"),
        (["run", SMALL, "--checkpoint", ""], "--checkpoint"),
        (["run", SMALL, "--raster", ""], "--raster"),
        (["run", SMALL, "--resume", ""], "--resume"),
        (["run", SMALL, "--config", ""], "--config"),
        (["run", SMALL, "--opt=--"], "--opt"),
        (["run", SMALL, "--=--"], "--"),
        (["run", ""], "FILE"),
        (["run", "a\0b.json"], "names no file"),
        (["run", SMALL, "--record", "a\0b"], "names no file"),
        (["run", SMALL, "--resume", "a\0b"], "names no file"),
        (["run", SMALL, "--config", "a\0b"], "names no file"),
        (["run", SMALL, "--bursts", "9" * 5000], "--bursts"),
        (["run", SMALL, "--rank-timeout", "nan"], "--rank-timeout"),
        (["run", SMALL, "--stimulate", "1:0=" + "9" * 5000], "--stimulate"),
        (["run", SMALL, "--stimulate", "9" * 5000 + ":0=1"], "--stimulate"),
        (["run", SMALL, "--force", "1:" + "9" * 5000], "--force"),
        (["verify", ""], "TRACE"),
        (["convert", "", ""], "IN"),
        (["compile", "", "--capability", "9.0"], "FILE"),
        (["train", ""], "FILE"),
        (["fuzz", "--out", "", "--cases", "1"], "--out"),
    ],
)
def test_strange_arguments_are_one_sentence(door: Door, arguments: list[str | Path], part: str) -> None:
    assert_one_error(door(*arguments), 4, part)
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.requirement("BE-14")
@pytest.mark.parametrize(
    "content",
    ["9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000, "1" + "0" * 5000 + ".5"],
    ids=["plain", "negative", "hexadecimal", "fraction"],
)
def test_a_number_of_5000_digits_in_the_configuration(door: Door, content: str) -> None:
    Path("feagi_configuration.toml").write_text(f"[cuda]\ndevice_id = {content}\n")
    assert_one_error(door("info"), 4, "feagi_configuration.toml")


_FULL_DISK = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from burstproof.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.thorough("seconds")
@pytest.mark.skipif(sys.platform == "win32", reason="this system has no limit of file sizes")
@pytest.mark.requirement("BE-18")
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", SMALL, "--bursts", "20", "--record", "full"],
        ["run", SMALL, "--bursts", "20", "--checkpoint", "full"],
        ["run", SMALL, "--bursts", "20", "--raster", "full.svg"],
        ["convert", SMALL, "full.bpnet"],
        ["convert", GOLDEN / "traces" / "lif_mix.connectome", "full.connectome"],
    ],
)
def test_a_disk_that_is_full_is_the_environments(tmp_path: Path, arguments: list[str | Path]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, *map(str, arguments)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "impl")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert "full" in line
    assert list(tmp_path.iterdir()) == []
