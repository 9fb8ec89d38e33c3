"""The doors: ``python3 noxfile.py -s stages`` runs the test plan, ``-s tests`` the test suite.

Works with nothing but Python 3.11 or newer; see ``stages/bootstrap.py`` for how nox is found. Arguments after ``--``
go to the stage runner, or to pytest in the session ``tests``.
"""

import os
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent
if sys.version_info < (3, 11):  # noqa: UP036 - whoever types python3 may have an older one
    sys.exit(f"burstproof needs Python 3.11 or newer; this is {sys.version.split()[0]}")
os.chdir(ROOT)
sys.path.insert(0, str(ROOT))

from stages.bootstrap import DEFAULT_SESSION, session_commands, start  # noqa: E402

if __name__ == "__main__":
    sys.exit(start(ROOT, sys.argv[1:]))

import nox  # noqa: E402

from stages.driver import find_package_set  # noqa: E402
from stages.run_folder import new_run_path  # noqa: E402

nox.options.sessions = [DEFAULT_SESSION]
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = True

COMPILE_PART = "stages_compile"
GPU_FREE_COMPILE_PART = "gpu_free_compile"
# The runner's codes for pass, fail and could-not-judge: the second part of a run tells the verdict of the whole.
JUDGED = (0, 1, 2)


@cache
def run_path() -> Path:
    """Where the run of this call lies; named when it begins, after the set-up, so that its name has its start."""
    return new_run_path(Path("runs"))


def install(session: nox.Session, *extras: str) -> None:
    if session.venv_backend == "none":
        session.log("no virtual environment: nothing is installed, the current environment serves")
        return
    session.install("-e", f".[{','.join(extras)}]")


def install_main(session: nox.Session) -> None:
    chosen = find_package_set()
    session.log(f"packages: {chosen.extra or 'CPU set'} ({chosen.reason})")
    install(session, "test", *filter(None, [chosen.extra]))


def run_module(session: nox.Session, *arguments: str, success_codes: tuple[int, ...] = (0,)) -> None:
    python = sys.executable if session.venv_backend == "none" else "python"
    session.run(
        python, "-m", *arguments, external=True, success_codes=success_codes, interrupt_timeout=30, terminate_timeout=10
    )


def run_session(session: nox.Session, name: str) -> None:
    for command in session_commands(name, session.posargs):
        run_module(session, *command)


def run_compile_part(session: nox.Session, name: str) -> None:
    """Stage 1 in its own environment; the session ``name`` continues the same run."""
    if "--explain" in session.posargs:
        return
    install(session, "compile", "test")
    begun = [] if "--resume" in session.posargs else ["--run", str(run_path())]
    (command,) = session_commands(name, session.posargs)
    run_module(session, *command, *begun, "--only", "stage1", success_codes=JUDGED)


def run_other_part(session: nox.Session, name: str) -> None:
    install_main(session)
    if {"--resume", "--explain"} & set(session.posargs):
        run_session(session, name)
    else:
        run_module(session, "stages", "run", "--resume", str(run_path()))


@nox.session(name=COMPILE_PART, default=False)
def stages_compile(session: nox.Session) -> None:
    """First part of 'stages': stage 1 with the compile tools."""
    run_compile_part(session, "stages")


@nox.session(name="stages", requires=[COMPILE_PART])
def all_stages(session: nox.Session) -> None:
    """Every stage that the hardware allows, in one run with one report."""
    run_other_part(session, "stages")


@nox.session(name=GPU_FREE_COMPILE_PART, default=False)
def gpu_free_compile(session: nox.Session) -> None:
    """First part of 'gpu_free': stage 1 with the compile tools."""
    run_compile_part(session, "gpu_free")


@nox.session(requires=[GPU_FREE_COMPILE_PART], default=False)
def gpu_free(session: nox.Session) -> None:
    """What needs no GPU of every stage."""
    run_other_part(session, "gpu_free")


@nox.session(default=False)
def stage1(session: nox.Session) -> None:
    """Stage 1, compile, with the CUDA 12 tools."""
    install(session, "compile", "test")
    run_session(session, "stage1")


def add_stage(number: int) -> None:
    """Give the stage its session."""

    @nox.session(name=f"stage{number}", default=False)
    def stage(session: nox.Session) -> None:
        """One stage of the plan; see 'python -m stages list'."""
        install_main(session)
        run_session(session, f"stage{number}")


for stage_number in range(2, 8):
    add_stage(stage_number)


@nox.session(default=False)
def tests(session: nox.Session) -> None:
    """The whole test suite."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # its hundred processes compile their modules once, not each
    install_main(session)
    run_session(session, "tests")


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Ruff, mypy and the contract of imports."""
    install(session, "dev")
    run_session(session, "lint")
