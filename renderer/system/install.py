"""Sentences that tell how to install what is missing, each a line that works from where the user stands.

The program may run from a checkout, from a wheel in a virtual environment, by pipx or by uv; Debian and Ubuntu let pip
change only virtual environments (PEP 668).
"""

import shlex
import sys
import sysconfig
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from renderer.host import user_id
from renderer.paths import ASSETS
from renderer.system.files import read_toml

_TABLES = read_toml(ASSETS / "tables" / "install.toml")
EXTRAS: dict[str, list[str]] = _TABLES["extras"]
SYSTEM_PACKAGES: dict[str, dict[str, str]] = _TABLES["system"]
GL, OPENCL = "gl", "opencl"


def pip_install(*packages: str) -> str:
    """The command line that adds packages, or the packages of an extra such as "models", to this Python."""
    names = [package for name in packages for package in EXTRAS.get(name, (name,))]
    prefix = Path(sys.prefix)
    if prefix.parent.name == "venvs" and prefix.parent.parent.name == "pipx":  # .../pipx/venvs/NAME
        return shlex.join(["pipx", "inject", prefix.name, *names])
    if not find_spec("pip"):  # uv makes environments without it
        return shlex.join(["uv", "pip", "install", "--python", _python(), *names])
    return shlex.join([_python(), "-m", "pip", "install", *_options(), *names])


def _python() -> str:
    """The path of this Python interpreter, relative to the current folder if it lies in it."""
    with suppress(ValueError, OSError):
        return str(Path(sys.executable).relative_to(Path.cwd()))
    return sys.executable


def _options() -> list[str]:
    """The options with which pip changes an interpreter that the system manages."""
    is_managed = sys.prefix == sys.base_prefix and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()
    return ["--user", "--break-system-packages"] if is_managed else []


def system_install(*kinds: str) -> str:
    """The command line that installs GL or OPENCL drivers by the distribution; Debian's where it is not known."""
    family = distribution() or "debian"
    words = [word for key in ("command", *kinds) for word in SYSTEM_PACKAGES[family][key].split()]
    return shlex.join(words if is_root() else ["sudo", *words])


def system_advice(*kinds: str) -> str:
    """The sentence with system_install(), which names Debian and Ubuntu where the distribution is not known."""
    where = "" if distribution() else "Debian and Ubuntu: "
    return where + system_install(*kinds)


def distribution() -> str:
    """The family of this Linux, a key of SYSTEM_PACKAGES, by os-release(5); "" for others."""
    import platform  # imported here: only advice after a failure needs it

    facts: dict[str, str] = {}
    with suppress(OSError, UnicodeDecodeError):
        facts = platform.freedesktop_os_release()
    named = f"{facts.get('ID', '')} {facts.get('ID_LIKE', '')}".split()
    named = ["debian" if name == "ubuntu" else "fedora" if name == "rhel" else name for name in named]
    return next((name for name in named if name in SYSTEM_PACKAGES), "")


def is_root() -> bool:
    """True if this user may install system packages without sudo."""
    return user_id() == 0
