"""The command `rayfold` in a checkout: python main.py COMMAND ..."""

import sys

from renderer.cli import main

if __name__ == "__main__":
    sys.exit(main())
