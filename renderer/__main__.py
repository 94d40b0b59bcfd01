"""The command `rayfold` as python -m renderer."""

from renderer.cli import run_process

if __name__ == "__main__":
    run_process()
