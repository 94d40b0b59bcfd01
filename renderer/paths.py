"""Paths of files: shaders, scenes and assets (beside the package in a checkout, inside it in a wheel), and caches.

Every temporary folder of the program lies in private_folder(), which is checked and pruned.
"""

import atexit
import functools
import os
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from renderer.errors import DISK_FULL, DiskFullError, UnavailableError
from renderer.host import user_id
from renderer.plain import format_names, suggestion

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE if (PACKAGE / "shaders").is_dir() else PACKAGE.parent
A_CHECKOUT = "a checkout: run it there, or name one by --repo FOLDER"  # the end of an error of installed programs
SHADERS = ROOT / "shaders"
SCENES = ROOT / "scenes"
ASSETS = ROOT / "assets"
SCENE_SUFFIXES = ".toml", ".flame", ".cb", ".glsl"  # suffixes of bundled scenes
UNUSED_SECONDS = 7 * 86400.0  # age at which a temporary file is removed: its process was killed
MIN_FREE_BYTES = 64 << 20  # free space that a cache folder needs: a program that PoCL wrote in part crashes its readers
CACHE_HINT = "Set XDG_CACHE_HOME to a folder that can be written"
cache_problems: list[str] = []  # the warnings of ensure_cache(), which `rayfold doctor` repeats
CACHE = "cache"  # the folder in private_folder() that is never pruned


def find_input(name: str | Path, suffixes: tuple[str, ...] = SCENE_SUFFIXES) -> Path:
    """The path of an input: `name` itself, or the bundled scene called `name` if there is no such file (`cornell`).

    `suffixes` limits the bundled files: (".cb",) finds C$ programs only.
    """
    path = Path(name)
    if os.path.exists(path) or path.suffix or path.parent != Path():
        return path
    bundled = (SCENES / f"{name}{suffix}" for suffix in suffixes)
    return next((scene for scene in bundled if os.path.exists(scene)), path)


def scene_names(suffixes: tuple[str, ...] = SCENE_SUFFIXES) -> list[str]:
    """The names of the bundled scenes in files of these suffixes, for render() and `rayfold export`."""
    return [scene.stem for scene in sorted(SCENES.iterdir()) if scene.suffix in suffixes]


def missing_input(path: Path) -> str:
    """The sentence for an input that find_input() did not find; it names bundled scenes."""
    text = f"{path}: No such file or directory"
    if path.suffix or path.parent != Path():
        return text
    bundled = scene_names()
    return f"{text}{suggestion(path.name, bundled)}; scenes that come along are {format_names(bundled)}, in {SCENES}"


@functools.lru_cache(maxsize=256)
def is_bundled(path: Path) -> bool:
    """True if a file comes with the program, which never writes it."""
    real = os.path.realpath(path)
    return any(real.startswith(f"{os.path.realpath(folder)}{os.sep}") for folder in (SCENES, SHADERS, ASSETS))


def ensure_cache() -> Path:
    """The user's cache folder, where drivers and this program keep compiled kernels.

    Where it cannot be used, a temporary folder of this user takes its place: XDG_CACHE_HOME names it to every library
    of this process, and one line on stderr says so. UnavailableError where that cannot be written either, DiskFullError
    where there is no room.
    """
    folder = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    reason = why_unusable(folder)
    if not reason:
        return Path(folder).expanduser()
    temporary = str(private_folder() / CACHE)
    if missing := why_unusable(temporary):
        # the two reasons of why_unusable() for a full disk: too few bytes are free, or the system says so
        is_full = missing.endswith("are needed") or missing in map(os.strerror, DISK_FULL)
        raise (DiskFullError if is_full else UnavailableError)(
            f"no place for compiled kernels: {folder}: {reason}; {temporary}: {missing}. {CACHE_HINT}"
        )
    os.environ["XDG_CACHE_HOME"] = temporary
    cache_problems.append(f"the cache folder {folder} cannot be used: {reason}")
    print(f"rayfold: {cache_problems[-1]}; compiled kernels go to {temporary}", file=sys.stderr)
    return Path(temporary)


@functools.cache
def why_unusable(folder: str) -> str:
    """Why a folder, made where it is missing, cannot serve as a cache, or "". Asked once a process."""
    try:
        path = Path(folder).expanduser()
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(bytes(1 << 20))  # disk_usage() does not know quotas
        free = shutil.disk_usage(path).free
    except RuntimeError:
        return "there is no home folder"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return "" if free >= MIN_FREE_BYTES else f"{free >> 20} MiB are free, {MIN_FREE_BYTES >> 20} are needed"


def private_folder() -> Path:
    """The folder for temporary files, which only this user can enter: the same one in all processes of the user.

    Another user may have made a folder or link with this name, to read or replace our files. Then this process
    uses a new folder, which is removed at its end.
    """
    try:
        shared = _temporary_root() / f"rayfold-{user_id() if user_id() is not None else 'user'}"
        with suppress(OSError):
            shared.mkdir(mode=0o700)
        folder = shared if _is_private(shared) else _folder_of_process(shared)
    except OSError as error:
        raise UnavailableError(f"no temporary folder can be used ({error.strerror}): set TMPDIR to one") from error
    with suppress(OSError):  # another process prunes too
        _prune(folder, shared)
    return folder


def _temporary_root() -> Path:
    """The system's temporary folder, or the user's cache folder if the system has none."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        folder = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        if why_unusable(folder):
            raise
        return Path(folder).expanduser()


def temporary_directory(name: str) -> tempfile.TemporaryDirectory[str]:
    """A folder in private_folder(), removed after the `with` block; leftovers of killed processes are pruned."""
    return tempfile.TemporaryDirectory(prefix=f"{name}-", dir=private_folder())


def _is_private(folder: Path) -> bool:
    """True for a folder (not a link) that belongs to this user and is closed to others."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    if user_id() is None:  # Windows: temporary folders belong to their users
        return stat.S_ISDIR(status.st_mode)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == user_id() and not stat.S_IMODE(status.st_mode) & 0o077


@functools.cache
def _folder_of_process(shared: Path) -> Path:
    folder, owner = tempfile.mkdtemp(prefix=f"{shared.name}-"), os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return Path(folder)


@functools.cache
def _prune(folder: Path, shared: Path) -> None:
    """Removes files that were not used for UNUSED_SECONDS, and folders that are empty since then. Once a process.

    Looks into the folder, and into the folders that killed processes used in place of the `shared` one.
    """
    limit = time.time() - UNUSED_SECONDS
    leftovers = [path for path in shared.parent.glob(f"{shared.name}-????????") if path != folder and _is_private(path)]
    for top in (*leftovers, *(path for path in folder.iterdir() if path.name != CACHE)):
        tree = [(here, names, os.lstat(here).st_mtime) for here, _, names in os.walk(top, topdown=False)]
        for here, names, changed in tree:
            with suppress(OSError):  # a folder that is not empty, or another process prunes too
                for path in [Path(here, name) for name in names]:
                    if path.lstat().st_mtime < limit:
                        path.unlink()
                if changed < limit:
                    os.rmdir(here)
