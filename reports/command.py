"""``python -m reports render | goals | compare | history | baseline | admit``: what is made of records, anywhere."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from burstproof.errors import BurstproofError, ExitCode
from burstproof.network.files.atomic import make_folder
from reports import html
from reports.judge.compare import Comparison, compare
from reports.judge.goals import goal_lines, goal_rows, measured_goals, unmeasured_goals
from reports.judge.history import History
from reports.judge.summary import first_line
from reports.store import load_history, load_run, reasons_against_run, write_baseline, write_text
from reports.values import units
from reports.values.record import REPORT_NAME

_SHOWN = 12


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.action(options))
    except BurstproofError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)


def _render(options: argparse.Namespace) -> int:
    record = load_run(options.run)
    beside = options.run if options.run.is_dir() else options.run.parent
    _write(options.out or beside / REPORT_NAME, html.render(record))
    print(first_line(record))
    return ExitCode.PASS


def _goals(options: argparse.Namespace) -> int:
    record = load_run(options.run)
    rows = measured_goals(record) or goal_rows(record)
    print("\n".join(goal_lines(rows)))
    absent = unmeasured_goals(record) if measured_goals(record) else ()
    if absent:
        print(f"Not measured in this run either: {'; '.join(absent)}.")
    return ExitCode.PASS if any(row.is_measured for row in rows) else ExitCode.UNDECIDED


def _compare(options: argparse.Namespace) -> int:
    across = tuple(name for name in options.across.split(",") if name)
    comparison = compare([load_run(run) for run in options.runs], across=across, noise=options.noise)
    print(describe_comparison(comparison))
    if options.out:
        _write(options.out, html.render_template("compare.html.jinja", comparison=comparison))
    return comparison.exit_code


def _history(options: argparse.Namespace) -> int:
    history = load_history(options.folder)
    print(describe_history(history))
    if options.out:
        _write(options.out, html.render_template("history.html.jinja", history=history))
    return ExitCode.PASS


def _baseline(options: argparse.Namespace) -> int:
    path = write_baseline(options.out, load_run(options.run))
    print(f"wrote {path}, {path.stat().st_size} bytes")
    return ExitCode.PASS


def _admit(options: argparse.Namespace) -> int:
    reasons = reasons_against_run(options.run)
    print(f"not to be quoted, for {units.counted(len(reasons), 'reason')}:" if reasons else "may be quoted")
    print(*(f"  {reason}" for reason in reasons), sep="\n", end="\n" if reasons else "")
    return ExitCode.FAIL if reasons and options.strict else ExitCode.PASS


def describe_comparison(comparison: Comparison) -> str:
    """A comparison as lines of text, the outcome first."""
    bad = comparison.regressions
    outcome = units.counted(len(bad), "confirmed regression") if bad else "no confirmed regression"
    if bad or comparison.rows:
        lines = [f"{outcome} against {comparison.runs[0]}; {len(comparison.rows)} figures compared."]
    else:
        lines = [f"nothing could be compared with {comparison.runs[0]}: no figure stands in both runs."]
    lines += [f"  regression: {text}" for text in bad]
    for row in comparison.rows:
        for run, pair in zip(comparison.runs[1:], row.candidates, strict=True):
            words = f"{pair[1].change.value}, {row.baseline} -> {pair[0]} (x{pair[1].ratio:.3f})" if pair else "missing"
            lines.append(f"  {row.name} ({row.conditions}) in {run}: {words}")
    lines += _first("differs", [f"{name}: {' | '.join(texts)}" for name, texts in comparison.environment])
    lines += _first("in one run only", comparison.unpaired)
    return "\n".join(lines)


def _first(what: str, texts: Sequence[str]) -> list[str]:
    """The first few of ``texts`` as lines, and how many more there are."""
    more = [f"  {what}: and {len(texts) - _SHOWN} more; --out FILE writes all"] if len(texts) > _SHOWN else []
    return [*(f"  {what}: {text}" for text in texts[:_SHOWN]), *more]


def describe_history(history: History) -> str:
    """A history as lines of text."""
    lines = [f"{units.counted(len(history.runs), 'run')}, {len(history.trends)} measurements followed."]
    lines += [f"  {started} {run}: {verdict}" for run, started, verdict in history.runs]
    for trend in history.trends:
        change = f", last change: {trend.change.change.value}" if trend.change else ""
        lines.append(f"  {trend.name} ({trend.conditions}): {trend.first} -> {trend.last}{change}")
    lines += [f"  could not be read: {name}: {why}" for name, why in history.unreadable]
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    make_folder(path.parent)
    write_text(path, text)
    print(f"wrote {path}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m reports", description="Reports drawn from the records of runs.")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    render = actions.add_parser("render", help="draw the HTML report of a run again")
    render.add_argument("run", type=Path, help="run folder or record.json")
    render.set_defaults(action=_render)
    goals = actions.add_parser("goals", help="print the table of goals; exit 2 if the run measured none of them")
    goals.add_argument("run", type=Path, help="run folder or record.json")
    goals.set_defaults(action=_goals)
    several = actions.add_parser("compare", help="hold runs against the first; exit 1 on a confirmed regression")
    several.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run folders, the baseline first")
    several.add_argument("--across", default="", help="conditions that may differ within a pair, e.g. backend")
    several.add_argument("--noise", type=_share, default=0.03, help="relative difference of no account (default 0.03)")
    several.set_defaults(action=_compare)
    history = actions.add_parser("history", help="trend of each measurement over a folder of runs")
    history.add_argument("folder", type=Path, help="folder that holds run folders")
    history.set_defaults(action=_history)
    baseline = actions.add_parser("baseline", help="keep a run as a record small enough to commit")
    baseline.add_argument("run", type=Path, help="run folder")
    baseline.add_argument("out", type=Path, help="folder under reports/baselines/")
    baseline.set_defaults(action=_baseline)
    admit = actions.add_parser("admit", help="say whether a record may be quoted, and why not")
    admit.add_argument("run", type=Path, help="run folder or record.json")
    admit.add_argument("--strict", action="store_true", help="exit 1 if it may not")
    admit.set_defaults(action=_admit)
    for action in (render, several, history):
        action.add_argument("--out", type=Path, help="HTML file to write")
    return parser


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text} is outside 0 to 1")
    return value


class _Parser(argparse.ArgumentParser):
    """Exits with the project's usage code, 4, where argparse says 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Say what is wrong and exit."""
        self.print_usage(sys.stderr)
        self.exit(int(ExitCode.USAGE), f"error: {message}\n")
