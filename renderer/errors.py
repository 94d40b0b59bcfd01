"""The errors that end a command: each is one sentence for the user and an exit code."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from renderer.plain import printable


class UserError(Exception):
    """Something a user can cause, reported in one sentence that names file, key, value found and values allowed."""

    exit_code = 2
    line_breaks = ""  # "\n" where the text shows lines of a program

    def __str__(self) -> str:
        return printable(super().__str__(), keep=self.line_breaks)


class InputError(UserError):
    """An input file is bad."""

    exit_code = 5


class BadValueError(UserError, ValueError):
    """A value that a dataclass of a scene refuses: a script's mistake, or a file's, whose reader names the place."""


class UnavailableError(UserError):
    """This machine lacks what the command needs: a device, GL, a display, an optional package."""

    exit_code = 4


class IncompleteError(UserError):
    """Work that was cut off; files that were complete are kept."""

    exit_code = 3


class DiskFullError(IncompleteError):
    """The disk is full."""


class KernelError(Exception):
    """A kernel or shader that does not compile or run; the message holds the compiler's log with file:line."""

    exit_code = 4


DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk, a quota or a limit of file sizes leaves no room


def is_disk_full(error: BaseException) -> bool:
    """True for an OSError of DISK_FULL."""
    return isinstance(error, OSError) and error.errno in DISK_FULL


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Raise an OSError of the block as an InputError that names the path of the input file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def import_optional(module: str, need: str) -> ModuleType:
    """The module of an optional package; UnavailableError, which begins with `need`, where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UnavailableError(f"{need} ({error})") from error
