"""Imports go one way and in no circle, and each driver binding has one door; checked on the source, nothing is run.

Imports inside functions count like any other, and so does a home written as ``package.module:name``. Imports for the
type checker alone make no circle when the program runs, but two modules that need each other's types are one module:
they count, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from burstproof.network.fixed_point import FixedPoint

pytestmark = [pytest.mark.requirement("ST-2"), pytest.mark.xdist_group("imports")]

CHECKOUT = Path(__file__).parents[2]
SOURCES = {
    "burstproof": CHECKOUT / "impl",
    "hardware": CHECKOUT,
    "reports": CHECKOUT,
    "stages": CHECKOUT,
    "suites": CHECKOUT,
}

PACKAGES = {
    "burstproof": set[str](),
    "hardware": {"burstproof"},
    "reports": {"hardware", "burstproof"},
    "stages": {"reports", "hardware", "burstproof"},
    "suites": {"stages", "reports", "hardware", "burstproof"},
}
"""What each package of the checkout may import of the others."""

_NETWORK = {"network", "network.synthetic", "network.files"}
_ENGINE = {"engine", "network", "errors", "regular_file"}

ROOMS = {
    "errors": set[str](),
    "version": set[str](),
    "user_cache": set[str](),
    "regular_file": set[str](),
    "parsing": set[str](),
    "termination": set[str](),
    "door": {"errors", "parsing", "termination"},
    "config": {"errors", "regular_file", "engine.registry", "engine.sharded"},
    "network": {"errors"},
    "network.grow": {"network", "errors"},
    "network.synthetic": {"network", "errors"},
    "network.files": {"network", "network.grow", "errors", "regular_file", "termination"},
    "device": {"errors"},
    "compile": {"device", "errors", "regular_file", "user_cache"},
    "engine": {"network", "network.files", "network.grow", "errors", "regular_file", "user_cache"},
    "engine.cpu": _ENGINE,
    "engine.wgpu": {*_ENGINE, "engine.ask_machine"},
    "engine.sharded": {*_ENGINE, "engine.cpu", "network.files"},
    "engine.cuda": {*_ENGINE, *_NETWORK, "engine.ask_machine", "engine.sharded", "device", "compile", "user_cache"},
    "engine.cluster": {*_ENGINE, "engine.cpu", "engine.cuda", "engine.sharded", "device"},
    "engine.ask_machine": {*_ENGINE, "engine.wgpu"},
    "engine.registry": {*_ENGINE, "engine.cpu", "engine.wgpu", "engine.cuda", "engine.sharded", "engine.cluster"},
    "engine.select": {*_ENGINE, "engine.registry", "config"},
    "tensor": {"compile", "device", "errors", "regular_file"},
    "fuzz": {*_ENGINE, "engine.registry", "engine.sharded"},
    "analysis": {*_ENGINE, "network.files"},
    "sources": {*_ENGINE, *_NETWORK, "network.grow"},
    "verification": {"session", *_ENGINE, "engine.registry"},
    "split": {"config", *_ENGINE, "engine.registry", "engine.select", "engine.sharded", "engine.cuda"},
    "session": {
        "analysis",
        "engine.ask_machine",
        "config",
        *_ENGINE,
        "engine.registry",
        "engine.select",
        "engine.sharded",
        "split",
    },
    "__main__": {"cli"},
}
"""What each room of ``burstproof`` may import of the others; ``cli`` may import all of them.

A module or package that has a row of its own is a room; what lies in it belongs to it, unless that has a row, too.
"""

DOORS = {"numba.cuda": "burstproof.device.numba_cuda", "pynvml": "hardware.nvml"}
"""The one module that may import a binding."""

REFERENCE = tuple(
    f"burstproof.engine.{name}"
    for name in (
        "reference",
        "reference_appearing",
        "reference_associative",
        "reference_features",
        "reference_memory",
        "reference_memory_state",
        "reference_numbers",
        "reference_plasticity",
        "reference_state",
    )
)
"""The executable specification."""

REFERENCE_TAKES = {
    "errors": {"NetworkError"},
    "engine.admission": {"check_network", "check_state", "refuse_large_sums"},
    "engine.feature_state": {"FeatureState", "MadeSynapses", "MemoryState"},
    "engine.interruption": {"KeepingFailure", "closed", "refuse_failed"},
    "engine.options": {"EngineOptions"},
    "engine.precision": {"Precision"},
    "engine.protocol": {"Engine", "Progress"},
    "engine.recorder": {"record_steps"},
    "engine.state": {
        "NO_PLAN",
        "NO_STIMULUS",
        "Burst",
        "EngineState",
        "Record",
        "Recording",
        "Stimulus",
        "StimulusPlan",
    },
    "engine.stimulus": {"check_stimulus", "coming_bursts", "planned"},
    "network.features": {"FIRST_MEMORY_ID", "Features", "Homeostat", "MemoryArea", "MemoryChange", "ModulatorKind"},
    "network.fixed_point": {"UNBOUNDED", "FixedPoint"},
    "network.model": {"Network"},
    "network.plasticity": {"PlasticMapping"},
    "network.schema": {"NO_LIMIT", "NeuronTable"},
}
"""What the specification may take from the package: values that go in and out, and the refusal of what none takes.

Nothing here computes anything of a burst. ``FixedPoint`` holds the scale as a value; of it only fields are used.
"""

DEVICE_PACKAGES = ("numba.cuda", "cupy", "cuda", "wgpu", "pynvml")
"""What the room ``network`` must not know; numba compiles its loops for the CPU."""


@dataclass(frozen=True)
class Import:
    """One module named in an import; ``name`` is what is taken from it, empty where the module itself is."""

    importer: str
    module: str
    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.module}{f' ({self.name})' if self.name else ''}"


@cache
def modules() -> dict[str, Path]:
    """Every module of the checkout by its dotted name."""
    found = {}
    for package, root in SOURCES.items():
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    """Every import of the checkout, wherever in a module it stands."""
    return tuple(found for name, path in modules().items() for found in imports_of(name, path.read_text("utf-8")))


def imports_of(importer: str, source: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(importer, alias.name, "", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(importer, node.level, node.module or "")
            yield from (_taken(importer, module, alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"\w+(\.\w+)+:\w+", str(node.value)):
            module, _, name = str(node.value).partition(":")
            yield Import(importer, module, name, node.lineno)
        elif isinstance(node, ast.Call) and _called(node.func) == "import_module":
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield Import(importer, str(first.value), "", node.lineno)


def _absolute(importer: str, level: int, module: str) -> str:
    """The module of ``from ..module import``, with ``level`` dots."""
    if not level:
        return module
    package = modules()[importer].name == "__init__.py"
    parts = importer.split(".")[: -(level - package) or None]
    return ".".join([*parts, *filter(None, [module])])


def _taken(importer: str, module: str, name: str, line: int) -> Import:
    """``from module import name``: ``name`` may be a module itself."""
    whole = f"{module}.{name}"
    return Import(importer, whole, "", line) if whole in {*modules(), *DOORS} else Import(importer, module, name, line)


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def room_of(module: str) -> str:
    """The room of a module of ``burstproof``; empty for the package itself and for other packages."""
    package, _, rest = module.partition(".")
    if package != "burstproof":
        return ""
    rooms = [room for room in ROOMS if lies_in(rest, room)]
    return max(rooms, key=len, default=rest.partition(".")[0])


def may_import(room: str, other: str) -> bool:
    return room == "cli" or other in {room, "version", *ROOMS.get(room, ())}


def lies_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The groups of two or more modules that reach each other: strongly connected components, by Tarjan."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for target in sorted(edges.get(module, ())):
            if target not in order:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], order[target])
        if low[module] == order[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            found.extend([sorted(group)] if len(group) > 1 else [])

    for module in sorted(edges):
        if module not in order:
            visit(module)
    return found


def edges_between(found: Iterable[Import]) -> dict[str, set[str]]:
    """The graph of imports. The package ``burstproof`` is no node: it names its modules, and none needs its names."""
    edges: dict[str, set[str]] = {}
    for one in found:
        if one.module in modules() and "burstproof" not in (one.module, one.importer) and one.module != one.importer:
            edges.setdefault(one.importer, set()).add(one.module)
    return edges


@pytest.mark.thorough("reads every module; the lint session does it, too")
def test_no_module_imports_itself_through_others() -> None:
    assert circles(edges_between(imports())) == []


def test_packages_import_one_way() -> None:
    wrong = []
    for one in imports():
        package, other = one.importer.partition(".")[0], one.module.partition(".")[0]
        if other in PACKAGES and other != package and other not in PACKAGES[package]:
            wrong.append(str(one))
    assert wrong == []


def test_rooms_of_the_package_import_one_way() -> None:
    """A room that is not in the table gets its row there, with what it may import."""
    inside = [one for one in imports() if room_of(one.importer) and room_of(one.module)]
    pairs = [(one, room_of(one.importer), room_of(one.module)) for one in inside]
    assert [str(one) for one, room, other in pairs if not may_import(room, other)] == []
    assert {room_of(name) for name in modules()} - {""} <= {"cli", *ROOMS}


def test_rooms_of_the_reports_import_one_way() -> None:
    """Values know nothing of judgement, judgement nothing of drawing, a figure nothing of other figures or the page."""
    allowed = {
        "reports.values": ("reports.values",),
        "reports.judge": ("reports.values", "reports.judge", "reports.git"),
        "reports.figures": ("reports.values", "reports.judge", "reports.drawing", "reports.rows"),
    }
    wrong = []
    for one in imports():
        room = next((room for room in allowed if lies_in(one.importer, room)), None)
        if room is not None and one.importer != room and lies_in(one.module, "reports"):
            wrong += [str(one)] if not any(lies_in(one.module, other) for other in allowed[room]) else []
    assert wrong == []


def test_modules_take_nothing_from_the_package_itself() -> None:
    """The package offers the public names to users; a module that took them from there would import itself."""
    assert [str(one) for one in imports() if one.module == "burstproof" and room_of(one.importer)] == []


def test_the_network_knows_no_device() -> None:
    inside = [one for one in imports() if room_of(one.importer) == "network"]
    assert [str(one) for one in inside if any(lies_in(one.module, package) for package in DEVICE_PACKAGES)] == []


def test_the_reference_shares_no_computation() -> None:
    """What the specification had in common with an engine could be wrong in both, and no comparison would tell."""
    for one in imports():
        if one.importer in REFERENCE and one.module not in REFERENCE and lies_in(one.module, "burstproof"):
            assert one.name in REFERENCE_TAKES.get(one.module.partition(".")[2], ()), str(one)


def test_the_reference_uses_no_method_of_a_scale() -> None:
    """The class ``FixedPoint`` also rounds and clamps, for the engines."""
    fields = set(FixedPoint.__dataclass_fields__)
    methods = {name for name in vars(FixedPoint) if not name.startswith("_")} - fields - {"dtype"}
    assert {"quantise", "add_up", "unit", "clamp_float", "scale"} == methods - {"from_values"}
    for module in REFERENCE:
        tree = ast.parse(modules()[module].read_text("utf-8"))
        assert not {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & methods


def test_cases_share_through_support() -> None:
    """No module takes anything from a test module, and what cases share knows no folder of cases."""
    inside = [one for one in imports() if lies_in(one.importer, "suites") and lies_in(one.module, "suites")]
    assert [str(one) for one in inside if ".test_" in one.module] == []
    shared = [one for one in inside if lies_in(one.importer, "suites.support")]
    assert [str(one) for one in shared if not lies_in(one.module, "suites.support")] == []
    parts = [name.split(".") for name in modules() if lies_in(name, "suites") and not lies_in(name, "suites.support")]
    packages = {".".join(part[:-1]) for part in parts}
    cases = [part for part in parts if ".".join(part) not in packages]
    assert [".".join(part) for part in cases if not part[-1].startswith(("test_", "conftest"))] == []


def test_unit_mirrors_the_packages() -> None:
    folders = {path.parent.relative_to(CHECKOUT / "suites/unit") for path in (CHECKOUT / "suites/unit").rglob("test_*")}
    packages = {
        path.relative_to(root)
        for package, root in SOURCES.items()
        for path in (root / package).glob("**")
        if path.is_dir()
    }
    shared = {path.relative_to("suites") for path in packages if path.is_relative_to("suites")}
    assert folders - packages - shared == set()


@pytest.mark.parametrize("binding", DOORS)
def test_a_binding_has_one_door(binding: str) -> None:
    """Suites may look behind a door: they test what lies there."""
    importers = {one.importer for one in imports() if lies_in(one.module, binding)}
    assert {name for name in importers if not name.startswith("suites.")} == {DOORS[binding]}


def test_a_circle_is_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a"}}
    assert circles(edges) == [["b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}}) == []


def test_imports_are_found_wherever_they_stand() -> None:
    source = (
        "from reports.values import record\nfrom numba import cuda, njit\ndef f():\n    import pynvml\n"
        "    importlib.import_module('pynvml')\nif TYPE_CHECKING:\n    from burstproof.errors import InputError\n"
        "HOME = 'reports.judge:Verdict'\n"
    )
    found = [(one.module, one.name, one.line) for one in imports_of("x", source)]
    assert sorted(found) == [
        ("burstproof.errors", "InputError", 7),
        ("numba", "njit", 2),
        ("numba.cuda", "", 2),
        ("pynvml", "", 4),
        ("pynvml", "", 5),
        ("reports.judge", "Verdict", 8),
        ("reports.values.record", "", 1),
    ]
