"""The program as tests start it: the environment of a child process, and commands that run in this process."""

import contextlib
import io
import os
import subprocess
import sys
import warnings

from renderer import cli
from renderer.paths import ROOT


def python_path() -> str:
    """PYTHONPATH with this tree in front of what the environment names, where a machine may keep its packages."""
    return os.pathsep.join([str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])


def run_here(*words: object) -> subprocess.CompletedProcess[str]:
    """`rayfold WORDS` in this process, which saves the half second of a start: its exit code and what it printed.

    Where the process itself is tested (signals, streams, imports, the environment), a child is started instead.
    """

    def show(message: Warning | str, category: type[Warning], file: str, line: int, *_: object) -> None:
        print(warnings.formatwarning(message, category, file, line), file=sys.stderr)

    command = [str(word) for word in words]
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
        warnings.catch_warnings(),
    ):
        warnings.showwarning = show  # as a user sees them; pytest would collect them
        try:
            code = cli.main(command)
        except SystemExit as end:  # of the parser of arguments
            code = int(end.code or 0)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())
