"""Runs a `rayfold` command in a child process, without blocking the UI thread.

picture_export.py exports with it, lesson_reader.py measures the steps of lessons.
"""

import subprocess
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryDirectory

from renderer.errors import UserError
from renderer.system import trust
from renderer.system.process import module_child
from renderer.system.progress import PROGRESS_OFTEN

MAX_LINE = 300  # characters of an error that are shown
MAX_BYTES = 10_000  # most bytes of stderr that are searched for its last line


class CommandChild:
    """A running command. Its output goes to files of `folder`, since a pipe could fill up."""

    def __init__(self, folder: TemporaryDirectory[str], arguments: list[str], doing: str):
        """Starts the command, or raises UserError. `doing`, such as "the export", is the subject of error sentences."""
        self._folder, self._doing = folder, doing
        command, environment = module_child("renderer")
        arguments, environment[PROGRESS_OFTEN] = arguments + trust.options(), "1"
        try:
            with open(self._file("out"), "wb") as out, open(self._file("err"), "wb") as err:
                self._process = subprocess.Popen(
                    command + arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
                )
        except OSError as error:
            folder.cleanup()
            raise UserError(f"{doing} cannot be started: {error.strerror}") from error

    def _file(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def poll(self) -> int | None:
        """The exit code; None while the command runs."""
        return self._process.poll()

    def output(self) -> str:
        """The text on its stdout."""
        return self._file("out").read_text("utf-8", "replace")

    def last_line(self) -> str:
        """The last line on its stderr."""
        with open(self._file("err"), "rb") as file:
            file.seek(max(file.seek(0, SEEK_END) - MAX_BYTES, 0))
            return file.read().decode("utf-8", "replace").strip().rpartition("\n")[2]

    def failure(self) -> str:
        """The last line on its stderr, or else its exit code."""
        last = self.last_line().removeprefix("rayfold: ").removeprefix("error: ")
        return last[:MAX_LINE] or f"{self._doing} ended with code {self.poll()}"

    def terminate(self) -> None:
        """Asks the command to end."""
        self._process.terminate()

    def close(self, seconds: float = 0.0) -> None:
        """Kills the command unless it ends within `seconds`, and deletes its folder."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()
