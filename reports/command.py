"""``python -m reports ACTION``: reports drawn from records, on any machine."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from burstproof.door import UsageParser, refuse_bare_dashes
from burstproof.errors import BurstproofError, ExitCode, InputError
from burstproof.network.files.atomic import make_folder
from reports import compared, html
from reports.compared import describe, describe_across, describe_history, markdown, strict_text
from reports.judge.absent import idle_lines
from reports.judge.across import across
from reports.judge.compare import Comparison, compare
from reports.judge.detection import measure_page, measure_rates, rates_table
from reports.judge.difference import NOISE
from reports.judge.goals import goal_lines, goal_rows
from reports.judge.judging import targets_sha256
from reports.judge.rightness import rightness
from reports.judge.summary import first_line
from reports.judge.targets import load_targets
from reports.judge.verdict import judge_cases
from reports.store import (
    BASELINES,
    load_history,
    load_records,
    load_run,
    reasons_against_run,
    standing_of,
    targets_of,
    write_baseline,
    write_text,
)
from reports.values import units
from reports.values.machine import machine_of
from reports.values.record import BASELINE_NAME, RECORD_NAME, REPORT_NAME

_OF_SIDES = ("base", "new", "noise", "history", "any_machine", "strict", "markdown")
"""Options of ``compare`` that need two sides, so that ``--across`` refuses them."""

_PAGES = (".html", ".md")
"""Extensions of files in the folder of a run that may be overwritten."""

_OF_RUNS = ("plan.json", RECORD_NAME, BASELINE_NAME)
"""Files by which the folder of a run is recognised."""

_NOISY = 30
"""Number of noisy figures on the second simulated page."""

_TRIES_A_PAGE = 10
"""Comparisons for each simulated page, which has hundreds of figures."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    try:
        refuse_bare_dashes(sys.argv[1:] if arguments is None else arguments)
        options = _parser().parse_args(arguments)
        return int(options.action(options))
    except BurstproofError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)


def _render(options: argparse.Namespace) -> int:
    record = load_run(options.run)
    beside = options.run if options.run.is_dir() else options.run.parent
    targets, note = targets_of(beside), ""
    if options.targets:
        if not options.out:
            cure = "Name another file; the run keeps the report of its own judging."
            raise InputError("--targets without --out", where="render", cure=cure)
        targets = load_targets(options.targets)
        record = replace(record, judgements=judge_cases(record.cases, targets))
        note = (
            f"Judged for this page with the targets of {options.targets.name} (targets {targets_sha256(targets)[:12]})."
        )
    _write(options.out or beside / REPORT_NAME, html.render(record, targets, note, standing_of(record)))
    print(first_line(record), *(idle_lines(record, targets) if options.targets else ()), sep="\n")
    return ExitCode.PASS


def _goals(options: argparse.Namespace) -> int:
    record = load_run(options.run)
    targets = targets_of(options.run if options.run.is_dir() else options.run.parent)
    rows = goal_rows(record, targets)
    print(rightness(record)[1], "", *goal_lines(rows, every=options.all), sep="\n")
    return ExitCode.PASS if any(row.is_measured for row in rows) else ExitCode.UNDECIDED


def _compare(options: argparse.Namespace) -> int:
    if options.across:
        return _across(options)
    _check_outputs(options.out, options.markdown)
    comparisons = _comparisons(options)
    print("\n\n".join(map(describe, comparisons)))
    if options.out:
        _write(options.out, html.render_template("compare.html.jinja", comparisons=comparisons, wording=compared))
    if options.markdown:
        _write(options.markdown, "\n".join(map(markdown, comparisons)))
    if options.strict:
        print(*filter(None, map(strict_text, comparisons)), sep="\n", end="")
    codes = [comparison.exit_code(strict=options.strict) for comparison in comparisons]
    return ExitCode.FAIL if ExitCode.FAIL in codes else max(codes)


def _comparisons(options: argparse.Namespace) -> list[Comparison]:
    """One comparison of the two sides, or a comparison of each further run with the first."""
    if bool(options.base) is not bool(options.new) or bool(options.runs) is bool(options.base):
        raise InputError("give two runs or more, or --base RUN... and --new RUN...", got=[str(r) for r in options.runs])
    if options.runs and len(options.runs) < 2:
        cure = "Name the run to compare with first, then the others"
        raise InputError("a comparison takes two runs or more", got=len(options.runs), cure=cure)
    for side in (options.base, options.new):
        _refuse_repeated(side)
    base = [load_run(run) for run in options.base or options.runs[:1]]
    sides = [options.new] if options.new else [[run] for run in options.runs[1:]]
    history, unreadable = load_records(options.history, {machine_of(run) for run in base})
    for name, why in unreadable:
        print(f"not used: {name}: {why}", file=sys.stderr)
    return [
        compare(
            base,
            [load_run(run) for run in side],
            noise=options.noise,
            history=history,
            any_machine=options.any_machine,
        )
        for side in sides
    ]


def _refuse_repeated(side: Sequence[Path]) -> None:
    """Refuse a run that is given twice: it would count as two runs, and several runs confirm a change."""
    seen: dict[str, Path] = {}
    for path in side:
        name = load_run(path).seal or str(path.resolve())
        if seen.setdefault(name, path) is not path:
            raise InputError("one run given twice on a side", where="compare", got=[str(seen[name]), str(path)])


def _across(options: argparse.Namespace) -> int:
    runs = options.runs
    if not runs:
        raise InputError(
            "--across takes a run or more", cure="Name the runs whose figures it is to set beside each other"
        )
    idle = [name for name in _OF_SIDES if getattr(options, name) not in (False, None, [], NOISE, BASELINES)]
    if idle:
        given = ", ".join(f"--{name.replace('_', '-')}" for name in idle)
        raise InputError("--across has no two sides, so these options do nothing", got=given, cure="Leave them out.")
    records = [load_run(run) for run in runs]
    tables = across(records, options.across)
    print(describe_across(tables) or f"no figure was measured for two values of {options.across}")
    if options.out:
        values = {"condition": options.across, "tables": tables, "runs": [record.run_id for record in records]}
        _write(options.out, html.render_template("across.html.jinja", **values))
    return ExitCode.PASS if tables else ExitCode.UNDECIDED


def _detection(options: argparse.Namespace) -> int:
    pages = max(1, options.tries // _TRIES_A_PAGE)
    many = [measure_page(pages, noisy=noisy) for noisy in (0, _NOISY)]
    print(rates_table((*measure_rates(options.tries), *many)))
    return ExitCode.PASS


def _history(options: argparse.Namespace) -> int:
    history = load_history(options.folder)
    print(describe_history(history))
    if options.out:
        _write(options.out, html.render_template("history.html.jinja", history=history, wording=compared))
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


def _check_outputs(out: Path | None, markdown: Path | None) -> None:
    """Refuse evidence, before anything is written, and one file given for both options."""
    for path, option in ((out, "--out"), (markdown, "--markdown")):
        if path:
            _refuse_evidence(path, option)
    if out and markdown and os.path.realpath(out) == os.path.realpath(markdown):
        cure = "Name two files: the page, and the Markdown."
        raise InputError("one file given as --out and as --markdown", where="compare", got=str(out), cure=cure)


def _refuse_evidence(path: Path, option: str = "--out") -> None:
    """Refuse to overwrite a record, or any other file in a run's folder that is no page; links are followed."""
    names = [Path(os.path.abspath(path)), Path(os.path.realpath(path))]
    if any(name.name in (RECORD_NAME, BASELINE_NAME) for name in names):
        raise InputError("a record is written by its run alone", where=option, got=str(path), cure="Name another file.")
    is_page = all(name.suffix.lower() in _PAGES for name in names)
    folders = {folder for name in names for folder in name.parents}
    in_a_run = any(os.path.isfile(folder / name) for folder in folders for name in _OF_RUNS)
    if os.path.exists(path) and in_a_run and not is_page:
        cure = "Name a new file, or one that ends in .html or .md."
        raise InputError("this file is evidence of a run", where=option, got=str(path), cure=cure)


def _write(path: Path, text: str) -> None:
    _refuse_evidence(path)
    make_folder(path.parent)
    write_text(path, text)
    print(f"wrote {path}")


def _parser() -> argparse.ArgumentParser:
    parser = UsageParser(prog="python -m reports", description="Reports drawn from the records of runs.")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    render = actions.add_parser("render", help="draw the HTML report of a run again")
    render.add_argument("run", type=Path, help="run folder or record.json")
    render.add_argument("--targets", type=Path, metavar="FILE", help="judge by the targets of this file too")
    render.set_defaults(action=_render)
    goals = actions.add_parser("goals", help="print the table of goals; exit 2 if the run measured none of them")
    goals.add_argument("run", type=Path, help="run folder or record.json")
    goals.add_argument("--all", action="store_true", help="also list goals that were not measured")
    goals.set_defaults(action=_goals)
    several = actions.add_parser("compare", help="compare runs; exit 1 on a confirmed regression")
    _add_compare(several)
    history = actions.add_parser("history", help="trend of each measurement over a folder of runs")
    history.add_argument("folder", type=Path, help="folder that holds run folders")
    history.set_defaults(action=_history)
    baseline = actions.add_parser("baseline", help="keep a run as a record small enough to commit")
    baseline.add_argument("run", type=Path, help="run folder")
    baseline.add_argument("out", type=Path, help="folder under reports/baselines/")
    baseline.set_defaults(action=_baseline)
    detection = actions.add_parser("detection", help="simulate how often the comparison is right")
    detection.add_argument("--tries", type=_count, default=1000, help="comparisons of each kind (default 1000)")
    detection.set_defaults(action=_detection)
    admit = actions.add_parser("admit", help="say whether a record may be quoted, and why not")
    admit.add_argument("run", type=Path, help="run folder or record.json")
    admit.add_argument("--strict", action="store_true", help="exit 1 if it may not")
    admit.set_defaults(action=_admit)
    for action in (render, several, history):
        action.add_argument("--out", type=Path, help="HTML file to write")
    return parser


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN", help="run folders, the baseline first")
    for name, what in (("--base", "old"), ("--new", "new")):
        parser.add_argument(
            name, type=Path, nargs="+", default=[], metavar="RUN", help=f"runs of the {what} side, taken in turns"
        )
    parser.add_argument("--across", default="", metavar="CONDITION", help="figures side by side, e.g. backend")
    parser.add_argument("--noise", type=_share, default=NOISE, help="relative change that is ignored (default 0.03)")
    parser.add_argument("--history", type=Path, default=BASELINES, help="folder of runs that show how much runs vary")
    parser.add_argument("--any-machine", action="store_true", help="judge as if all runs came from one machine")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit 1 also if anything is slower or vanished, 2 if a figure is undecided",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write 30 lines at most for a pull request")
    parser.set_defaults(action=_compare)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of comparisons, 1 or more")
    return int(text)


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text} is outside 0 to 1")
    return value
