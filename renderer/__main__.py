"""The command `rayfold` as python -m renderer."""

import sys

from renderer.cli import main

if __name__ == "__main__":
    sys.exit(main())
