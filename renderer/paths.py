"""Where files lie: shaders, scenes and assets (beside the package in a checkout, inside it in a wheel), and caches."""

import os
import stat
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE if (PACKAGE / "shaders").is_dir() else PACKAGE.parent
SHADERS = ROOT / "shaders"
SCENES = ROOT / "scenes"
ASSETS = ROOT / "assets"


def find_input(name: str | Path) -> Path:
    """The path of an input: `name` itself, or the bundled scene of that name where no such file exists (`cornell`)."""
    path = Path(name)
    if path.exists() or path.suffix or path.parent != Path():
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
        temporary = _temporary_cache()
        os.environ["XDG_CACHE_HOME"] = str(temporary)
        print(f"rayfold: the cache folder cannot be written; compiled kernels go to {temporary}", file=sys.stderr)
        return temporary


def _temporary_cache() -> Path:
    """A folder that only this user can write: the one of earlier runs where it is safe, else a new one."""
    folder = Path(tempfile.gettempdir()) / "rayfold-cache-{}".format(getattr(os, "getuid", lambda: "user")())
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        mine = (
            status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077 if hasattr(os, "getuid") else True
        )
        if stat.S_ISDIR(status.st_mode) and mine:
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="rayfold-cache-"))
