"""The command `rayfold` in a checkout: python main.py COMMAND ..."""

from renderer.cli import run_process

if __name__ == "__main__":
    run_process()
