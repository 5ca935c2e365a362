"""`python -m texelflow`: the same as the command `texelflow`."""

import sys

from .app.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
