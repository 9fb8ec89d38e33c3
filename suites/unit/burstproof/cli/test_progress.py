"""A progress bar appears for slow tasks on a terminal, and a line elsewhere."""

from __future__ import annotations

import io
import sys
import time

import pytest

from burstproof.cli import progress

pytestmark = pytest.mark.requirement("BE-18")


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_bar_appears_for_slow_tasks_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOW_AFTER_S", 0.0)
    for shown, stream, expected in ((True, Terminal(), True), (False, Terminal(), False), (True, io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.task("growing [brain]", 3, shown=shown) as bar:
            bar.advance(1)
            bar.reach(2, 3)
            time.sleep(0.3)
            bar.rename("grown")
            time.sleep(0.3)
        assert ("growing [brain]" in stream.getvalue()) is expected
        assert ("grown" in stream.getvalue()) is expected


@pytest.mark.parametrize(("shown", "said"), [(True, "burstproof: growing [brain]\n"), (False, "")])
def test_a_log_gets_a_line_for_each_slow_task(monkeypatch: pytest.MonkeyPatch, shown: bool, said: str) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(progress, "TELL_AFTER_S", 0.0)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.task("growing [brain]", 3, shown=shown) as bar:
        time.sleep(0.3)
        bar.advance(3)
        bar.rename("grown")
    assert stream.getvalue() == said


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "log"])
def test_a_quick_task_draws_nothing(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    for name in ("SHOW_AFTER_S", "TELL_AFTER_S"):
        monkeypatch.setattr(progress, name, 60.0)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.task("quick", 3) as bar:
        bar.advance(3)
    assert stream.getvalue().strip() == ""
