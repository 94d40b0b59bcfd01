"""Where files lie: shaders, scenes and assets (beside the package in a checkout, inside it in a wheel), and caches.

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

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE if (PACKAGE / "shaders").is_dir() else PACKAGE.parent
SHADERS = ROOT / "shaders"
SCENES = ROOT / "scenes"
ASSETS = ROOT / "assets"
UNUSED_SECONDS = 7 * 86400.0  # after which a temporary file is removed: the process that made it was killed
CACHE = "cache"  # the folder of private_folder() that keeps its files


def find_input(name: str | Path) -> Path:
    """The path of an input: `name` itself, or the bundled scene of that name where no such file exists (`cornell`)."""
    path = Path(name)
    if os.path.exists(path) or path.suffix or path.parent != Path():
        return path
    bundled = (SCENES / f"{name}{suffix}" for suffix in (".toml", ".flame", ".cb"))
    return next((scene for scene in bundled if scene.exists()), path)


def ensure_cache() -> Path:
    """The user's cache folder, where drivers and this program keep compiled kernels.

    Where it cannot be written (a read-only home), a temporary folder of this user takes its place: XDG_CACHE_HOME names
    it to every library of this process, and one line on stderr says so.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        temporary = private_folder() / CACHE
        temporary.mkdir(exist_ok=True)
        os.environ["XDG_CACHE_HOME"] = str(temporary)
        print(f"rayfold: the cache folder cannot be written; compiled kernels go to {temporary}", file=sys.stderr)
        return temporary


def private_folder() -> Path:
    """The folder for temporary files, which only this user can enter: the same one in all processes of the user.

    Another user may have made a folder or a link of that name, to read or exchange what is put there. Then this process
    uses a new folder, which is removed at its end.
    """
    shared = Path(tempfile.gettempdir()) / "rayfold-{}".format(getattr(os, "getuid", lambda: "user")())
    with suppress(OSError):
        shared.mkdir(mode=0o700)
    folder = shared if _is_private(shared) else _folder_of_process(shared)
    _prune(folder, shared)
    return folder


def temporary_directory(name: str) -> tempfile.TemporaryDirectory[str]:
    """A folder in private_folder() that ends with the `with` block; that of a killed process is pruned."""
    return tempfile.TemporaryDirectory(prefix=f"{name}-", dir=private_folder())


def _is_private(folder: Path) -> bool:
    """Whether it is a folder, no link, that belongs to this user and is closed to others."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):  # Windows: temporary folders belong to their users
        return stat.S_ISDIR(status.st_mode)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077


@functools.cache
def _folder_of_process(shared: Path) -> Path:
    folder, owner = tempfile.mkdtemp(prefix=f"{shared.name}-"), os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return Path(folder)


@functools.cache
def _prune(folder: Path, shared: Path) -> None:
    """Removes files that were not used for UNUSED_SECONDS, and folders that are empty since then. Once a process.

    Looks into the folder and into those that killed processes used in place of the `shared` one.
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
