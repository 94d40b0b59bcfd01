"""Limits for files of strangers: which other files they may name, and how much memory and time they may take.

named_file() checks every key, link and statement of a file that names another file. Files that the user names, on the
command line or in the window, may lie anywhere; --untrusted refuses links out of their folders.
check_memory() is called before large allocations; a parent process enforces --max-memory, --untrusted and --time-limit
on the whole process.
"""

import argparse
import math
import mmap
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path

from renderer import host
from renderer.errors import IncompleteError, InputError, UnavailableError, UserError
from renderer.paths import ASSETS, SCENES, SHADERS
from renderer.plain import format_value, parse_whole, printable, set_in_block
from renderer.system.files import read_text, resolve
from renderer.system.process import STOP_SIGNALS, Supervision, exit_code, stop_signals

UNTRUSTED_MEMORY, UNTRUSTED_SECONDS = 2 << 30, 120  # bytes and seconds that --untrusted allows
SMALL_BYTES = 1 << 26  # smaller allocations are not checked
WATCH_SECONDS = 0.02  # time between two looks at clock and memory
GRACE_SECONDS = 10.0  # time after --time-limit for the pass or step that is being drawn
COMPILE_SECONDS, COMPILE_MEMORY = 60.0, 2 << 30  # limits (s, bytes) of a GLSL compile, which macros can make endless
DRAWING, COMPILING = 1, 2  # bits of Limits.doing
MAX_NAME = 4096  # characters; PATH_MAX of Linux
_OWN = {resolve(path) for path in (SCENES, ASSETS, SHADERS)}
_chosen: list[Path] = []  # folders of --allow
_allowed: set[Path] = set()  # folders of --allow, and files that named_file() has accepted
_trusts: ContextVar[bool] = ContextVar("trusts", default=False)  # True in a block of trusting()


class Limits:
    """The limits that --max-memory, --untrusted and --time-limit set for this process."""

    memory: int | None = None  # bytes
    refuses_programs = False  # --untrusted; `run` clears it: NumPy interprets the program that its user names
    refuses_links = False  # --untrusted: neither inputs nor outputs may be links out of their folders
    doing: mmap.mmap | None = None  # one byte of DRAWING and COMPILING, shared with the process that watches this one


def add_arguments(command: argparse.ArgumentParser, files: Iterable[str] = ()) -> None:
    """Declares --allow; for a command that ends by itself also --max-memory and --untrusted.

    `files` names such a command's arguments that are inputs or outputs: a path, NAME=PATH, or a list of either.
    """
    if files:
        command.set_defaults(untrusted_files=tuple(files))
        command.add_argument("--max-memory", type=memory, metavar="SIZE", help="of the process, such as 2G or 500M")
        help = f"for files of strangers: no programs, {UNTRUSTED_SECONDS} s and, without --max-memory, 2G at most"
        command.add_argument("--untrusted", action="store_true", help=help)
    help = "files may name files of this folder too (else of their own folder and below); repeatable"
    command.add_argument("--allow", action="append", default=[], metavar="FOLDER", help=help)


def apply(args: argparse.Namespace) -> None:
    """Applies the options of add_arguments(), if the command has them, to this process. Raises UserError."""
    for name in getattr(args, "allow", []):
        allow(name)
    Limits.refuses_programs = Limits.refuses_links = untrusted = getattr(args, "untrusted", False)
    if untrusted:
        for name in args.untrusted_files:
            given = getattr(args, name, None) or ()  # `bench history` has no outputs
            for text in (given,) if isinstance(given, (str, Path)) else given:
                refuse_links(str(text))
                refuse_links(str(text).partition("=")[2])  # the path of NAME=PATH
    Limits.memory = getattr(args, "max_memory", None) or (UNTRUSTED_MEMORY if untrusted else None)
    # With --farm workers draw: export refuses --time-limit then; verify's has a default, which is for this machine.
    limit = None if getattr(args, "farm", None) else getattr(args, "time_limit", None)
    shows = str(getattr(args, "input", None) or getattr(args, "picture", ""))  # of export and verify, which draw
    # Only the process of a command line may fork (run_process() of cli.py), not a Python program that calls main().
    if Supervision.allowed and (Limits.memory or limit or _may_hold_shader(Path(shows))):
        seconds, grace = UNTRUSTED_SECONDS if untrusted else math.inf, GRACE_SECONDS if shows else 0.0
        _watch(Limits.memory or math.inf, seconds, limit or math.inf, grace)


def _may_hold_shader(path: Path) -> bool:
    """True for a shader, a scene file that may show one, and a picture, whose recipe may: its compile is watched."""
    if path.suffix.lower() == ".toml":
        with suppress(InputError):
            return '"toy"' in read_text(path)
    return path.suffix.lower() in (".glsl", ".frag", ".png")


def refuse_links(name: str) -> None:
    """Raises InputError for a name that is a link out of its folder, as a stranger's archive may hold one.

    The folders of a relative name may be such links, too; the folders of an absolute name are the system's.
    """
    for each in [Path(name)] if os.path.isabs(name) else [Path(name), *Path(name).parents]:
        path = Path(os.path.abspath(each))
        if path.is_symlink() and not _lies_in(resolve(path), {path.parent, resolve(path.parent)}):
            raise InputError(f"{path}: is a link out of its folder; --untrusted follows it only with --allow FOLDER")


@contextmanager
def about(path: Path, what: str = "settings: ") -> Iterator[None]:
    """Puts the path of a file before errors of check_memory() in the block that begin with `what`."""
    try:
        yield
    except (InputError, UnavailableError) as error:
        if not str(error).startswith(what):
            raise
        raise type(error)(f"{path}: {error}") from error


def memory(text: str) -> int:
    """Parses a size of memory, a whole number of MiB or GiB such as 500M or 2G, as bytes."""
    count = parse_whole(text[:-1], 1, 1 << 20)
    if count is None or text[-1:].upper() not in ("M", "G"):
        raise argparse.ArgumentTypeError(f"{printable(text, 60)!r} is not a size such as 500M or 2G")
    return count << (30 if text[-1:].upper() == "G" else 20)


@contextmanager
def doing(what: int) -> Iterator[None]:
    """Marks a block that may be ended from outside: DRAWING by --time-limit, COMPILING by COMPILE_SECONDS and _MEMORY.

    After DRAWING, what was drawn is developed and written.
    """
    shared = Limits.doing or bytearray(1)
    shared[0] |= what
    try:
        yield
    finally:
        shared[0] &= ~what


def _watch(most: float, seconds: float, limit: float, grace: float) -> None:
    """Forks; the command continues in the child, which is killed beyond `most` bytes of memory or `seconds`.

    `most` covers the child and all processes that it starts. The child is also killed if its drawing has not ended
    `grace` seconds after `limit`: a drawing ends in time by itself unless a pass is endless; a program does not.

    Every WATCH_SECONDS this process also asks for signals that another process sent it, and passes them to the child.
    Signals of the terminal reach the child by themselves. macOS has no sigtimedwait(), by which sent_signal() asks;
    there a handler passes on all signals but SIGINT, which a terminal sends.
    """
    Limits.doing = mmap.mmap(-1, 1)
    Limits.doing[0] = DRAWING  # until the first picture is drawn
    start, child = time.monotonic(), host.fork_child()
    if not child:
        return
    code, can_wait = 0, sys.platform != "darwin"
    began_compile = 0.0  # when the compilation began that runs; now if none does
    with (
        stop_signals(lambda number, frame: None if number == signal.SIGINT else os.kill(child, number)),
        host.signals_blocked(STOP_SIGNALS if can_wait else ()),
    ):
        while not code:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                os._exit(exit_code(status))
            took = time.monotonic() - start
            began_compile = began_compile if Limits.doing[0] & COMPILING else took
            compiles = took - began_compile
            if most < math.inf and host.tree_memory(child) > most:
                said, code = f"more than the {host.format_bytes(most)} of --max-memory", InputError.exit_code
            elif took > seconds:
                said, code = f"longer than the {seconds:g} s of --untrusted", IncompleteError.exit_code
            elif compiles > COMPILE_SECONDS or compiles > 0 and host.tree_memory(child) > COMPILE_MEMORY:
                most_said = f"{COMPILE_SECONDS:g} s or {host.format_bytes(COMPILE_MEMORY)}"
                said, code = f"more than the {most_said} that a shader may take to compile", InputError.exit_code
            elif took > limit + grace and Limits.doing[0]:
                said, code = f"longer than the {limit:g} s of --time-limit", IncompleteError.exit_code
            if can_wait and (number := host.sent_signal(STOP_SIGNALS)):
                os.kill(child, number)
            if not host.wait_for_end(child, WATCH_SECONDS):
                time.sleep(WATCH_SECONDS)
    host.kill_child(child)
    print(f"rayfold: the run takes {said}; it was ended", file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


def check_memory(count: int, what: str) -> None:
    """Raises InputError if `count` bytes more exceed --max-memory, UnavailableError if they exceed what is free.

    `what` names the key or array that needs the memory: "settings: procedural[3]". Call it before the allocation.
    """
    if count < SMALL_BYTES:
        return
    if Limits.memory is not None and host.used_memory() + count > Limits.memory:
        most, used = host.format_bytes(Limits.memory), host.format_bytes(host.used_memory())
        allowed = f"{most} of --max-memory less the {used} in use are allowed"
        raise InputError(f"{what}: takes about {host.format_bytes(count)} of memory; {allowed}")
    if count > (free := host.available_memory()):
        raise UnavailableError(
            f"{what}: takes about {host.format_bytes(count)} of memory; {host.format_bytes(free)} are free"
        )


def allow(path: str | Path) -> None:
    """Lets files name this file, or the files of this folder, in this process; UserError if it does not exist."""
    if not os.path.exists(path):
        raise UserError(f"--allow {path}: there is no such folder")
    _chosen.append(resolve(path))
    _allowed.add(_chosen[-1])


@contextmanager
def allowing(paths: Iterable[str | Path]) -> Iterator[None]:
    """Allows files to name `paths` and files below them, in the block. UserError for a path that does not exist."""
    before, count = set(_allowed), len(_chosen)
    try:
        for path in paths:
            allow(path)
        yield
    finally:
        _allowed.intersection_update(before)
        del _chosen[count:]


def options() -> list[str]:
    """Returns the options of the command line by which a child process allows what this one does."""
    return [word for path in _chosen for word in ("--allow", str(path))]


# In its `with` block files may name any file: for sessions, tasks and texts that this program wrote for the user.
trusting = partial(set_in_block, _trusts)


def named_file(name: str, folder: Path | None, suffixes: Iterable[str], context: str) -> Path:
    """Returns the path, with links resolved, of the file that another file in `folder` names.

    It must have one of the `suffixes` ("" is a folder) and lie in the folder or below, in a folder of --allow, or among
    the program's own files. A `folder` of None is the user's: any file, relative to the current folder. Raises
    InputError, which begins with `context`, without a look at files that may not be named.
    """
    where, is_trusted = folder or Path(), folder is None or _trusts.get()
    shown = f"{context} is {format_value(name)}"
    if "://" in name:
        raise InputError(f"{shown}, an address; files of this machine alone are read")
    try:
        roots = {Path(os.path.abspath(where)), resolve(where)} | _OWN
        path = Path(os.path.abspath(where / name))  # by its text alone: no look at the disk yet
        is_inside = is_trusted or _lies_in(path, roots)
        if len(name) > MAX_NAME:
            raise ValueError("an overlong name, each of whose components resolve() would look at")
        if is_inside:
            path = resolve(where / name)  # links may lead out of the folder
            is_inside = is_trusted or _lies_in(path, roots)
        if is_inside:
            path.stat()
    except (OSError, ValueError) as error:  # names that no file can have, and loops of links, too
        raise InputError(f"{shown}; there is no {printable(str(where / name), 200)}") from error
    if not is_inside:
        raise InputError(f"{shown}; it must lie in {where} or below; --allow FOLDER allows another folder")
    wanted = tuple(suffixes)
    kind = "" if path.is_dir() else path.suffix.lower() or "none"
    if folder is not None and kind not in wanted:
        allowed = ", ".join(suffix or "a folder" for suffix in wanted)
        found = "is a folder" if not kind else f"has the suffix {kind}" if path.suffix else "has no suffix"
        raise InputError(f"{shown}, which {found}; allowed are {allowed}")
    _allowed.add(path)  # the window may save a scene elsewhere, and load it again
    return path


def _lies_in(path: Path, roots: set[Path]) -> bool:
    return any(each in roots or each in _allowed for each in (path, *path.parents))
