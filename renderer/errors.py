"""The errors that end a command: each is one sentence for the user and an exit code."""


class UserError(Exception):
    """Something a user can cause, reported in one sentence that names file, key, value found and values allowed."""

    exit_code = 2


class InputError(UserError):
    """An input file is bad."""

    exit_code = 5


class UnavailableError(UserError):
    """This machine lacks what the command needs: a device, GL, a display, an optional package."""

    exit_code = 4


class DiskFullError(UserError):
    """The disk is full; files that were complete are kept."""

    exit_code = 3


class KernelError(Exception):
    """A kernel or shader that does not compile or run; the message holds the compiler's log with file:line."""

    exit_code = 4
