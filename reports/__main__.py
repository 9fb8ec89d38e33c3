"""``python -m reports``: reports drawn from records; see ``reports/command.py``.

Exit codes: 0 done, 1 a confirmed regression, 2 nothing to go by, 3 a package is missing, 4 wrong usage or input,
141 the reader of standard output is gone.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Carry out the command line, or say which package is missing."""
    try:
        from burstproof.door import guarded
        from reports.command import main as carry_out
    except ModuleNotFoundError as error:
        cure = "pip install -e '.[test]' there, or use .nox/stages/bin/python"
        print(f"error: {sys.executable}: {error.name} cannot be imported. {cure}", file=sys.stderr)
        return 3
    return guarded("reports", carry_out)


if __name__ == "__main__":
    # Where burstproof is not installed the checkout itself serves.
    sys.path.append(str(Path(__file__).resolve().parents[1] / "impl"))
    sys.exit(main())
