"""``python -m stages``: run the test plan, continue a run, explain what would run, list the stages.

Exit codes (requirement RE-2): 0 pass, 1 fail, 2 could not judge, 3 invalid environment, 4 usage, 75 the time of
``--time-limit``, or of a stage, was over before the plan was, 141 the reader of standard output is gone.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("numpy", "numba", "jinja2", "pytest", "pytest_benchmark")


def main() -> int:
    """Check that the tools are here, before anything imports them, and carry out the command line.

    What runs and judges is compiled from its sources: a compiled file beside one may be of other code.
    """
    if sys.argv[1:2] in (["run"], ["record"]):
        sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        from burstproof.errors import EnvironmentInvalidError

        error = EnvironmentInvalidError(
            f"{', '.join(missing)} cannot be imported",
            where=sys.executable,
            cure="pip install -e '.[test]' there, or let `python3 noxfile.py -s stages` make an environment.",
        )
        print(f"python -m stages: error: {error}", file=sys.stderr)
        return error.exit_code
    from stages.signals import end_in_order

    end_in_order()
    from burstproof.door import guarded

    return guarded("python -m stages", _carry_out, plain=False)


def _carry_out() -> int:
    """Import the rest, which takes a second in which a signal may come, and carry out the command line."""
    from stages.command import main as carry_out

    return carry_out(sys.argv[1:], ROOT)


if __name__ == "__main__":
    # Where burstproof is not installed the checkout itself serves.
    sys.path.append(str(ROOT / "impl"))
    sys.exit(main())
