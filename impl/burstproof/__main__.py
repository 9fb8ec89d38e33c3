"""``python -m burstproof``."""

import sys

from burstproof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
