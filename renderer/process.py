"""The edge between a command and its process: signals, streams, the log of internal errors, and the end."""

import atexit
import contextlib
import datetime
import gc
import io
import os
import platform
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from renderer import __version__
from renderer.host import fork_child, kill_child
from renderer.paths import PACKAGE, ensure_cache
from renderer.plain import printable

INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130
MAX_LOGS = 50
# Signals that end a program: all of them end a command as Ctrl-C does. Windows has no SIGHUP.
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

STOP_SECONDS = 1.5  # that a supervised command has to end in after a signal

unfinished_work: set[object] = set()  # on other threads, in drivers and compilers, that nobody waits for any more


class SafeStream:
    """A text stream whose reader or disk may go away: what cannot be written then is lost, and `error` says why.

    A message that cannot be shown must not end the work that it is about. Without a stream (`>&-`) nothing is written.
    """

    def __init__(self, stream: Any):
        self._stream = open(os.devnull, "w") if stream is None else stream
        self.error: OSError | ValueError | None = None

    def write(self, text: str) -> int:
        """Write text, or note that this failed."""
        return self._try("write", text) or len(text)

    def flush(self) -> None:
        """Flush the stream, or note that this failed."""
        self._try("flush")

    def isatty(self) -> bool:
        """Whether a person is at the other end."""
        return bool(self._try("isatty"))

    def _try(self, method: str, *arguments: Any) -> Any:
        if self.error:
            return None
        try:
            return getattr(self._stream, method)(*arguments)
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            self.error = error
            with contextlib.suppress(OSError, ValueError, AttributeError):  # what is buffered must not fail at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def safe_streams() -> Iterator[tuple[SafeStream, SafeStream]]:
    """Standard output and error that closed pipes, full disks and missing descriptors do not turn into exceptions."""
    before = sys.stdout, sys.stderr
    for stream in before:  # a character that the locale lacks is shown by its number
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(ValueError):  # it is closed
                stream.reconfigure(errors="backslashreplace")
    streams = SafeStream(sys.stdout), SafeStream(sys.stderr)
    sys.stdout, sys.stderr = streams  # type: ignore[assignment]  # what print() and argparse need of a stream
    try:
        yield streams
    finally:
        for stream in streams:
            stream.flush()
        sys.stdout, sys.stderr = before


@contextlib.contextmanager
def stop_signals(handler: Any = signal.default_int_handler) -> Iterator[None]:
    """SIGTERM and SIGHUP act as SIGINT: `handler` is called, by default one that raises KeyboardInterrupt.

    A signal that is ignored stays so (nohup). Outside the main thread nothing changes: Python allows it only there.
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


def end_process(code: int) -> NoReturn:
    """Ends the process, at once even if a driver or a compiler is at work on another thread."""
    if unfinished_work:
        with contextlib.suppress(Exception):
            atexit._run_exitfuncs()
        os._exit(code)
    gc.freeze()  # the interpreter's last search for cycles takes 50 ms of an export, and finds what the system frees
    sys.exit(code)


class Supervision:
    """Whether commands of this process may go on in a child; only the process's own command line allows it."""

    allowed = False


def supervise() -> None:
    """Go on in a child process, which this one kills if it outlives a signal that ends programs by STOP_SECONDS.

    For work that may block in a driver for ever: Python runs no signal handler before the driver returns. The parent
    ends with the child's exit code. Without fork (Windows), and where supervision is not allowed, nothing happens.
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
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)


def _wait_for(child: int) -> int:
    """The exit code of a child that signals end."""
    try:
        with stop_signals():
            _, status = os.waitpid(child, 0)
    except KeyboardInterrupt:
        with stop_signals(lambda number, frame: None):
            status = _end(child)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    name = signal.Signals(-code).name
    print(f"rayfold: the run was ended by {name}: a driver failed, or memory was exhausted", file=sys.stderr)
    return 128 - code


def _end(child: int) -> int:
    """The status of a child that is to end: a terminal signals it too, others signal us alone."""
    ends, forwarded = time.monotonic() + STOP_SECONDS, False
    while time.monotonic() < ends:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if not forwarded and time.monotonic() > ends - STOP_SECONDS * 0.8:
            os.kill(child, signal.SIGINT)
            forwarded = True
        time.sleep(0.01)
    kill_child(child)
    print("rayfold: interrupted; what ran on the device was killed", file=sys.stderr)
    return INTERRUPTED << 8


def module_child(module: str) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of a child process that runs a module of the program.

    -P, and a PYTHONPATH without an empty entry: a file random.py in the current folder must not be taken for Python's.
    """
    roots = [str(PACKAGE.parent), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return [sys.executable, "-P", "-m", module], {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}


def log_internal_error(error: BaseException, doing: str) -> str:
    """Writes the traceback of an error of ours to a file of its own; returns one sentence that names the file."""
    text = f"rayfold {__version__}, Python {platform.python_version()}, {platform.platform()}\n{doing}\n\n"
    text += "".join(traceback.format_exception(error))
    what = f"internal error in {doing}: {type(error).__name__}: {shorten(str(error))}"
    try:
        return f"{what}; the log is {_write_log(text)}"
    except Exception:  # of the boundary itself: nothing may escape here
        return f"{what}; no log could be written"


def shorten(text: str, most: int = 200) -> str:
    """The first line of a text, printable and cut to `most` characters."""
    return printable(text.strip().partition("\n")[0], most)


def _write_log(text: str) -> Path:
    """A new file in the folder of logs, of which the newest MAX_LOGS are kept."""
    folder = ensure_cache() / "rayfold" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob("*.log"))[: 1 - MAX_LOGS]:
        old.unlink(missing_ok=True)
    prefix = f"{datetime.datetime.now():%Y%m%d-%H%M%S}-"
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=prefix, suffix=".log", delete=False) as file:
        file.write(text)
    return Path(file.name)
