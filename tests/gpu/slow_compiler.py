"""A compiler for tests: the child process of renderer.gpu.compilation, which sleeps or dies before each answer.

Usage: -c "from tests.gpu.slow_compiler import main; main(SECONDS, FOLDER, DIES)" NICENESS. It writes its process ID to
a file of FOLDER.
"""

import os
import signal
import sys
import time
from pathlib import Path

from renderer.gpu import compilation, compile_child
from tests.children import python_path


def main(seconds: float, folder: str, dies: bool) -> None:
    Path(folder, f"{os.getpid()}.pid").touch()
    answer = compile_child.answer

    def slow_answer(job):
        time.sleep(seconds)
        if dies:
            os.kill(os.getpid(), signal.SIGSEGV)
        return answer(job)

    compile_child.answer = slow_answer
    compile_child.main()


def slow_child(seconds: float, folder: Path, dies: bool = False):
    """What stands for module_child() of renderer.gpu.compilation."""
    code = f"from tests.gpu.slow_compiler import main; main({seconds}, {str(folder)!r}, {dies})"
    return lambda module: ([sys.executable, "-c", code], {**os.environ, "PYTHONPATH": python_path()})


def pids(folder: Path) -> list[int]:
    """The processes that were started so far."""
    return [int(path.stem) for path in folder.glob("*.pid")]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds: float, reason: str = "timeout") -> None:
    end = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < end, reason
        time.sleep(0.02)


def run_patched() -> None:
    """The command line of this process, with a slow compiler: SECONDS FOLDER WORD..."""
    from renderer.cli import run_process
    from renderer.gpu.opencl.pocl_compile import PoclCompile

    seconds, folder, *words = sys.argv[1:]
    compilation.module_child = slow_child(float(seconds), Path(folder))
    PoclCompile._is_ready = lambda self, marker: False  # as with an empty cache
    sys.argv[1:] = words
    run_process()


PATCHED = [sys.executable, "-c", "from tests.gpu.slow_compiler import run_patched; run_patched()"]
