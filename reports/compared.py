"""Comparisons as text: one sentence, lines for a terminal, Markdown for a pull request."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median as middle

from burstproof.errors import ExitCode, visible
from reports.judge.across import AcrossTable, Cell
from reports.judge.compare import Comparison, Relation, Row
from reports.judge.difference import EQUAL, LEAST_RUNS, Change
from reports.judge.findings import Finding
from reports.judge.history import History
from reports.judge.pairing import titled
from reports.judge.thermometer import Kind
from reports.values import units
from reports.values.grouped import grouped

MARKDOWN_LINES = 30
_TIMES = "\N{MULTIPLICATION SIGN}"
_THERMOMETER = {Kind.LIMIT: "limits of the machine", Kind.PEER: "other people's code"}
_STEADY = (Change.SAME, Change.UNKNOWN)
_ROWS = 20
_ROUNDING = 0.005
"""If change and shown figures differ by more than this, as a logarithm, both are shown."""

_ALIKE = 1.0005
_NAMED = 12
_MARKDOWN_ROWS = 12
_PAGE_ROWS = 25


def sentence(comparison: Comparison) -> str:
    """The outcome of a comparison in one sentence."""
    if not comparison.rows and not comparison.thermometer:
        cure = "Compare runs of the same stages and plan; stage 6 has most figures"
        return f"Nothing could be compared with {comparison.base.label}: no figure is in both. {cure}."
    return f"{_outcome(comparison)}: {_shares(comparison)}."


def _outcome(comparison: Comparison) -> str:
    if not comparison.counts:
        what = "Two machines of one class" if comparison.relation is Relation.CLASS else "Different machines"
        cases = f"; {units.counted(len(comparison.cases), 'case')} with another verdict" if comparison.cases else ""
        return f"{what}, compared as machines; nothing counts as a regression{cases}"
    bad = [units.counted(len(comparison.regressions), "confirmed regression")] if comparison.regressions else []
    if comparison.worse_cases:
        bad.append(f"{units.counted(len(comparison.worse_cases), 'case')} that passed and now fails")
    if bad:
        return " and ".join(bad)
    if len(comparison.base.runs) == 1 or len(comparison.new.runs) == 1:
        return "One run a side confirms nothing"
    return "No confirmed regression"


def _shares(comparison: Comparison) -> str:
    """How many figures are slower, faster, the same or unknown, with the largest changes."""
    parts = []
    for rows, word in ((comparison.slower, "slower or worse"), (comparison.faster, "faster or better")):
        largest = f" (most: {rows[0].name}, {change_text(rows[0])})" if rows else ""
        parts.append(f"{len(rows)} {word}{largest}")
    parts += [f"{sum(row.change is kind for row in comparison.rows)} {kind.value}" for kind in _STEADY]
    return f"of {units.counted(len(comparison.rows), 'figure')} {', '.join(parts)}"


def change_text(row: Row) -> str:
    """The change as text: a percentage up to a factor of two, else the factor and whether it is better."""
    ratio = row.difference.ratio
    if not 0.0 < ratio < math.inf:
        return row.difference.reason
    if 0.5 < ratio < 2.0:
        return _share(ratio)
    gain = row.gain if row.gain >= 1.0 else 1.0 / row.gain
    return f"{gain:.3g}{_TIMES} {(Change.FASTER if row.gain > 1.0 else Change.SLOWER).word(row.unit)}"


def interval_text(row: Row) -> str:
    """The interval of the change, and the change of the figures as shown if it is another one."""
    return "; ".join(filter(None, (_interval(row), _as_shown(row))))


def _interval(row: Row) -> str:
    interval = row.difference.interval
    if interval is None:
        return ""
    if 0.5 < row.difference.ratio < 2.0:
        return f"{_share(interval.low)} to {_share(interval.high)}"
    factors = sorted(1.0 / end if row.difference.ratio < 1.0 else end for end in (interval.low, interval.high))
    return f"{factors[0]:.3g}{_TIMES} to {factors[1]:.3g}{_TIMES}"


def _as_shown(row: Row) -> str:
    """The change of the figures as shown; empty if it equals the change, from which a drift may have been removed."""
    shown, ratio = row.shown_ratio, row.difference.ratio
    if not (0.0 < ratio < math.inf and shown > 0.0) or abs(math.log(shown / ratio)) < _ROUNDING:
        return ""
    factor = f"{max(shown, 1.0 / shown):.3g}{_TIMES}"
    return f"{_share(shown) if 0.5 < shown < 2.0 else factor} as shown"


def _share(ratio: float) -> str:
    return f"{100.0 * (ratio - 1.0):+.1f} %"


def thermometer_lines(comparison: Comparison) -> list[str]:
    """How the figures of the thermometer changed: limits of the machine, other people's code."""
    lines = []
    for kind, whose in _THERMOMETER.items():
        rows = [row for row in comparison.thermometer if row.kind is kind]
        gains = [row.gain for row in rows if row.lower_is_better is not None and 0.0 < row.gain < math.inf]
        if gains:
            ends = (_gain(min(gains)), _gain(max(gains)))
            span = "" if ends[0] == ends[1] else f", from {ends[0]} to {ends[1]}"
            figures = units.counted(len(gains), "figure")
            moved = abs(middle(gains) - 1.0) > comparison.noise
            machine = "; so much of a difference may be the machine's" if moved else ""
            lines.append(f"{whose}: {_gain(middle(gains))} at the median of {figures}{span}{machine}")
    return lines


def _gain(gain: float) -> str:
    factor, word = max(gain, 1.0 / gain), "better" if gain >= 1.0 else "worse"
    if factor < _ALIKE:
        return "the same"
    return f"{factor:.3g}{_TIMES} {word}" if factor >= 2.0 else f"{100.0 * abs(gain - 1.0):.1f} % {word}"


def folded(comparison: Comparison) -> tuple[list[Row], list[Row]]:
    """Rows to show, and rows that hardly changed: the same, or unknown and within the noise."""

    def steady(row: Row) -> bool:
        small = abs(row.difference.ratio - 1.0) <= comparison.noise
        return row.change is Change.SAME or (row.change is Change.UNKNOWN and small)

    return [row for row in comparison.rows if not steady(row)], [row for row in comparison.rows if steady(row)]


def leading(rows: Sequence[Row], most: int = _PAGE_ROWS) -> tuple[list[Row], list[Row]]:
    """Split rows into those that are shown, the first ``most`` and every confirmed change, and the others."""
    first = [row for place, row in enumerate(rows) if place < most or _is_confirmed(row)]
    return first, [row for row in rows if row not in first]


def counts_text(rows: Sequence[Row]) -> str:
    """Rows by verdict: ``3 slower, 70 cannot tell``."""
    return ", ".join(f"{count} {word}" for word, count in Counter(row.word for row in rows).items())


def steady_text(comparison: Comparison, steady: Sequence[Row]) -> str:
    """The rows that hardly changed, by verdict, and the noise."""
    return f"{counts_text(steady)}, changed by {100.0 * comparison.noise:g} % at most"


def smaller_text(rows: Sequence[Row]) -> str:
    """The number of rows that are not listed, by verdict."""
    return f"{units.counted(len(rows), 'more change')}: {counts_text(rows)}"


def usual_reason(comparison: Comparison) -> str:
    """The most frequent reason of figures that are not equal, if several have it; it is printed once for all."""
    timed = (row for row in (*comparison.rows, *comparison.thermometer) if not row.is_counted)
    reasons = Counter(row.difference.reason for row in timed if row.difference.reason != EQUAL)
    reason, count = max(reasons.items(), key=lambda one: one[1], default=("", 0))
    return reason if count > 1 else ""


def usual_lines(comparison: Comparison) -> list[str]:
    """A line with the usual reason, if there is one."""
    reason = usual_reason(comparison)
    return [f"where a row says nothing else: {reason}"] if reason else []


def own_reason(row: Row, usual: str) -> str:
    """The reason of a row; empty if it is the usual one, or if figures or change say it already."""
    return "" if row.difference.reason in (usual, EQUAL, change_text(row)) else row.difference.reason


def describe(comparison: Comparison) -> str:
    """A comparison as lines of text, the outcome first."""
    shown, steady = folded(comparison)
    usual = usual_reason(comparison)
    lines = [sentence(comparison), *machine_lines(comparison)]
    lines += [f"  {line}" for line in apart_lines(comparison)]
    lines += [f"  {line}" for line in usual_lines(comparison)]
    lines += [f"  {line}" for line in thermometer_lines(comparison)]
    lines += [f"  now fails: {case.case} ({case.before.value} → {case.after.value})" for case in comparison.worse_cases]
    first, others = leading(shown, _ROWS)
    lines += [f"  {_line(row, own_reason(row, usual))}" for row in first]
    if others:
        lines.append(f"  and {smaller_text(others)}; --out FILE writes all")
    if steady:
        lines.append(f"  not listed: {steady_text(comparison, steady)}")
    lines += [f"  {line}" for line in finding_lines(comparison.findings, named=3)]
    lines += _first("differs", [f"{name}: {old} | {new}" for name, old, new in comparison.environment])
    return "\n".join(lines)


def strict_text(comparison: Comparison) -> str:
    """A line that says why ``--strict`` changes the exit code; empty if it does not."""
    code = comparison.exit_code(strict=True)
    if code is comparison.exit_code():
        return ""
    kinds = dict(Counter(finding.kind for finding in comparison.findings))
    if comparison.counts:
        kinds |= {"slower or worse": len(comparison.slower), "cannot tell": len(comparison.undecided)}
    more = f"; {LEAST_RUNS} runs a side or more, in turns, can tell" if not comparison.confirms else "; take more runs"
    found = ", ".join(f"{kind} {count}" for kind, count in kinds.items() if count)
    return f"Exit code {int(code)} for --strict: {found}{more if code is ExitCode.UNDECIDED else ''}.\n"


def _is_confirmed(row: Row) -> bool:
    return row.confirmed and row.change in (Change.SLOWER, Change.FASTER)


def machine_lines(comparison: Comparison) -> list[str]:
    """The two sides with their machines, as lines."""
    base, new = comparison.base, comparison.new
    if comparison.relation is Relation.SAME:
        return [f"  {base.label} → {new.label} on {base.machine.label}"]
    return [f"  old: {base.label} on {base.machine.label}", f"  new: {new.label} on {new.machine.label}"]


def apart_lines(comparison: Comparison) -> list[str]:
    """A line for each side with stages that only it was asked for."""
    sides = zip(comparison.apart, ("old", "new"), strict=True)
    return [f"{units.listed(stages)} only in the {side} run: not compared" for stages, side in sides if stages]


def finding_lines(findings: Sequence[Finding], named: int) -> list[str]:
    """A line for each kind of finding: their number, and the first ``named`` of them."""
    lines = []
    for kind, found in grouped(findings, lambda finding: finding.kind).items():
        texts = [finding.text for finding in found[:named]] + (["..."] if len(found) > named else [])
        lines.append(f"{kind}: {len(found)}: {'; '.join(texts)}")
    return lines


def _line(row: Row, reason: str) -> str:
    interval = interval_text(row)
    also = f" [{'; '.join(row.also)}]" if row.also else ""
    within = f" ({interval})" if interval else ""
    sure = "confirmed " if _is_confirmed(row) else ""
    change = f"{row.old} → {row.new}, {change_text(row)}{within}{also}"
    return "; ".join(filter(None, [f"{sure}{row.word}: {titled(row.key)}: {change}", reason]))


def markdown(comparison: Comparison) -> str:
    """A comparison for a pull request, in at most ``MARKDOWN_LINES`` lines."""
    shown, steady = folded(comparison)
    usual = usual_reason(comparison)
    about = [line.strip() for line in machine_lines(comparison)]
    about += [*apart_lines(comparison), *usual_lines(comparison), *thermometer_lines(comparison)]
    top = [f"**{_cell(sentence(comparison))}**", "", *(f"- {_cell(line)}" for line in about)]
    if comparison.worse_cases:
        names = "; ".join(case.case for case in comparison.worse_cases[:3])
        top.append(f"- now fail: {len(comparison.worse_cases)}: {_cell(names)}")
    bottom = [f"- {_cell(line)}" for line in finding_lines(comparison.findings, named=1)]
    differing = [name for name, _, _ in comparison.environment]
    if differing:
        bottom.append(f"- environment differs: {_cell(units.first_of(differing, 4))}")
    room = min(_MARKDOWN_ROWS, MARKDOWN_LINES - len(top) - len(bottom) - 6)
    table = ["", "| figure | old | new | change | verdict |", "|---|---|---|---|---|"] if shown else []
    table += [_markdown_row(row, own_reason(row, usual)) for row in shown[:room]]
    rest = [f"- {smaller_text(shown[room:])}"] if shown[room:] else []
    rest += [f"- not listed: {steady_text(comparison, steady)}"] if steady else []
    lines = [*top, *table, "", *rest, *bottom]
    return "\n".join(lines[:MARKDOWN_LINES]) + "\n"


def _markdown_row(row: Row, reason: str) -> str:
    interval = interval_text(row)
    change = f"{change_text(row)} ({interval})" if interval else change_text(row)
    sure = "confirmed " if _is_confirmed(row) else ""
    cells = (titled(row.key), row.old, row.new, change, ": ".join(filter(None, [f"{sure}{row.word}", reason])))
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Escape text so that it cannot end a Markdown cell or line, nor begin HTML; control characters become visible."""
    return visible(" ".join(text.replace("|", "\\|").replace("<", "&lt;").replace("`", "'").split()))


def _first(what: str, texts: Sequence[str]) -> list[str]:
    """The first few of ``texts`` as lines, and how many more there are."""
    more = [f"  {what}: and {len(texts) - _NAMED} more; --out FILE writes all"] if len(texts) > _NAMED else []
    return [*(f"  {what}: {text}" for text in texts[:_NAMED]), *more]


def describe_across(tables: Iterable[AcrossTable]) -> str:
    """Figures side by side as lines of text."""
    return "\n".join(
        f"{row.name} ({row.conditions}): "
        + " | ".join(f"{column} {_across_cell(cell)}" for column, cell in zip(table.columns, row.cells, strict=True))
        for table in tables
        for row in table.rows
    )


def _across_cell(cell: Cell | None) -> str:
    if cell is None:
        return "not measured"
    inside = [f"{cell.gain:.3g}{_TIMES}"] if cell.gain != 1.0 else []
    inside += [cell.conditions] if cell.conditions else []
    return f"{cell.value} ({', '.join(inside)})" if inside else cell.value


def describe_history(history: History) -> str:
    """A history as lines of text, machine by machine."""
    lines = []
    for one in history.machines:
        lines.append(
            f"{one.machine.label}: {units.counted(len(one.runs), 'run')}, {units.counted(len(one.trends), 'trend')}"
        )
        lines += [f"  {run.started_utc} {run.run_id} ({run.scope}): {run.verdict}" for run in one.runs]
        for trend in one.trends:
            where = f"{trend.name} ({trend.conditions})" if trend.conditions else trend.name
            lines.append(f"  {where}: {trend.first} → {trend.last}, last change: {trend.change.change.value}")
    lines += [f"could not be read: {name}: {why}" for name, why in history.unreadable]
    return "\n".join(lines)
