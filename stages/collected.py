"""What pytest collected: written by the process that collects, and later compared with the results and the sources."""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import pytest

from burstproof.errors import InputError
from reports.values.serialise import decode
from reports.values.units import first_of
from stages.asked_first import turn_of
from stages.time_limit import limit_of

_OWN = ("_pytest", "stages", "builtins")
_FILES = "test_*.py"


@dataclass(frozen=True)
class Collection:
    """The cases of a stage.

    Attributes
    ----------
    collected : tuple of str
        Node ids of all cases found, in order.
    deselected : tuple of str
        Those that an option, a conftest file or another plugin left out.
    plugins : tuple of str
        Plugins other than those of pytest and the test plan: packages, and conftest files relative to the checkout.
    longest_limit_s : float or None
        Longest time limit that a case states for itself, in seconds.
    sha256 : str
        Digest of ``collected`` and ``deselected``.
    """

    collected: tuple[str, ...]
    deselected: tuple[str, ...]
    plugins: tuple[str, ...]
    longest_limit_s: float | None
    sha256: str


class CollectionNotes:
    """A pytest plugin that writes down what was collected.

    Parameters
    ----------
    path : Path
        The file to write; every process that collects writes the same text.
    begun : iterable of str
        Cases that another process began and that do not run again.
    later : str
        Name of a gate whose cases a later process runs; empty: none.
    sooner : str
        Name of a gate of which this process runs the cases that ``first`` names, and no others; empty: none.
    first : sequence of str
        The texts of ``--first``.
    """

    def __init__(
        self, path: Path, begun: Iterable[str] = (), later: str = "", sooner: str = "", first: Sequence[str] = ()
    ) -> None:
        self._path = path
        self._elsewhere = set(begun)
        self._later, self._sooner, self._first = later, sooner, first
        self._found: list[str] = []

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note each case when it is found, before any plugin can remove it."""
        self._found.append(item.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out cases that another process runs."""
        self._elsewhere.update(item.nodeid for item in items if self._waits(item))
        items[:] = [item for item in items if item.nodeid not in self._elsewhere]

    def _waits(self, item: pytest.Item) -> bool:
        """Whether a later process runs the case."""
        gates = {gate for mark in item.iter_markers("gate") for gate in mark.args}
        if self._sooner:
            return self._sooner not in gates or turn_of(item.nodeid, self._first) == len(self._first)
        return self._later in gates

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write down the cases that were found, and those that will not run anywhere."""
        kept = {item.nodeid for item in session.items} | self._elsewhere
        gone = tuple(found for found in self._found if found not in kept)
        limits = [limit for item in session.items if (limit := limit_of(item)) is not None]
        plugins, digest = loaded_plugins(session.config), _digest(self._found, gone)
        collection = Collection(tuple(self._found), gone, plugins, max(limits, default=None), digest)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_name(f".{self._path.name}.{id(self)}")
        partial.write_text(json.dumps(asdict(collection), indent=1) + "\n", encoding="utf-8")
        partial.replace(self._path)


def loaded_plugins(config: pytest.Config) -> tuple[str, ...]:
    """Packages and conftest files that are loaded as plugins, sorted, without pytest and the test plan."""
    return tuple(sorted({name for plugin in config.pluginmanager.get_plugins() for name in _names(plugin, config)}))


def _names(plugin: object, config: pytest.Config) -> Iterable[str]:
    module = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
    file = getattr(plugin, "__file__", None)
    if isinstance(plugin, ModuleType) and file is not None and Path(file).name == "conftest.py":
        inside = Path(file).is_relative_to(config.rootpath)
        yield Path(file).relative_to(config.rootpath).as_posix() if inside else file
    elif module.split(".")[0] not in _OWN:
        yield module.split(".")[0]


def read_collection(path: Path) -> Collection | None:
    """Read what :class:`CollectionNotes` wrote; ``None`` if the file is missing, damaged or changed."""
    if not path.is_file():
        return None
    try:
        found = decode(Collection, json.loads(path.read_text(encoding="utf-8")), path.name)
    except (ValueError, RecursionError, InputError):
        return None
    return found if found.sha256 == _digest(found.collected, found.deselected) else None


def longest_limit_s(path: Path, default_s: float) -> float:
    """The longest time limit of a collected case in seconds, at least ``default_s``."""
    found = read_collection(path)
    return max(default_s, (found.longest_limit_s if found is not None else None) or 0.0)


def unaccounted(collection: Collection, reported: Iterable[str]) -> str:
    """Why collected and reported cases do not add up, with the numbers; empty if every collected case has a result.

    Parameters
    ----------
    collection : Collection
    reported : iterable of str
        Node ids with a result; ids of modules (without ``::``) do not count.
    """
    cases = [case for case in reported if "::" in case]
    twice = sorted({case for case in cases if cases.count(case) > 1}) if len(set(cases)) < len(cases) else []
    expected = set(collection.collected) - set(collection.deselected)
    lost = sorted(expected - set(cases))
    added = sorted(set(cases) - expected)
    if not (lost or added or twice):
        return ""
    counts = f"{len(collection.collected)} cases collected, {len(collection.deselected)} deselected, "
    counts += f"{len(cases)} reported"
    what = [("without a result", lost), ("never collected", added), ("reported twice", twice)]
    return "; ".join([counts, *(f"{first_of(names, 1)} {words}" for words, names in what if names)])


def uncollected(root: Path, suites: Sequence[str], collection: Collection, reported: Iterable[str]) -> tuple[str, ...]:
    """Test functions that the sources in the folders ``suites`` define and pytest did not collect.

    Of two functions with one name in a module or class pytest collects the last only: such a name is followed by
    ``, defined twice``. Modules with a result of their own (skipped, or not importable) are not searched.
    """
    seen = {case.partition("[")[0] for case in collection.collected} | {case for case in reported if "::" not in case}
    files = sorted({file for folder in suites for file in (root / folder).rglob(_FILES)})
    defined = ((file.relative_to(root).as_posix(), names) for file in files for names in _test_functions(file))
    found = ((f"{file}::{name}", file, number) for file, names in defined for name, number in names.items())
    return tuple(
        f"{case}, defined twice" if number > 1 else case
        for case, file, number in found
        if file not in seen and (case not in seen or number > 1)
    )


def _test_functions(file: Path) -> Iterator[Counter[str]]:
    """How often each test function is defined: in the module, and in each of its classes."""
    try:
        module = ast.parse(file.read_bytes())
    except SyntaxError:  # pytest says so itself
        return
    body = list(_statements(module))
    yield Counter(_test_names(body))
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield Counter(f"{node.name}::{name}" for name in _test_names(list(_statements(node))))


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a module or class, also those inside ``if``, ``try``, ``with`` and loops."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            yield from _statements(child)


def _test_names(body: Sequence[ast.stmt]) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in body if isinstance(node, kinds) and node.name.startswith("test")]
    return [one.name for one in functions if not any("fixture" in ast.unparse(mark) for mark in one.decorator_list)]


def _digest(collected: Sequence[str], deselected: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps([list(collected), list(deselected)]).encode()).hexdigest()
