"""Process services for the commands: signals, standard streams, the log of internal errors, supervision and exit.

Supervision runs a command in a child process, which its parent can kill while a driver blocks. cli.py uses most of it.
"""

import atexit
import contextlib
import gc
import io
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO, TypeVar

from renderer import __version__
from renderer.errors import UnavailableError
from renderer.host import fork_child, kill_child
from renderer.paths import PACKAGE, ensure_cache
from renderer.plain import printable

INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # exit code after Ctrl-C: 128 + SIGINT
MAX_LOGS = 50  # files that the folder of error logs keeps
# Signals that end a program: all of them end a command as Ctrl-C does. Windows has neither SIGHUP nor SIGQUIT.
STOP_SIGNALS = [number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")]

STOP_SECONDS = 1.5  # time between a signal and the SIGKILL that the parent sends to a supervised command
OBEY_SECONDS = 5.0  # time that a window has to end after a signal before it is killed

Handler = Callable[[int, FrameType | None], object]  # of a signal: gets its number and the interrupted frame
T = TypeVar("T")
unfinished_work: set[object] = set()  # calls of drivers and compilers on other threads that nobody waits for any more


class SafeStream:
    """A text stream whose reader or disk may disappear: further text is then dropped, and `error` holds the reason.

    A failed message must not end the work that it reports. Without a stream (`>&-`) nothing is written.
    """

    def __init__(self, stream: TextIO | None):
        self._stream = open(os.devnull, "w") if stream is None else stream
        self.error: OSError | ValueError | None = None

    def write(self, text: str) -> int:
        """Writes text; a failure is kept in `error`. Returns the length of the text."""
        return self._try(lambda: self._stream.write(text)) or len(text)

    def flush(self) -> None:
        """Flushes the stream; a failure is kept in `error`."""
        self._try(self._stream.flush)

    def isatty(self) -> bool:
        """True if the stream is a terminal."""
        return bool(self._try(self._stream.isatty))

    def _try(self, method: Callable[[], T]) -> T | None:
        """Calls a method of the stream; after a failure, whose reason is kept, nothing more is written."""
        if self.error:
            return None
        try:
            return method()
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            self.error = error
            # Python flushes the stream's buffer at exit, which must not fail: its descriptor becomes /dev/null.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def safe_streams() -> Iterator[tuple[SafeStream, SafeStream]]:
    """Replaces sys.stdout and sys.stderr by SafeStreams in the block, which survive closed pipes and full disks."""
    before = sys.stdout, sys.stderr
    for stream in before:  # a character that the locale cannot encode is shown as a number
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(ValueError):  # the stream is closed
                stream.reconfigure(errors="backslashreplace")
    streams = SafeStream(sys.stdout), SafeStream(sys.stderr)
    sys.stdout, sys.stderr = streams  # SafeStream has the methods that print() and argparse need
    try:
        yield streams
    finally:
        for stream in streams:
            stream.flush()
        sys.stdout, sys.stderr = before


@contextlib.contextmanager
def stop_signals(handler: Handler = signal.default_int_handler) -> Iterator[None]:
    """Handles SIGTERM and SIGHUP as SIGINT in the block: calls `handler`, by default one that raises KeyboardInterrupt.

    Ignored signals stay ignored (nohup). Outside the main thread, where Python forbids handlers, it does nothing.
    """
    before = {}
    try:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
    except ValueError:
        pass  # not the main thread
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class StopFlag:
    """A block in which the first stop signal sets `is_set` and calls wake() on a thread, for a main loop to end by.

    Python may raise KeyboardInterrupt between two instructions of threading.Condition, whose lock then stays held for
    ever; and it raises none while a driver blocks the main thread. So a thread reads the signals from a socket. It ends
    the process at the second signal, or if the block still runs OBEY_SECONDS after the first. A block that has obeyed
    raises KeyboardInterrupt at its end. Outside the main thread, where Python forbids handlers, no signal is seen.
    """

    def __init__(self) -> None:
        self.is_set = False
        self.wake: Callable[[], object] = lambda: None  # called on a thread
        self._outer = -1  # the descriptor that set_wakeup_fd() had before

    def __enter__(self) -> "StopFlag":
        self._signals = stop_signals(lambda number, frame: None)  # handlers that do nothing: the thread reads them
        self._signals.__enter__()
        import socket  # imported here: few commands need it

        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        with contextlib.suppress(ValueError):  # not the main thread
            # Python writes the number of each signal to this socket, whatever the main thread does.
            self._outer = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._watch, name="stop signals", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with contextlib.suppress(ValueError):
            signal.set_wakeup_fd(self._outer)
        self._writer.close()  # ends the thread
        self._thread.join()
        self._reader.close()
        self._signals.__exit__(None, None, None)
        if self.is_set and error is None:
            raise KeyboardInterrupt

    def _watch(self) -> None:
        """The thread: sets the flag at the first signal, and ends the process at the second or OBEY_SECONDS later."""
        if not self._is_signaled():
            return
        self.is_set = True
        with contextlib.suppress(Exception):  # the loop that it wakes may have ended meanwhile
            self.wake()
        self._reader.settimeout(OBEY_SECONDS)
        with contextlib.suppress(TimeoutError):
            if not self._is_signaled():
                return
        print("rayfold: interrupted", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)

    def _is_signaled(self) -> bool:
        """Waits for the number of a stop signal and returns True; False once the block has ended."""
        while number := self._reader.recv(1):
            if number[0] in STOP_SIGNALS:
                return True
        return False


def end_process(code: int) -> NoReturn:
    """Ends the process at once, even while a driver or a compiler works on another thread."""
    if unfinished_work:
        for number in STOP_SIGNALS:  # a second signal must not interrupt the cleanup
            signal.signal(number, signal.SIG_IGN)
        with contextlib.suppress(Exception):
            atexit._run_exitfuncs()
        os._exit(code)
    gc.freeze()  # skips the last garbage collection, 50 ms of an export: the system frees the memory anyway
    sys.exit(code)


class Supervision:
    """Holds a flag: `allowed` is True while commands may continue in a child; only run_process() of cli.py sets it."""

    allowed = False


def supervise() -> None:
    """Forks; the command continues in the child, and the parent waits for it and ends with its exit code.

    The parent kills a child that still runs STOP_SECONDS after a signal of STOP_SIGNALS. Commands call this before work
    that may block in a driver for ever, because Python runs no signal handler before the driver returns. Without fork
    (Windows), or if Supervision.allowed is False, nothing happens.
    """
    if not Supervision.allowed:
        return
    Supervision.allowed = False
    child = fork_child()
    if not child:
        return
    code = INTERNAL_ERROR
    try:
        code = _wait_for(child)
    except KeyboardInterrupt:  # a second signal between two handlers
        kill_child(child)
        code = INTERRUPTED
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)


def _wait_for(child: int) -> int:
    """Waits for the child, and ends it after a signal; returns its exit code as exit_code() does."""
    try:
        with stop_signals():
            _, status = os.waitpid(child, 0)
    except KeyboardInterrupt:
        with stop_signals(lambda number, frame: None):
            status = _end(child)
    return exit_code(status)


def exit_code(status: int) -> int:
    """The exit code of a command whose child has this wait status; a sentence on stderr if a signal ended it."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0 or -code in STOP_SIGNALS:
        return code if code >= 0 else INTERRUPTED
    name = f"signal {-code} ({signal.strsignal(-code)})"
    print(f"rayfold: the run was ended by {name}: a driver failed, or memory was exhausted", file=sys.stderr)
    sys.stderr.flush()
    return UnavailableError.exit_code


def _end(child: int) -> int:
    """Ends a child after a signal, and returns its wait status.

    A terminal also signals the child, but other senders signal only this process. So the signal is passed on after a
    fifth of STOP_SECONDS, and the child is killed at their end.
    """
    ends, forwarded = time.monotonic() + STOP_SECONDS, False
    while time.monotonic() < ends:
        try:
            ended, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:  # waitpid() reaped it as the signal came, and KeyboardInterrupt replaced its status
            return INTERRUPTED << 8  # a wait status has the exit code in its second byte
        if ended:
            return status
        if not forwarded and time.monotonic() > ends - STOP_SECONDS * 0.8:
            os.kill(child, signal.SIGINT)
            forwarded = True
        time.sleep(0.01)
    kill_child(child)
    print("rayfold: interrupted; what ran on the device was killed", file=sys.stderr)
    return INTERRUPTED << 8


def limit_blas_spin() -> None:
    """Lets the threads of NumPy's OpenBLAS sleep after 2^20 clock cycles without work, 0.4 ms; call before the import.

    OpenBLAS starts a thread for each core, and by default these spin for 2^26 cycles: an import of NumPy that takes
    0.1 s costs 1.2 CPU-s on 16 cores, with 2^20 cycles 0.1 CPU-s.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")


def module_child(module: str) -> tuple[list[str], dict[str, str]]:
    """Returns the command and the environment of a child process that runs a module of the program.

    The option -P and a PYTHONPATH without empty entries keep modules in the current folder, such as a random.py, from
    replacing Python's.
    """
    roots = [str(PACKAGE.parent), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return [sys.executable, "-P", "-m", module], {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}


def log_internal_error(error: BaseException, doing: str) -> str:
    """Writes the traceback of an internal error to a new file; returns one sentence that names the file."""
    import platform
    import traceback

    text = f"rayfold {__version__}, Python {platform.python_version()}, {platform.platform()}\n{doing}\n\n"
    text += "".join(traceback.format_exception(error))
    message = f"internal error in {doing}: {type(error).__name__}: {shorten(str(error))}"
    try:
        return f"{message}; the log is {_write_log(text)}"
    except Exception:  # the handler of internal errors must not raise one
        return f"{message}; no log could be written"


def shorten(text: str, most: int = 200) -> str:
    """Returns the first line of a text, printable and cut to `most` characters."""
    return printable(text.strip().partition("\n")[0], most)


def _write_log(text: str) -> Path:
    """Writes a new file into the folder of logs, which keeps the newest MAX_LOGS files; returns its path."""
    folder = ensure_cache() / "rayfold" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("*.log"))[: 1 - MAX_LOGS]:  # by name, which begins with the time; one is added below
        old.unlink(missing_ok=True)
    prefix = time.strftime("%Y%m%d-%H%M%S-")
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=prefix, suffix=".log", delete=False) as file:
        file.write(text)
    return Path(file.name)
