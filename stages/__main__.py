"""``python -m stages``: run the test plan, continue a run, explain what would run, list the stages.

Exit codes (requirement RE-2): 0 pass, 1 fail, 2 could not judge, 3 invalid environment, 4 usage.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    # Where burstproof is not installed the checkout itself serves.
    sys.path.append(str(ROOT / "impl"))
    from stages.command import main

    sys.exit(main(sys.argv[1:], ROOT))
