"""The child process of compilation.py: compiles kernels into a cache on disk, from which its parent loads them.

Jobs and answers are lines of JSON on stdin and stdout. The process ends as soon as stdin closes, so it never outlives
its parent. PoCL compiles a kernel in two steps: the program when it is built, and the function for a work-group of a
given size at the first launch. So kernels are launched here, with arguments of zero and pointers into scratch memory. A
kernel that hangs or crashes ends only this process, and its compiled function is on disk by then.
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
from typing import TYPE_CHECKING

from renderer.errors import KernelError, UnavailableError
from renderer.host import give_way
from renderer.plain import Json

if TYPE_CHECKING:
    import pyopencl as cl

RUN_SECONDS = 0.2  # time limit of a launched kernel
# Scratch memory of each pointer, which points to the end of the memory's first quarter: with arguments of zero a kernel
# reaches no further, and an index a little below 0, such as -1, is in the memory, too.
POINTER_BYTES = 1 << 26


def main() -> None:
    """Answers jobs until stdin closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the parent decides
    give_way(int(sys.argv[1]))  # the niceness that Compiler (compilation.py) adds
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # compilers print to stdout, which would look like an answer
    jobs: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(jobs,), daemon=True).start()
    while True:
        reply = answer(json.loads(jobs.get())) | {"is_last": _programs.stuck}  # a stuck kernel blocks PoCL's queue
        answers.write(json.dumps(reply).encode() + b"\n")
        if _programs.stuck:
            os._exit(0)  # leaves the folder to the parent, which still reads and then removes it


def _read(jobs: "SimpleQueue[bytes]") -> None:
    for line in sys.stdin.buffer:
        jobs.put(line)
    _end()


def _end() -> None:
    """Ends the process without waiting for a compiler."""
    folder = os.environ["POCL_CACHE_DIR"]
    if Path(folder).name.startswith("compile-"):  # a Compiler's temporary folder, not a user's cache
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def answer(job: Json) -> Json:
    """Does a job and returns its answer; {"error": reason} if it fails.

    `job` holds its kind as "do", and the arguments of the function for this kind.
    """
    try:
        jobs: dict[str, Callable[..., Json]]
        jobs = {"cubin": _cubin, "program": _programs.build, "kernel": _programs.launch}
        return jobs[job.pop("do")](**job)
    except (KernelError, UnavailableError) as error:
        return {"error": str(error)}


def _cubin(text: str, architecture: str, name: str, strict: bool) -> Json:
    """Compiles a cubin into the cache on disk; see nvrtc.py."""
    from renderer.gpu.cuda.nvrtc import compile_cubin

    compile_cubin(text, architecture, name, strict)
    return {}


class _Programs:
    """Builds and launches programs of one OpenCL device."""

    def __init__(self) -> None:
        self.stuck = False  # True once a kernel has exceeded its time limit
        # Each program and its folder in PoCL's cache, by text and options.
        self._built: dict[tuple[str, ...], tuple[cl.Program, str]] = {}
        self._queue: cl.CommandQueue | None = None
        self._memory: list[tuple[mmap.mmap, cl.Buffer]] = []  # scratch memory and the buffer in its middle, by pointer

    def build(self, platform: int, index: int, text: str, options: list[str], known: str) -> dict[str, str]:
        """Builds a program and copies its functions compiled before from `known`, the parent's PoCL cache.

        Returns {"folder": the program's folder}, relative to a cache: it is the same in the child's and the parent's.
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
            folder = str(min(set(cache.glob("??/*")) - before).relative_to(cache))  # the one that the build made
            with suppress(OSError, shutil.Error):
                shutil.copytree(Path(known, folder), cache / folder, dirs_exist_ok=True)
            self._built[key] = program, folder
        return {"folder": self._built[key][1]}

    def launch(self, entry: str, group_size: int, threads: int, sizes: list[int], program: Json) -> dict[str, str]:
        """Launches a kernel with arguments of zero; `sizes` are the arguments' bytes, 0 for a pointer.

        `program` holds the arguments of build(); the answer is build()'s.
        """
        import pyopencl as cl

        answer = self.build(**program)
        assert self._queue is not None, "build() makes it"
        kernel = cl.Kernel(self._built[(program["text"], *program["options"])][0], entry)
        try:
            for position, size in enumerate(sizes):
                kernel.set_arg(position, bytearray(size) if size else self._pointer(position))
            event = cl.enqueue_nd_range_kernel(self._queue, kernel, (threads,), (group_size,))
            self._queue.flush()
        except cl.Error as error:
            raise KernelError(f"{entry}: {error}") from error
        # The status falls from QUEUED by SUBMITTED and RUNNING to COMPLETE; PoCL compiles the function before RUNNING.
        while event.command_execution_status > cl.command_execution_status.RUNNING:
            time.sleep(0.002)
        end = time.perf_counter() + RUN_SECONDS
        while event.command_execution_status == cl.command_execution_status.RUNNING and not self.stuck:
            time.sleep(0.001)
            self.stuck = time.perf_counter() > end
        return answer

    def _pointer(self, position: int) -> "cl.Buffer":
        """Returns a buffer of zeros for the pointer argument at `position`."""
        import numpy as np
        import pyopencl as cl

        assert self._queue is not None, "build() makes it"
        while len(self._memory) <= position:
            memory = mmap.mmap(-1, POINTER_BYTES, access=mmap.ACCESS_COPY)  # private to this process
            middle = np.frombuffer(memory, np.uint8, POINTER_BYTES // 2, POINTER_BYTES // 4)
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            self._memory.append((memory, cl.Buffer(self._queue.context, flags, hostbuf=middle)))
        memory, buffer = self._memory[position]
        if sys.platform == "linux":
            memory.madvise(mmap.MADV_DONTNEED)  # zeros again
        return buffer


_programs = _Programs()

if __name__ == "__main__":
    main()
