"""Verdicts about drivers, recorded on disk: a driver that passed its trial (system/trial.py) is not tried again soon.

A trial starts a driver in a child process, which a bad driver may crash. recall_verdicts() returns the Verdict of each
test by its key, a text with all on which the verdict depends: driver files, their sizes and times. The record is a JSON
object in the cache: for the hash of each key, [reason, harmless, seconds since the epoch].
"""

import atexit
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from renderer.gpu.cache import cache_folder, write_atomically
from renderer.host import is_running
from renderer.system.trial import run_trial

RETRY_SECONDS = 3600.0  # age at which a bad verdict expires: the driver is then tried again
MAX_VERDICTS = 64  # verdicts that the file keeps; the oldest are dropped

_asking = threading.Lock()  # held while _was_killed() is asked for the first time


class Verdict(NamedTuple):
    """The reason why a driver must not be used in this process, or "".

    `harmless` is true if the driver does not crash: it reports an error, or has no device.
    """

    reason: str
    harmless: bool = False


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
    """Returns the verdict of run_trial(function), from the record on disk if its key is there.

    `function` is "module:name", or the path of a script.
    """
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
    record, names = _read_record(), {key: _name_of_key(key) for key in keys}
    return {key: record[name][0] for key, name in names.items() if name in record}


def _remember(verdicts: dict[str, Verdict]) -> None:
    if verdicts:
        record = _read_record() | {_name_of_key(key): (verdict, time.time()) for key, verdict in verdicts.items()}
        newest = sorted(record.items(), key=lambda item: item[1][1])[-MAX_VERDICTS:]
        rows = {name: [*verdict, seconds] for name, (verdict, seconds) in newest}
        write_atomically(_record_path(), json.dumps(rows).encode())


def _name_of_key(key: str) -> str:
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()


def forget_verdicts() -> None:
    """Deletes all verdicts, so that later processes try every driver again."""
    with suppress(OSError):
        _record_path().unlink()


def _record_path() -> Path:
    """The file in which verdicts are recorded."""
    return cache_folder() / "verdicts.json"


def _read_record() -> dict[str, tuple[Verdict, float]]:
    """Each valid verdict on record, and its seconds since the epoch, by the hash of its key.

    Damaged rows and bad verdicts that have expired are left out.
    """
    try:
        rows = json.loads(_record_path().read_text(encoding="utf-8")).items()
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}
    record = {}
    for name, row in rows:
        match row:
            case [str(reason), bool(harmless), float(seconds)] if not reason or time.time() - seconds < RETRY_SECONDS:
                record[name] = Verdict(reason, harmless), seconds
    return record


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


def state_of_files(*paths: str | Path) -> str:
    """Describes the existing files by size and modification time, for a key."""
    states = []
    for path in paths:
        with suppress(OSError, ValueError):
            status = os.stat(path)
            states.append(f"{status.st_size} {status.st_mtime_ns}")
    return " ".join(states)
