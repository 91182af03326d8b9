"""python -m tests.hunt"""

import sys

from tests.hunt.cli import main

if __name__ == "__main__":
    sys.exit(main())
