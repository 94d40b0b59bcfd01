"""The command `rayfold` in a checkout: python main.py COMMAND ..."""

from renderer.__main__ import run

if __name__ == "__main__":
    run()
