"""SIGTERM is told where something is to be told, and leaves everything else as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from burstproof.cli.main import main
from burstproof.door import guarded
from burstproof.network.files.atomic import atomic_write
from burstproof.termination import Terminated, raising_terminated
from suites.support.cli_door import SMALL

pytestmark = pytest.mark.requirement("BE-18", "RE-2")

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """As a program finds them: the runner of these tests sees to some itself."""
    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _terminate(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


def test_the_first_sigterm_raises_and_the_next_does_nothing() -> None:
    seen: list[str] = []

    @raising_terminated()
    def work() -> None:
        try:
            _terminate()
        finally:
            _terminate()
            seen.append("cleaned up")

    with pytest.raises(Terminated):
        work()
    assert seen == ["cleaned up"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_sigterm_that_somebody_sees_to_is_theirs() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with raising_terminated():
            _terminate()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


def test_other_threads_leave_sigterm_alone() -> None:
    found = []

    def look() -> None:
        with raising_terminated():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]


@pytest.mark.parametrize(
    ("first", "code", "message"),
    [
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
        (signal.SIGINT, 130, "interrupted"),
    ],
)
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_an_ended_command_is_one_message_and_a_code(
    first: int, code: int, message: str, second: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> int:
        with raising_terminated():
            try:
                _terminate(first)
            finally:
                _terminate(second)
        return 0

    assert guarded("prog", command) == code
    assert capsys.readouterr().err == f"prog: error: {message}\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("where", ["opening", "writing"])
def test_a_file_that_is_being_written_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    opened = os.open

    def opening(*arguments: object, **options: object) -> int:
        descriptor = opened(*arguments, **options)  # type: ignore[arg-type]
        if where == "opening":
            os.close(descriptor)
            _terminate()
        return descriptor

    monkeypatch.setattr(os, "open", opening)

    @raising_terminated()
    def write() -> None:
        with atomic_write(tmp_path / "file") as stream:
            stream.write(b"half")
            _terminate()

    with pytest.raises(Terminated):
        write()
    assert list(tmp_path.iterdir()) == []


_RUN = """
import os, signal, sys
from burstproof.cli.main import main
from burstproof.engine.reference import ReferenceEngine
run_bursts, steps = ReferenceEngine.run, []
def run(engine, *others):
    steps.append(1)
    if len(steps) == 4:
        os.kill(os.getpid(), signal.SIGTERM)
    return run_bursts(engine, *others)
ReferenceEngine.run = run
sys.exit(main(sys.argv[1:]))
"""


def test_a_terminated_run_says_how_it_goes_on(tmp_path: Path) -> None:
    """As schedulers end a job: what SIGINT says, and the exit code of SIGTERM."""
    options = ("--backend", "reference", "--bursts", "40", "--checkpoint", "c", "--checkpoint-every", "10")
    done = subprocess.run(
        [sys.executable, "-c", _RUN, "run", str(SMALL), *options, "--record", "r"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'impl'}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 143, done.stderr
    note, error = done.stderr.splitlines()
    assert note.endswith("burst 20 is in the checkpoint: the same command with --resume c goes on after it")
    assert error == "burstproof: error: ended by SIGTERM"
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_a_record_that_was_not_written_any_more_is_written_by_resuming(tmp_path: Path) -> None:
    """The last burst is in the checkpoint, the record is not there."""
    options = ["run", str(SMALL), "--backend", "reference", "--bursts", "12", "--record", str(tmp_path / "r")]
    options += ["--checkpoint", str(tmp_path / "c")]
    assert main(options) == 0
    whole = (tmp_path / "r.npz").read_bytes()
    (tmp_path / "r.npz").unlink()
    (tmp_path / "r.json").unlink()
    assert main([*options, "--resume", str(tmp_path / "c")]) == 0
    assert (tmp_path / "r.npz").read_bytes() == whole


def test_a_long_name_is_shortened_by_its_bytes(tmp_path: Path) -> None:
    with atomic_write(tmp_path / ("\u00e9" * 120)) as stream:
        stream.write(b"all")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"all"]
