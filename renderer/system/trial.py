"""Calls functions in child processes, so that a driver or decoder that aborts, hangs or exits does not end the program.

The parent names a function as "module:name". The child calls it with string arguments and writes the result as JSON to
a file: not to stdout, where drivers print; and a driver that calls exit(0) leaves no file.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from renderer.errors import KernelError, UserError
from renderer.host import die_after, die_with, end_process_group, wait_for_child
from renderer.paths import temporary_directory
from renderer.system.process import log_internal_error, module_child, shorten

TIMEOUT_SECONDS = 20.0  # long enough for a CPU's driver, which compiles its first kernel in a trial
PARENT = "RAYFOLD_TRIAL_PARENT"  # the environment variable with the id of the process that waits for a trial


class Trial(NamedTuple):
    """The outcome of a child process: the function's answer, or the reason why there is none."""

    answer: Any
    reason: str


def run_trial(
    function: str, *words: str, seconds: float | None = None, environment: Mapping[str, str] | None = None
) -> Trial:
    """Calls "module:name" in a child process, which is killed after `seconds` (None: TIMEOUT_SECONDS).

    `function` may also be the path of a script that does what main() does here without importing the program. It gets
    no PARENT: if this process is killed, it ends after `seconds` + 5, while other children end at once on Linux.
    """
    seconds = TIMEOUT_SECONDS if seconds is None else seconds
    with temporary_directory("trial") as folder, open(Path(folder, "stderr"), "w+b") as stderr:
        path = Path(folder, "answer.json")
        command, inherited = module_child("renderer.system.trial")
        if function.endswith(".py"):  # -I -S: starts faster, without site-packages
            command, words = [sys.executable, "-I", "-S", function], (str(path), *words)
        else:
            words = (function, str(path), *words)
            inherited = {**inherited, PARENT: str(os.getpid())}
        child = subprocess.Popen(
            [*command, str(seconds + 5), *words],  # the child ends itself 5 s later, if this process is killed
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
        stderr.seek(max(stderr.tell() - 300, 0))  # the child has moved the offset, which both share, to the end
        said = shorten(stderr.read().decode(errors="replace").strip().rpartition("\n")[2])
    return Trial(None, f"it ends the process that loads it ({_exit_name(code)}{': ' if said else ''}{said})")


def _exit_name(code: int) -> str:
    """Names the signal or exit status that ended a process."""
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


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
