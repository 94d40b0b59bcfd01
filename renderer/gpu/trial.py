"""Tries drivers in child processes, so that one that aborts, hangs or exits does not end the program.

The parent names a function as "module:name". The child calls it with string arguments and writes the result as JSON to
a file: not to stdout, where drivers print; and a driver that calls exit(0) leaves no file. Verdicts are recorded on
disk, so that later starts of the program need no trial.
"""

import atexit
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from renderer.errors import KernelError, UserError
from renderer.gpu.cache import cache_folder, write_atomically
from renderer.host import die_after, die_with, end_process_group, is_running, wait_for_child
from renderer.paths import temporary_directory
from renderer.system.process import log_internal_error, module_child, shorten

TIMEOUT_SECONDS = 20.0  # long enough for a CPU's driver, which compiles its first kernel in a trial
RETRY_SECONDS = 3600.0  # after which a driver with a bad verdict is tried again
MAX_VERDICTS = 64  # on record; the oldest are dropped
PARENT = "RAYFOLD_TRIAL_PARENT"  # the environment variable with the id of the process that waits for a trial

_asking = threading.Lock()


class Trial(NamedTuple):
    """The outcome of a child process: the function's answer, or the reason why there is none."""

    answer: Any
    reason: str


class Verdict(NamedTuple):
    """The reason why a driver must not be used in this process, or ""; `harmless` if using it would only do nothing."""

    reason: str
    harmless: bool = False


def run_trial(
    function: str, *words: str, seconds: float | None = None, environment: Mapping[str, str] | None = None
) -> Trial:
    """Calls "module:name" in a child process, which is killed after `seconds` (None: TIMEOUT_SECONDS).

    `function` may also be the path of a script that does what main() does here without importing the program.
    """
    seconds = TIMEOUT_SECONDS if seconds is None else seconds
    with temporary_directory("trial") as folder, open(Path(folder, "stderr"), "w+b") as stderr:
        path = Path(folder, "answer.json")
        command, inherited = module_child("renderer.gpu.trial")
        if function.endswith(".py"):
            command, words = [sys.executable, "-I", "-S", function], (str(path), *words)
        else:
            words = (function, str(path), *words)
            inherited = {**inherited, PARENT: str(os.getpid())}
        child = subprocess.Popen(
            [*command, str(seconds + 5), *words],
            env={**inherited, **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True,
        )  # fmt: skip
        try:
            code = wait_for_child(child, seconds)
        except BaseException as error:
            end_process_group(child)  # not waited for: a process that hangs inside the kernel never ends
            if isinstance(error, subprocess.TimeoutExpired):
                return Trial(None, f"it does not answer within {seconds:.0f} seconds")
            raise
        with suppress(OSError, ValueError, RecursionError):
            answer, reason = json.loads(path.read_text(encoding="utf-8"))
            if code == 0:
                return Trial(answer, reason)
        stderr.seek(max(stderr.tell() - 300, 0))
        said = shorten(stderr.read().decode(errors="replace").strip().rpartition("\n")[2])
    return Trial(None, f"it ends the process that loads it ({_exit_name(code)}{': ' if said else ''}{said})")


def _exit_name(code: int) -> str:
    """Names the signal or exit status that ended a process."""
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def recall_verdicts(tests: dict[str, Callable[[], Verdict]], again: bool = False) -> dict[str, Verdict]:
    """Returns each test's verdict by its key: from the record on disk, else by running the tests concurrently.

    The key must contain everything the verdict depends on. A good verdict is kept until a process that relied on it was
    killed; a bad verdict is tried again after RETRY_SECONDS.
    """
    known = {} if again else _recall(tests)
    wanted = [key for key in tests if key not in known]
    with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
        tried = dict(zip(wanted, pool.map(lambda key: _judge(tests[key]), wanted), strict=True))
    _remember(tried)
    return known | tried


def _judge(test: Callable[[], Verdict]) -> Verdict:
    try:
        return test()
    except OSError:  # no child process can be started, which is not the driver's fault
        return Verdict("")


def try_once(key: str, function: str) -> Verdict:
    """Returns the verdict of run_trial(function), from the record on disk if its key is there."""
    return recall_verdicts({key: lambda: Verdict(run_trial(function).reason)})[key]


def pass_once(key: str, test: Callable[[], None]) -> None:
    """Runs a test, which raises if it fails, unless the record says that it passed; see recall_verdicts()."""
    if key not in _recall([key]):
        test()
        _remember({key: Verdict("")})


def _recall(keys: Iterable[str]) -> dict[str, Verdict]:
    """Reads the valid verdicts on record by key; none if a process that relied on them was killed."""
    with _asking:
        if _was_killed():
            return {}
    record = _read_record()
    return {key: Verdict(*record[name][:2]) for key in keys if _holds(record.get(name := _name_of_key(key)))}


def _remember(verdicts: dict[str, Verdict]) -> None:
    if verdicts:
        record = _read_record() | {_name_of_key(key): [*row, time.time()] for key, row in verdicts.items()}
        newest = dict(sorted(record.items(), key=lambda item: item[1][2])[-MAX_VERDICTS:])
        write_atomically(_record_path(), json.dumps(newest).encode())


def _name_of_key(key: str) -> str:
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()


def forget_verdicts() -> None:
    """Deletes all verdicts, so that later processes try every driver again."""
    with suppress(OSError):
        _record_path().unlink()


def _record_path() -> Path:
    """The file in which verdicts are recorded."""
    return cache_folder() / "verdicts.json"


def _read_record() -> dict[str, list[Any]]:
    try:
        rows = json.loads(_record_path().read_text(encoding="utf-8")).items()
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}
    return {key: row for key, row in rows if _is_row(row)}


@cache
def _was_killed() -> bool:
    """True if a process that relied on verdicts was killed; asked once, since this process then relies on them too.

    Each such process has a file named by its id in the folder `running`, which it removes when it ends. A file whose
    process does not run, or an earlier file of this process's id, is left over from a process that was killed.
    """
    folder, killed = cache_folder() / "running", False
    marker = folder / str(os.getpid())
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path == marker or not (path.name.isdigit() and is_running(int(path.name))):
                path.unlink()
                killed = True
        marker.touch()
        atexit.register(_end, marker, os.getpid())
    return killed


def _end(path: Path, owner: int) -> None:
    """Removes the file of process `owner` at its exit."""
    if os.getpid() == owner:  # a forked child inherits its parent's exit handlers
        with suppress(OSError):
            path.unlink()


def _is_row(row: object) -> bool:
    """True for a recorded verdict: [reason, harmless, seconds since the epoch]."""
    match row:
        case [str(), bool(), float()]:
            return True
    return False


def _holds(row: list[Any] | None) -> bool:
    """True if a recorded verdict is still valid: it is good, or a bad one of less than RETRY_SECONDS ago."""
    return row is not None and (not row[0] or time.time() - row[2] < RETRY_SECONDS)


def state_of_files(*paths: str | Path) -> str:
    """Describes the existing files by size and modification time, for a key."""
    states = []
    for path in paths:
        with suppress(OSError, ValueError):
            status = os.stat(path)
            states.append(f"{status.st_size} {status.st_mtime_ns}")
    return " ".join(states)


def main(seconds: str, function: str, path: str, *words: str) -> int:
    """The child's entry point: writes [answer, reason]; ends after `seconds` even if its parent was killed."""
    die_after(float(seconds))
    if parent := os.environ.pop(PARENT, ""):
        die_with(int(parent))
    module, _, name = function.partition(":")
    answer, reason = None, ""
    try:
        answer = getattr(import_module(module), name)(*words)
    except (KernelError, UserError) as error:
        reason = str(error)
    except Exception as error:  # the child's outermost boundary: the parent reports the error
        reason = log_internal_error(error, f"{function} {' '.join(words)}".strip())
    Path(path).write_text(json.dumps([answer, reason]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
