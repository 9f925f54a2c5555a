"""`python -m nicety`: the command line."""

import sys

from nicety.cli import main

if __name__ == "__main__":
    sys.exit(main())
