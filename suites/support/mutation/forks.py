"""A pytest plugin that tries mutants in forks: the cases are collected once, and each fork runs them with one mutant.

``--planted FILE`` names a JSON file: ``mutants``, pairs of a module's name and a mutant's source, ``workers``, the
forks side by side, and ``until``, a time of the monotonic clock after which none begins. For every mutant a line goes
to the file descriptor ``--planted-to``: its place, and 1 if all cases passed, 0 if one failed or ran too long.

A mutant lives in the code of a function, which the fork gives to the function that was imported. One that changes what
a module does when it is imported has no such function, and gets no line.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import json
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from suites.support.swapped_code import Swapped, swapped_code

SLOWEST = 5
"""A mutant under which the cases take so many times as long has been noticed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what is planted, and where the results go."""
    parser.addoption("--planted", metavar="FILE", type=Path, required=True)
    parser.addoption("--planted-to", metavar="FD", type=int, required=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run the cases in forks only: as they are first, which says how long a mutant may take."""
    asked = json.loads(session.config.getoption("--planted").read_text(encoding="utf-8"))
    running: dict[int, int] = {}
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        os.fdopen(session.config.getoption("--planted-to"), "w", buffering=1) as results,
    ):

        def wait() -> None:
            child, status = os.wait()
            results.write(f"{running.pop(child)} {int(status == 0)}\n")

        gc.collect()
        gc.freeze()  # a fork that counts references in pages shared with this process would copy them
        began = time.monotonic()
        if os.waitpid(_fork(session, None, f"{folder}/none", 3600), 0)[1]:
            raise pytest.UsageError("the cases fail without a mutant; mend them first")
        limit_s = SLOWEST * int(time.monotonic() - began) + 30
        for place, (module, source) in enumerate(asked["mutants"]):
            swapped = _swapped(module, source)
            if swapped is None or time.monotonic() >= asked["until"]:
                continue
            if len(running) == asked["workers"]:
                wait()
            running[_fork(session, swapped, f"{folder}/{place}", limit_s)] = place
        while running:
            wait()
    return True


def _swapped(module: str, source: str) -> Swapped | None:
    """What a mutant exchanges; mutants are made of sources without their layout."""
    plain = ast.unparse(ast.parse(inspect.getsource(importlib.import_module(module))))
    return swapped_code(module, plain, source)


def _fork(session: pytest.Session, swapped: Swapped | None, cache: str, limit_s: int) -> int:
    """Run the cases in a fork, whose exit status is 0 if all pass; kernels are compiled in a cache of its own."""
    child = os.fork()
    if child:
        return child
    passed = False
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(limit_s)
        os.environ["XDG_CACHE_HOME"] = cache
        if swapped is not None:
            function, function.__code__ = swapped
        passed = all(
            not report.failed
            for item, following in zip(session.items, [*session.items[1:], None], strict=True)
            for report in runtestprotocol(item, log=False, nextitem=following)
        )
    finally:
        os._exit(0 if passed else 1)
