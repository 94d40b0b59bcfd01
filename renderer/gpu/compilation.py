"""Waiting for compilers: on threads and in child processes, so that nobody's window and no Ctrl-C waits for one.

A command compiles on a thread of its own (`interruptible`), for which the main thread waits as Ctrl-C allows. A window
has a CompilePool: its children compile into the caches on disk, from which this process then loads. What the window
draws runs in Tasks: one that needs a kernel is suspended until that is there, and its panel shows the last picture.
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
from renderer.process import module_child, unfinished_work

T = TypeVar("T")
CLOSE_SECONDS = 0.5  # until a driver is left alone
NICE, BACKGROUND_NICE = 5, 15
POLL_SECONDS = 1.0  # of a wait that signals must interrupt: a lock is not interruptible on every system

_thread = threading.local()  # .is_background, in background()


class Task(greenlet):
    """Work that is suspended where it waits for a compiler: a coroutine with a stack of its own, on one thread.

    `wake` is called, on another thread, when it can go on.
    """

    def __init__(self, work: Callable[[], None], wake: Callable[[], None] = lambda: None):
        super().__init__(work)
        self._wake = wake
        self._awaited: tuple[Future, ...] = ()
        self.compiles = ""  # what it waits for
        self.waits_since = 0.0  # time.perf_counter()

    def resume(self) -> bool:
        """Works until it is done, or must wait; whether it is done. Raises what the work raises."""
        self.parent = getcurrent()
        self.switch()
        return bool(self.dead)

    @property
    def ready(self) -> bool:
        """Whether it need not wait any more."""
        return any(future.done() for future in self._awaited) or not self._awaited

    def cancel(self) -> None:
        """Ends the work where it waits."""
        if self:  # it has started and is not done
            self.parent = getcurrent()
            self.throw()

    def suspend(self, futures: Sequence[Future], compiles: str) -> None:
        """Called by wait(): lets the caller of resume() go on."""
        if compiles != self.compiles or not self.waits_since:
            self.compiles, self.waits_since = compiles, time.perf_counter()
        self._awaited = tuple(futures)
        for future in futures:
            future.add_done_callback(lambda _: self._wake())
        assert self.parent is not None
        self.parent.switch()


def wait(futures: Sequence[Future], compiles: str) -> None:
    """Returns when one of the futures is done: a Task is suspended until then, other callers are blocked."""
    task = getcurrent()
    while not any(future.done() for future in futures):
        if isinstance(task, Task):
            task.suspend(futures, compiles)
        else:
            _block(futures)


def result(future: Future[T], compiles: str) -> T:
    """The result of a future, once it is there; see wait()."""
    wait([future], compiles)
    return future.result()


def _block(futures: Sequence[Future]) -> None:
    while not block(futures, POLL_SECONDS, FIRST_COMPLETED).done:
        pass


def interruptible(work: Callable[[], T]) -> T:
    """What work() returns; Ctrl-C ends the wait for it even while it runs in a driver."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    future = start_thread(work)
    _block([future])
    return future.result()


def start_thread(work: Callable[[], T]) -> Future[T]:
    """Starts work() on a thread of its own, for which the end of the process does not wait."""
    future: Future[T] = Future()
    unfinished_work.add(future)
    threading.Thread(target=_run, args=(future, work), name="compiler", daemon=True).start()
    return future


def _run(future: Future, work: Callable[[], Any]) -> None:
    try:
        answer = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(answer)
    unfinished_work.discard(future)


@contextmanager
def background() -> Iterator[None]:
    """What this thread compiles in the block gives way to what pictures wait for."""
    _thread.is_background = True
    try:
        yield
    finally:
        _thread.is_background = False


class Compiler:
    """A child process that compiles into the caches on disk, or into its folder; see compile_child.py.

    `niceness` is added to the priority number of this process.
    """

    def __init__(self, niceness: int) -> None:
        self._directory = temporary_directory("compile")
        self.folder = Path(self._directory.name)  # PoCL's cache of the child
        self._is_done = False
        command, environment = module_child("renderer.gpu.compile_child")
        environment["POCL_CACHE_DIR"] = str(self.folder)
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                [*command, str(niceness)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment
            )

    def run(self, job: dict[str, Any], name: str) -> dict[str, Any]:
        """The answer to a job about `name`. Raises KernelError with the compiler's log, and CompilerDied."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:  # a broken pipe: it is dead already
            line = b""
        if not line.endswith(b"\n"):
            raise CompilerDied(f"{name}: the compiler's process ended{self._last_words()}")
        answer = json.loads(line)
        self._is_done = answer["is_last"]
        if "error" in answer:
            raise KernelError(answer["error"])
        return answer

    def _last_words(self) -> str:
        status = self._process.wait()
        try:
            lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return f" ({status}){': ' + lines[-1][:200] if lines else ''}"

    @property
    def is_alive(self) -> bool:
        """Whether the process takes another job."""
        return not self._is_done and self._process.poll() is None

    def close(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):  # the child removes it too
            self._directory.cleanup()


class CompilerDied(KernelError):
    """The child process ended before it had answered."""


class CompilePool:
    """Compiles in at most `size` child processes, by default one for each core but the window's, and in one more.

    That one is for background(), at the lowest priority: the general kernel of all flames takes longer than all others.
    """

    def __init__(self, size: int = 0):
        size = size or max(1, (os.cpu_count() or 1) - 1)
        self._queues = {NICE: _Queue(size), BACKGROUND_NICE: _Queue(1)}
        self._compilers: set[Compiler] = set()
        self._running: set[Future] = set()
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, work: Callable[[Compiler], T]) -> Future[T]:
        """Starts work(compiler) on a thread, as soon as one of the children is free."""
        niceness = BACKGROUND_NICE if getattr(_thread, "is_background", False) else NICE
        queue, future = self._queues[niceness], Future[T]()
        queue.jobs.put((future, work))
        with self._lock:
            starts = queue.free_threads > 0
            queue.free_threads -= starts
        if starts:
            threading.Thread(target=self._work, args=(queue.jobs, niceness), name="compiler", daemon=True).start()
        return future

    def _work(self, jobs: SimpleQueue, niceness: int) -> None:
        compiler: Compiler | None = None
        while True:
            future, work = jobs.get()
            self._running.add(future)
            try:
                if compiler is None or not compiler.is_alive:
                    compiler = self._replace(compiler, niceness)
                answer = work(compiler)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(answer)
            self._running.discard(future)

    def _replace(self, old: Compiler | None, niceness: int) -> Compiler:
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
        """Ends the children at once; what they compiled is lost."""
        with self._lock:
            self._closed = True
            for compiler in self._compilers:
                compiler.close()
            self._compilers.clear()
        unfinished_work.update(block(list(self._running), CLOSE_SECONDS).not_done)


class _Queue:
    """Jobs for `size` children of one priority."""

    def __init__(self, size: int):
        self.jobs: SimpleQueue[tuple[Future, Callable]] = SimpleQueue()
        self.free_threads = size  # that are not started
