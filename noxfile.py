"""The sessions: ``python3 noxfile.py -s stages`` runs the test plan, ``-s tests`` the test suite.

Python 3.11 or newer is enough: ``stages/bootstrap.py`` installs nox or does without it. Arguments after ``--`` go to
the runner of the stages, or to pytest in the session ``tests``; ``--thorough`` and ``--nightly`` ask for larger plans.
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

from stages.bootstrap import DEFAULT_SESSION, is_quick, of_one_sitting, session_commands, start  # noqa: E402

if __name__ == "__main__":
    sys.exit(start(ROOT, sys.argv[1:]))

import nox  # noqa: E402

from stages.driver import find_package_set  # noqa: E402
from stages.plan import STAGES, Stage  # noqa: E402
from stages.run_folder import new_run_path  # noqa: E402
from stages.signals import end_in_order, interrupt_children  # noqa: E402

end_in_order(before=interrupt_children)

nox.options.sessions = [DEFAULT_SESSION]
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = True

# Modules are compiled when they are first imported, and the bytecode is kept: pip need not compile all of them.
os.environ["PIP_NO_COMPILE"] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Exit codes after which the next part of a run may start (pass, fail, undecided, time limit): the last part has the
# verdict of the whole run.
JUDGED = (0, 1, 2, 75)


@cache
def run_path() -> Path:
    """The folder of this run; its name has the time of the first call, when the run begins."""
    return new_run_path(Path("runs"))


def install(session: nox.Session, *extras: str) -> None:
    if session.venv_backend == "none":
        session.log("no virtual environment: nothing is installed, the current environment serves")
        return
    session.install("-e", f".[{','.join(extras)}]")


def install_main(session: nox.Session, *more: str) -> None:
    chosen = find_package_set()
    session.log(f"packages: {chosen.extra or 'CPU set'} ({chosen.reason})")
    install(session, *more, "test", *filter(None, [chosen.extra]))


def one_environment(session: nox.Session) -> bool:
    """Whether one environment serves every stage: the quick plan has no time for several, if the extras agree."""
    return is_quick(session.posargs) and find_package_set().extra != "cuda13"  # the extra compile needs CUDA 12


def install_for(session: nox.Session, stage: Stage) -> None:
    if stage.extras:
        install(session, *stage.extras, "test")
    else:
        install_main(session)


def run_module(session: nox.Session, *arguments: str, success_codes: tuple[int, ...] = (0,)) -> None:
    python = sys.executable if session.venv_backend == "none" else "python"
    session.run(
        python, "-m", *arguments, external=True, success_codes=success_codes, interrupt_timeout=30, terminate_timeout=10
    )


def run_session(session: nox.Session, name: str) -> None:
    for command in session_commands(name, session.posargs):
        run_module(session, *command)


def add_stage(stage: Stage) -> None:
    """Add the session of a single stage."""

    def one_stage(session: nox.Session) -> None:
        install_for(session, stage)
        run_session(session, stage.name)

    one_stage.__doc__ = f"{stage.title}: {stage.proves}."
    nox.session(one_stage, name=stage.name, default=False)


def add_part(door: str, stage: Stage, before: list[str]) -> str:
    """Add a session that runs ``stage`` in an environment of its own; the session ``door`` continues the same run."""

    def part(session: nox.Session) -> None:
        if "--explain" in session.posargs or one_environment(session):
            return
        install_for(session, stage)
        if "--resume" in session.posargs:
            command = session_commands(door, session.posargs)[0]
        elif before:
            command = ["stages", "run", "--resume", str(run_path()), *of_one_sitting(session.posargs)]
        else:
            command = [*session_commands(door, session.posargs)[0], "--run", str(run_path())]
        run_module(session, *command, "--only", stage.name, success_codes=JUDGED)

    part.__doc__ = f"Part of '{door}': {stage.name}, in its own environment."
    nox.session(part, name=f"{door}_{stage.name}", requires=before, default=False)
    return f"{door}_{stage.name}"


def add_door(door: str, doc: str) -> None:
    """Add a session for all stages in one run: a part for each with an environment of its own, then the rest.

    In the quick plan one environment serves all stages if possible, and the parts do nothing.
    """
    parts: list[str] = []
    for stage in STAGES:
        if stage.extras:
            parts.append(add_part(door, stage, parts[-1:]))

    def rest(session: nox.Session) -> None:
        shared = one_environment(session)
        install_main(session, *(dict.fromkeys(extra for stage in STAGES for extra in stage.extras) if shared else ()))
        if parts and not shared and not {"--resume", "--explain"} & set(session.posargs):
            run_module(session, "stages", "run", "--resume", str(run_path()), *of_one_sitting(session.posargs))
        else:
            run_session(session, door)

    rest.__doc__ = doc
    nox.session(rest, name=door, requires=parts[-1:], default=door == DEFAULT_SESSION)


add_door("stages", "Every stage that the hardware allows, in one run with one report.")
add_door("gpu_free", "What needs no GPU of every stage.")
for one in STAGES:
    add_stage(one)


@nox.session(default=False)
def tests(session: nox.Session) -> None:
    """The test suite."""
    install_main(session)
    run_session(session, "tests")


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Ruff, mypy and the contract of imports."""
    install(session, "dev")
    run_session(session, "lint")


@nox.session(default=False)
def compare(session: nox.Session) -> None:
    """A base commit and the working tree: CPU rows of both in turns, and what changed."""
    install_main(session)
    run_session(session, "compare")
