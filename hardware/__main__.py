"""``python -m hardware``: say what this machine is and what it can run, touching no CUDA context."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":  # where burstproof is not installed the checkout itself serves
    sys.path.append(str(Path(__file__).resolve().parents[1] / "impl"))

from burstproof.door import UsageParser, guarded
from hardware.inventory import take_inventory
from hardware.nvml import OpenNvml, open_nvml
from hardware.show import to_json, to_text


def main(arguments: Sequence[str] | None = None, *, open_door: OpenNvml = open_nvml) -> int:
    """Print the inventory, the gates and the prerequisites; exit code 0, for these are facts, or 4 for wrong usage."""
    parser = UsageParser(prog="python -m hardware", description="What this machine is and can run.")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    wanted = parser.parse_args(arguments)
    inventory = take_inventory(open_door=open_door)
    print(json.dumps(to_json(inventory), indent=2) if wanted.json else to_text(inventory), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(guarded("hardware", main))
