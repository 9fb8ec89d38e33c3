"""The progress of a stage: cases done and in total, the slowest so far, and the time left.

The time left is estimated from the durations of the cases in an earlier run, which are kept in the user's cache;
without an earlier run, from the rate so far.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from burstproof.errors import BurstproofError
from burstproof.network.files.atomic import make_folder
from burstproof.regular_file import read_regular
from burstproof.user_cache import cache_folder
from stages.collected import read_collection
from stages.run_folder import write_json

_FOLDER = "durations"
_MOST_BYTES = 1 << 24  # of a file with durations
_WIDTH = 60  # of a case in the line
_TELLING = 0.05  # share of the earlier time that must have passed before the pace of this machine is used


@dataclass
class Progress:
    """Follows the results file of a running stage; each line is read once.

    Parameters
    ----------
    results : Path
        Result lines of the plugin; they may not exist yet.
    collection : Path
        What pytest collected; it may not exist yet.
    earlier : mapping
        Duration in seconds of each case in an earlier run of the same stage and plan.
    kept : frozenset of str
        Cases of earlier sittings, whose time is not part of the elapsed time.
    """

    results: Path
    collection: Path
    earlier: Mapping[str, float] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    done: dict[str, float] = field(default_factory=dict)
    collected: int = 0
    _read: int = 0

    def look(self) -> None:
        """Read the lines written since the last call; an incomplete line is left for the next call."""
        if not self.collected:
            found = read_collection(self.collection)
            self.collected = len(found.collected) - len(found.deselected) if found is not None else 0
        if not self.results.is_file():
            return
        with self.results.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._take(json.loads(line))

    def _take(self, value: Mapping[str, object]) -> None:
        if "case" in value:
            self.done[str(value["case"])] = float(str(value["duration_s"]))

    @property
    def total(self) -> int:
        """Number of cases: as collected, or until that is known as in the earlier run; 0 if neither is known."""
        return max(self.collected or len(self.earlier), len(self.done))

    def left_s(self, elapsed_s: float) -> float | None:
        """Estimate of the seconds left after ``elapsed_s``; ``None`` as long as there is nothing to estimate from."""
        all_s = sum(duration for case, duration in self.earlier.items() if case not in self.kept)
        done_s = sum(self.earlier.get(case, 0.0) for case in self.done if case not in self.kept)
        if all_s > 0.0:
            pace = elapsed_s / done_s if done_s >= _TELLING * all_s else 1.0
            return pace * (all_s - done_s)
        done = len(self.done) - len(self.kept)
        return elapsed_s * (self.total - len(self.done)) / done if done > 0 and self.collected else None

    def line(self, elapsed_s: float, width: int = 200) -> str:
        """Return ``120 of 480 cases, slowest test_large (4 s), about 2 min left``; ``width`` cuts the name."""
        of, left = f" of {self.total}" if self.total else "", self.left_s(elapsed_s)
        begin = f"{len(self.done)}{of} cases"
        end = "" if left is None else f", {'about ' if left >= 1.0 else ''}{_time(left)} left"
        if not self.done:
            return begin + end
        case, duration = max(self.done.items(), key=lambda item: item[1])
        name, took = case.rpartition("::")[2], f" ({_time(duration)})"
        room = max(0, min(_WIDTH, width - len(f"{begin}, slowest {took}{end}")))
        name = name if len(name) <= room else f"{name[: max(0, room - 3)]}..."
        return f"{begin}, slowest {name}{took}{end}"


def earlier_durations(stage: str, plan: str) -> Mapping[str, float]:
    """Duration of each case in seconds when this user last ran the stage to its end; empty if that is not known."""
    path = _file(stage, plan)
    if path is None:
        return {}
    try:
        kept = json.loads(read_regular(path, _MOST_BYTES))
        found = {str(case): float(duration) for case, duration in kept.items()}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}
    return found if all(0.0 <= duration < math.inf for duration in found.values()) else {}


def keep_durations(stage: str, plan: str, durations: Mapping[str, float]) -> None:
    """Keep the durations for the next run, if the cache can be written."""
    path = _file(stage, plan)
    if path is None:
        return
    try:
        make_folder(path.parent)
        write_json(path, {case: round(duration, 3) for case, duration in durations.items()})
    except (OSError, BurstproofError):
        return


def _file(stage: str, plan: str) -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / _FOLDER / f"{stage}-{plan}.json"


def _time(seconds: float) -> str:
    if seconds < 1.0:
        return "under a second"
    return f"{seconds:.0f} s" if seconds < 100.0 else f"{seconds / 60.0:.0f} min"
