"""The list of cases that prove requirements, by file and test function. The matrix of requirements links to it.

A case proves up to a dozen requirements, and its id has a hundred characters. If each requirement named its cases, they
would be half of a report; here each is named once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.braces import braced
from reports.judge.trace import TraceRow


@dataclass(frozen=True)
class Function:
    """A test function and those of its cases that prove something.

    ``anchor`` is its id on the page. ``cases`` has the parameters of each case as in its id: ``[cpu-3]``, or empty.
    """

    anchor: str
    name: str
    cases: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many cases there are."""
        return len(self.cases)

    @property
    def text(self) -> str:
        """The cases in brace notation (:mod:`reports.braces`); empty for a function without parameters."""
        return _in_short(self.cases)


@dataclass(frozen=True)
class Proof:
    """The cases of a function that prove one requirement."""

    function: Function
    cases: tuple[str, ...]

    @property
    def extent(self) -> str:
        """The number of cases, and which ones if not all; empty for a function that is one case."""
        count, whole = len(self.cases), self.function.count
        if count < whole:
            return f"({count} of {whole}: {_in_short(self.cases)})"
        return f"({count})" if whole > 1 else ""


@dataclass(frozen=True)
class Evidence:
    """Test functions by file, and the proofs by requirement and file."""

    files: Mapping[str, Sequence[Function]]
    proofs: Mapping[str, Mapping[str, Sequence[Proof]]]

    @property
    def case_count(self) -> int:
        """How many cases prove something."""
        return sum(function.count for functions in self.files.values() for function in functions)


def evidence_of(rows: Sequence[TraceRow]) -> Evidence:
    """Group the cases of the matrix; files and cases keep their order."""
    every = _grouped(dict.fromkeys(case for row in rows for case in row.cases))
    known = {
        place: Function(f"f{number}", place[1], tuple(cases)) for number, (place, cases) in enumerate(every.items())
    }
    files: dict[str, list[Function]] = {}
    for (file, _), function in known.items():
        files.setdefault(file, []).append(function)
    return Evidence(files, {row.requirement.id: _proofs(row.cases, known) for row in rows})


_Place = tuple[str, str]
"""File and name of a test function."""


def _grouped(cases: Iterable[str]) -> dict[_Place, list[str]]:
    """The parameters of the cases, by test function."""
    found: dict[_Place, list[str]] = {}
    for case in cases:
        stem, bracket, parameters = case.partition("[")
        file, _, name = stem.rpartition("::")
        found.setdefault((file.removeprefix("suites/"), name), []).append(bracket + parameters)
    return found


def _in_short(cases: Iterable[str]) -> str:
    """Cases in brace notation; pytest puts a dash before their last parameter."""
    found = braced((case.removeprefix("[").removesuffix("]") for case in cases), "-")
    return " ".join(f"[{one}]" for one in found if one)


def _proofs(cases: Iterable[str], known: Mapping[_Place, Function]) -> dict[str, list[Proof]]:
    found: dict[str, list[Proof]] = {}
    for place, parameters in _grouped(cases).items():
        found.setdefault(place[0], []).append(Proof(known[place], tuple(parameters)))
    return found
