"""What the file of a stranger may ask: which other files it may name.

named_file() decides for every key, link and statement of a file that names another file. What the user names, on the
command line or in the window, is not asked about.
"""

import argparse
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from renderer.errors import InputError, UserError
from renderer.paths import ASSETS, SCENES, SHADERS
from renderer.plain import format_value, printable
from renderer.system.files import resolve

_OWN = {resolve(path) for path in (SCENES, ASSETS, SHADERS)}
_chosen: list[Path] = []  # the user's, of --allow
_allowed: set[Path] = set()  # those, and files that were named by right
_trusts: ContextVar[bool] = ContextVar("trusts", default=False)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declares the options of a command that opens files of strangers."""
    command.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="FOLDER",
        help="files may name files of this folder too (else of their own folder and below); repeatable",
    )


def apply(args: argparse.Namespace) -> None:
    """Applies the options of add_arguments(), if the command has them, to this process. Raises UserError."""
    for name in getattr(args, "allow", []):
        allow(name)


def allow(path: str | Path) -> None:
    """Lets files name this file, or the files of this folder, in this process; UserError if it does not exist."""
    if not os.path.exists(path):
        raise UserError(f"--allow {path}: there is no such folder")
    _chosen.append(resolve(path))
    _allowed.add(_chosen[-1])


def options() -> list[str]:
    """Returns the options of the command line by which a child process allows what this one does."""
    return [word for path in _chosen for word in ("--allow", str(path))]


@contextmanager
def trusting() -> Iterator[None]:
    """Within it files may name any file: for sessions, tasks and texts that this program wrote for the user."""
    token = _trusts.set(True)
    try:
        yield
    finally:
        _trusts.reset(token)


def named_file(name: str, folder: Path | None, suffixes: Iterable[str], context: str) -> Path:
    """Returns the path, with links resolved, of the file that another file in `folder` names.

    It must have one of the `suffixes` ("" is a folder) and lie in the folder or below, in a folder of --allow, or among
    the program's own files. A `folder` of None is the user's: any file, relative to the current folder. Raises
    InputError, which begins with `context`, without a look at files that may not be named.
    """
    where, is_trusted = folder or Path(), folder is None or _trusts.get()
    shown = f"{context} is {format_value(name)}"
    try:
        roots = {Path(os.path.abspath(where)), resolve(where)} | _OWN
        path = Path(os.path.abspath(where / name))
        is_inside = is_trusted or _lies_in(path, roots)
        if is_inside:
            path.stat()  # refuses an overlong name at once; resolve() would look at each component
            path = resolve(where / name)
            is_inside = is_trusted or _lies_in(path, roots)
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
