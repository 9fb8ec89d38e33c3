"""Trying out a fault in a fork of a process that has imported the engine and, on the CPU, compiled its kernels.

The fault stands in the package's file while the fork runs: a module that the fork imports, and a shader that it reads,
have it. In a module that was imported before, the function that the fault changes gets the code of the edited file.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

from suites.support.parity.planted.fault import Fault
from suites.support.swapped_code import swapped_code

TIME_LIMIT_S = 600

Problems = dict[str, list[str]]
Answer = tuple[Problems, str]
"""The problems that each check found, or why there are none to tell."""
Work = Callable[[], Problems]


def answer_of(work: Work) -> Answer:
    """What ``work`` returns, or the end of what it says when it raises."""
    try:
        return work(), ""
    except Exception:
        return {}, "\n".join(traceback.format_exc().splitlines()[-3:])


def answer_in_fork(work: Work) -> Answer:
    """The same, in a fork of this process."""
    gc.collect()
    gc.freeze()  # a fork that counts references in pages shared with this process would copy them
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest's limit of a case may have set another
            signal.alarm(TIME_LIMIT_S)
            answer = json.dumps(answer_of(work))
            with os.fdopen(writer, "w") as answers:
                answers.write(answer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        said = answers.read()
    ended_by = os.WTERMSIG(os.waitpid(child, 0)[1])
    if not said:
        late = f"within {TIME_LIMIT_S} s" if ended_by == signal.SIGALRM else f"(signal {ended_by})"
        return {}, f"no answer {late}"
    problems, error = json.loads(said)
    return problems, error


@contextmanager
def planted(package: Path, fault: Fault) -> Iterator[tuple[str, str]]:
    """Within it, ``fault`` stands in its file of the package in that folder; yields the text before, and with it."""
    path = package / fault.file
    plain = path.read_text("utf-8")
    edited = fault.edited(plain)
    try:
        _write(path, edited)
        yield plain, edited
    finally:
        _write(path, plain)


def _write(path: Path, text: str) -> None:
    """Python may take a compiled file for that of a source of the same second and size."""
    path.write_text(text, "utf-8")
    for compiled in Path(cache_from_source(str(path))).parent.glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def try_in_fork(package: Path, fault: Fault, work: Work) -> Answer:
    """Plant ``fault``, do ``work`` in a fork, take the fault back."""
    with planted(package, fault) as (plain, edited):

        def faulty() -> Problems:
            _forget()
            if fault.module in sys.modules:
                _exchange(fault.module, plain, edited)
            return work()

        return answer_in_fork(faulty)


def _exchange(module: str, plain: str, edited: str) -> None:
    """Give the one function of the imported ``module`` that the edit changes its new code.

    Raises
    ------
    ValueError
        The edit changes none, or more; or the function was compiled when the module was imported, or takes part in
        compiling others, so that what is compiled already would go on without the fault.
    """
    swapped = swapped_code(module, plain, edited)
    if swapped is None:
        raise ValueError(f"{module} was imported before, and the fault changes no function of it alone")
    function, code = swapped
    for value in vars(sys.modules[module]).values():
        if type(value).__module__.startswith("numba.") and inspect.unwrap(value) is function:
            raise ValueError(f"{module}.{function.__qualname__} was compiled before")
    function.__code__ = code


def _forget() -> None:
    """Forget what functions of the engine and of the checks remember of calls without a fault."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("burstproof", "suites"):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
