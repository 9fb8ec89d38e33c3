"""Checks that run in the CUDA simulator: a process of their own, and which device functions it executed.

The simulator is chosen when numba-cuda is imported, so these checks cannot share a process with anything that compiles.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardware.host import take_host

ROOT = Path(__file__).parents[2]
TIME_LIMIT_S = 2400
_CORES_EACH = 4
"""Cores for each process of checks: other cases run beside them."""

_IMPL = ROOT / "impl" / "burstproof"
_OF_DEVICE = ("engine/cuda/kernels/*.py", "engine/rules.py", "network/synthetic/laws.py", "device/dependent_launch.py")
_OF_DEVICE += ("engine/features/rules.py",)
"""Modules whose nested functions are kernels and device functions: factories make them for a variant."""


@dataclass(frozen=True)
class Simulated:
    """What a process of checks said.

    Attributes
    ----------
    problems : mapping
        Name of each check to the list of its problems.
    executed : frozenset of str
        Kernels and device functions that ran, as :func:`device_functions` names them.
    """

    problems: Mapping[str, list[str]]
    executed: frozenset[str]


def run_simulated(module: str, names: Sequence[str]) -> Simulated:
    """Run the checks ``names``, one at least, by ``python -m module`` with the simulator switched on.

    A check keeps one core busy. Where there are many cores, several processes share the checks.
    """
    parts = min(max(1, take_host().usable_cores // _CORES_EACH), len(names))
    with ThreadPoolExecutor(parts) as pool:
        documents = list(pool.map(lambda part: _printed(module, names[part::parts]), range(parts)))
    problems = {name: found for document in documents for name, found in document["problems"].items()}
    executed = frozenset(name for document in documents for name in document["executed"])
    return Simulated({name: problems[name] for name in names}, executed)


def _printed(module: str, names: Sequence[str]) -> dict[str, Any]:
    """What a process of these checks prints."""
    done = subprocess.run(
        [sys.executable, "-m", module, *names],
        cwd=ROOT,
        env={
            **os.environ,
            "NUMBA_ENABLE_CUDASIM": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "impl"), str(ROOT)]),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def print_problems(checks: Mapping[str, Callable[[], list[str]]], names: Sequence[str]) -> int:
    """In such a process: run the checks called ``names``, or all, and print what :func:`run_simulated` reads."""
    warnings.simplefilter("ignore", RuntimeWarning)
    from suites.support.simulated_blocks import quick_simulator

    with quick_simulator() as called:
        problems = {name: _problems_of(check) for name, check in checks.items() if not names or name in names}
    executed = {f"{Path(code.co_filename).stem}.{code.co_qualname.replace('.<locals>', '')}" for code in called}
    print(json.dumps({"problems": problems, "executed": sorted(executed)}))
    return 0


def _problems_of(check: Callable[[], list[str]]) -> list[str]:
    """What is wrong by ``check``; one that raises has a problem, and the others go on."""
    try:
        return check()
    except Exception:
        return [traceback.format_exc()]


def device_functions() -> frozenset[str]:
    """Every kernel and device function of the CUDA engine: ``module.factory.function``, read from the source."""
    files = [file for pattern in _OF_DEVICE for file in sorted(_IMPL.glob(pattern))]
    found = frozenset(name for file in files for name in _nested(ast.parse(file.read_text()), file.stem, inside=False))
    return frozenset(name for name in found if name.rpartition(".")[0] not in found)


def _nested(node: ast.AST, path: str, *, inside: bool) -> Iterator[str]:
    """Functions inside functions; a function inside one of those generates code and is none of the device."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            name = f"{path}.{child.name}"
            if inside:
                yield name
            yield from _nested(child, name, inside=True)
        else:
            yield from _nested(child, path, inside=inside)
