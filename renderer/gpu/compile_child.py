"""The child process of compilation.py: compiles kernels, so that its parent can load them from a cache on disk.

Jobs and answers are lines of JSON on stdin and stdout. The process ends as soon as stdin closes, so it never outlives
its parent. PoCL compiles a kernel in two steps: the program when it is built, and a function of a work-group of given
size when it is first launched. So kernels are launched here, with zeros as arguments and pointers into memory that
nothing else uses. One that runs on or dies ends this process, which does no harm: its function is on disk by then.
"""

import json
import mmap
import os
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from renderer.errors import KernelError, UnavailableError
from renderer.host import give_way

RUN_SECONDS = 0.2  # that a launched kernel may run
POINTER_BYTES = 1 << 26  # of the memory around a pointer: what a kernel does with zeros reaches no further


def main() -> None:
    """Works until stdin closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the parent decides
    give_way(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a compiler prints is no answer
    jobs: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(jobs,), daemon=True).start()
    while True:
        reply = answer(json.loads(jobs.get())) | {"is_last": _programs.stuck}
        answers.write(json.dumps(reply).encode() + b"\n")
        if _programs.stuck:
            os._exit(0)  # the parent still reads what is in the folder, and then removes it


def _read(jobs: "SimpleQueue[bytes]") -> None:
    for line in sys.stdin.buffer:
        jobs.put(line)
    _end()


def _end() -> None:
    """Ends the process without waiting for a compiler."""
    folder = os.environ["POCL_CACHE_DIR"]
    if Path(folder).name.startswith("compile-"):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """The answer to a job: {"error": why} if it fails."""
    try:
        jobs: dict[str, Callable[..., dict[str, Any]]]
        jobs = {"cubin": _cubin, "program": _programs.build, "kernel": _programs.launch}
        return jobs[job.pop("do")](**job)
    except (KernelError, UnavailableError) as error:
        return {"error": str(error)}


def _cubin(**arguments: Any) -> dict[str, Any]:
    from renderer.gpu.nvrtc import compile_cubin

    compile_cubin(**arguments)
    return {}


class _Programs:
    """The programs of one OpenCL device that were built here."""

    def __init__(self) -> None:
        self.stuck = False  # whether a kernel does not end
        self._built: dict[tuple, tuple[Any, str]] = {}  # by text and options; with the folder in PoCL's cache
        self._queue: Any = None
        self._memory: list[tuple[mmap.mmap, Any]] = []  # with a buffer in its middle; by position of a pointer

    def build(self, platform: int, index: int, text: str, options: list[str], known: str) -> dict[str, Any]:
        """Builds a program; `known` is PoCL's cache of the parent, whose files of the program are taken over.

        Returns the folder of the program in each of the two.
        """
        import pyopencl as cl

        if self._queue is None:
            self._queue = cl.CommandQueue(cl.Context([cl.get_platforms()[platform].get_devices()[index]]))
        key = (text, *options)
        if key not in self._built:
            cache = Path(os.environ["POCL_CACHE_DIR"])
            before = set(cache.glob("??/*"))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)
                try:
                    program = cl.Program(self._queue.context, text).build(options)
                except cl.Error as error:
                    raise KernelError(str(error)) from error
            folder = str(min(set(cache.glob("??/*")) - before).relative_to(cache))
            with suppress(OSError, shutil.Error):
                shutil.copytree(Path(known, folder), cache / folder, dirs_exist_ok=True)
            self._built[key] = program, folder
        return {"folder": self._built[key][1]}

    def launch(self, entry: str, group_size: int, threads: int, sizes: list[int], **program: Any) -> dict[str, Any]:
        """Launches a kernel of a program; `sizes` are those of its arguments in bytes, 0 for a pointer."""
        import pyopencl as cl

        answer = self.build(**program)
        kernel = cl.Kernel(self._built[(program["text"], *program["options"])][0], entry)
        try:
            for position, size in enumerate(sizes):
                kernel.set_arg(position, bytearray(size) if size else self._pointer(position))
            event = cl.enqueue_nd_range_kernel(self._queue, kernel, (threads,), (group_size,))
            self._queue.flush()
        except cl.Error as error:
            raise KernelError(f"{entry}: {error}") from error
        while event.command_execution_status > cl.command_execution_status.RUNNING:
            time.sleep(0.002)  # the function of the work-group is compiled
        end = time.perf_counter() + RUN_SECONDS
        while event.command_execution_status == cl.command_execution_status.RUNNING and not self.stuck:
            time.sleep(0.001)
            self.stuck = time.perf_counter() > end
        return answer

    def _pointer(self, position: int) -> Any:
        """A buffer of zeros."""
        import numpy as np
        import pyopencl as cl

        while len(self._memory) <= position:
            private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
            memory = mmap.mmap(-1, POINTER_BYTES, **private)
            middle = np.frombuffer(memory, np.uint8, POINTER_BYTES // 2, POINTER_BYTES // 4)
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            self._memory.append((memory, cl.Buffer(self._queue.context, flags, hostbuf=middle)))
        memory, buffer = self._memory[position]
        if hasattr(mmap, "MADV_DONTNEED"):
            memory.madvise(mmap.MADV_DONTNEED)  # zeros again
        return buffer


_programs = _Programs()

if __name__ == "__main__":
    main()
