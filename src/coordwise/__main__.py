"""`python -m coordwise` is the command `coordwise`."""

import sys

from coordwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
