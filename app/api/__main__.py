"""`python -m texelflow`: arguments go in, as of the command `texelflow`; its exit code comes out."""

import sys

from .app.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
