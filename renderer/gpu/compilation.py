"""Compiles kernels on threads and in child processes, so that neither a window nor Ctrl-C waits for a compiler.

A command compiles on a new thread (`interruptible`) while its main thread stays open to Ctrl-C. A window has a
CompilePool, whose child processes compile into the caches on disk; the window's process then loads the kernels. The
window draws in Tasks: a Task that needs a kernel is suspended until the kernel is compiled, and meanwhile its panel
shows the previous picture.
"""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as block
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from renderer.errors import KernelError
from renderer.paths import temporary_directory
from renderer.plain import Json
from renderer.system.process import module_child, unfinished_work

T = TypeVar("T")
CLOSE_SECONDS = 0.5  # wait for compilations in drivers when the program ends
NICE, BACKGROUND_NICE = 5, 15  # niceness that is added to children for pictures, and for jobs of background()
POLL_SECONDS = 1.0  # longest single wait for a lock: not every system interrupts such a wait for a signal

Answer = Future[Any]  # the answer of a compiler: a program, or the error
Job = tuple[Answer, Callable[..., object]]  # the future that work(compiler) answers, and work
_thread = threading.local()  # `is_background` is set on threads inside of background()


class Task(greenlet):  # type: ignore[misc]  # greenlet has no types
    """Work that is suspended while it waits for a compiler: a coroutine with a separate stack, on one thread.

    The owner calls resume() until it returns True. `wake` is called, from another thread, when the Task can continue.
    """

    def __init__(self, work: Callable[[], None], wake: Callable[[], None] = lambda: None):
        super().__init__(work)
        self._wake = wake
        self._awaited: tuple[Answer, ...] = ()  # the work continues when one of these is done
        self.compiles = ""  # name of the kernel that the Task waits for
        self.waits_since = 0.0  # time.perf_counter() when the wait began

    def resume(self) -> bool:
        """Runs until the work is done or must wait; returns True if it is done. Raises the work's errors."""
        self.parent = getcurrent()  # the greenlet that goes on when the work waits or ends
        self.switch()
        return bool(self.dead)

    @property
    def ready(self) -> bool:
        """True if resume() would not wait."""
        return any(future.done() for future in self._awaited) or not self._awaited

    def cancel(self) -> None:
        """Ends suspended work: wait() raises GreenletExit in it."""
        if self:  # started and not done
            self.parent = getcurrent()
            self.throw()

    def suspend(self, futures: Sequence[Answer], compiles: str) -> None:
        """Called by wait(): returns control to the caller of resume()."""
        if compiles != self.compiles or not self.waits_since:  # else the same wait goes on
            self.compiles, self.waits_since = compiles, time.perf_counter()
        self._awaited = tuple(futures)
        for future in futures:
            future.add_done_callback(lambda _: self._wake())
        assert self.parent is not None
        self.parent.switch()


def wait(futures: Sequence[Answer], compiles: str) -> None:
    """Waits until one of the futures is done: suspends the current Task, or blocks a caller outside Tasks."""
    task = getcurrent()
    while not any(future.done() for future in futures):
        if isinstance(task, Task):
            task.suspend(futures, compiles)
        else:
            _block(futures)


def result(future: Future[T], compiles: str) -> T:
    """Waits for a future, as wait() does, and returns its result."""
    wait([future], compiles)
    return future.result()


def _block(futures: Sequence[Answer]) -> None:
    """Blocks the thread until one of the futures is done, open to signals."""
    while not block(futures, POLL_SECONDS, FIRST_COMPLETED).done:
        pass


def interruptible(work: Callable[[], T]) -> T:
    """Runs work() on a new thread and returns its result; Ctrl-C ends the wait even while a driver is working."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    future = start_thread(work)
    _block([future])
    return future.result()


def start_thread(work: Callable[[], T]) -> Future[T]:
    """Starts work() on a daemon thread: the end of the process does not wait for it."""
    future: Future[T] = Future()
    unfinished_work.add(future)
    threading.Thread(target=_run, args=(future, work), name="compiler", daemon=True).start()
    return future


def _run(future: Answer, work: Callable[[], object]) -> None:
    """Runs work() and gives the future its result or its error."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
    unfinished_work.discard(future)


@contextmanager
def background() -> Iterator[None]:
    """Within the block, the thread's compilations run at the lowest priority, behind kernels that pictures wait for."""
    _thread.is_background = True
    try:
        yield
    finally:
        _thread.is_background = False


class Compiler:
    """A child process that compiles into the caches on disk, or into its `folder`; see compile_child.py.

    `niceness` is added to this process's niceness, which lowers the child's priority.
    """

    def __init__(self, niceness: int) -> None:
        self._directory = temporary_directory("compile")
        self.folder = Path(self._directory.name)  # the child's PoCL cache
        self.reading = threading.Lock()  # held while the folder is read: close() waits before it removes the folder
        self.is_closed = self._is_done = False  # close() was called; the child has answered its last job
        command, environment = module_child("renderer.gpu.compile_child")
        environment["POCL_CACHE_DIR"] = str(self.folder)
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                [*command, str(niceness)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment
            )

    def run(self, job: Json, name: str) -> Json:
        """Sends a job about kernel `name`, returns its answer. Raises KernelError with the log, or CompilerDied."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:  # a broken pipe: the child is dead already
            line = b""
        if not line.endswith(b"\n"):
            raise CompilerDied(f"{name}: the compiler's process ended{self._last_words()}")
        answer: Json = json.loads(line)
        self._is_done = answer["is_last"]
        if "error" in answer:
            raise KernelError(answer["error"])
        return answer

    def _last_words(self) -> str:
        """The exit status of the dead child and the last line of its log, for an error."""
        status = self._process.wait()
        try:
            lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return f" ({status}){': ' + lines[-1][:200] if lines else ''}"

    @property
    def is_alive(self) -> bool:
        """True if the process accepts another job."""
        return not self._is_done and self._process.poll() is None

    def close(self) -> None:
        """Kills the process."""
        self.is_closed = True
        self._process.kill()
        self._process.wait()
        with self.reading, suppress(OSError):  # the child removes it too
            self._directory.cleanup()


class CompilerDied(KernelError):
    """The child process ended before it answered."""


class CompilePool:
    """Compiles in at most `size` child processes, by default one for each core but one, which the window uses.

    One further child compiles the jobs of background() at the lowest priority: the flames' general kernel takes longer
    to compile than any other kernel.
    """

    def __init__(self, size: int = 0):
        # By the niceness of the children: the children that may still be started, and the jobs.
        self._startable = {NICE: size or max(1, (os.cpu_count() or 1) - 1), BACKGROUND_NICE: 1}
        self._jobs: dict[int, SimpleQueue[Job]] = {niceness: SimpleQueue() for niceness in self._startable}
        self._compilers: set[Compiler] = set()
        self._running: set[Answer] = set()
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, work: Callable[[Compiler], T]) -> Future[T]:
        """Runs work(compiler) on a thread as soon as a child process is free."""
        niceness = BACKGROUND_NICE if getattr(_thread, "is_background", False) else NICE
        future = Future[T]()
        self._jobs[niceness].put((future, work))
        with self._lock:
            starts = self._startable[niceness] > 0
            self._startable[niceness] -= starts
        if starts:
            threading.Thread(target=self._work, args=(niceness,), name="compiler", daemon=True).start()
        return future

    def _work(self, niceness: int) -> None:
        """A thread with one child at a time: passes jobs to the child without end, and replaces a child that died."""
        compiler: Compiler | None = None
        while True:
            future, work = self._jobs[niceness].get()
            self._running.add(future)
            try:
                if compiler is None or not compiler.is_alive:
                    compiler = self._replace(compiler, niceness)
                future.set_result(work(compiler))
            except BaseException as error:
                future.set_exception(error)
            self._running.discard(future)

    def _replace(self, old: Compiler | None, niceness: int) -> Compiler:
        """Closes the old compiler, if any, and starts another."""
        with self._lock:
            if old is not None:
                self._compilers.discard(old)
                old.close()
            if self._closed:
                raise CompilerDied("the window is closed")
            compiler = Compiler(niceness)
            self._compilers.add(compiler)
            return compiler

    def close(self) -> None:
        """Kills the children; their unfinished compilations are lost."""
        with self._lock:
            self._closed = True
            for compiler in self._compilers:
                compiler.close()
            self._compilers.clear()
        unfinished_work.update(block(list(self._running), CLOSE_SECONDS).not_done)
