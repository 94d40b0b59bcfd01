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

EXTRAS = {  # the packages of pyproject.toml's optional dependencies
    "cuda": ("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cublas"),
    "film": ("av",),
    "denoise": ("pyoidn",),
    "models": ("DracoPy", "opengl_basisu", "zstandard"),
    "lsp": ("pygls",),
    "farm": ("cryptography", "distributed"),
}
GL, OPENCL = "gl", "opencl"
SYSTEM_PACKAGES = {  # by the family of the distribution: the command, which also mends what is broken, and the packages
    "debian": ("apt install --reinstall", {GL: "libegl1 libgl1 libgl1-mesa-dri", OPENCL: "pocl-opencl-icd"}),
    "fedora": ("dnf install", {GL: "mesa-libEGL mesa-libGL mesa-dri-drivers", OPENCL: "pocl"}),
    "arch": ("pacman -S", {GL: "mesa libglvnd", OPENCL: "pocl"}),
}


def pip_install(*packages: str) -> str:
    """The command line that adds packages, or the packages of an extra such as "models", to this Python."""
    names = [package for name in packages for package in EXTRAS.get(name, (name,))]
    prefix = Path(sys.prefix)
    if prefix.parent.name == "venvs" and prefix.parent.parent.name == "pipx":
        return shlex.join(["pipx", "inject", prefix.name, *names])
    if not find_spec("pip"):  # uv makes environments without it
        return shlex.join(["uv", "pip", "install", "--python", _python(), *names])
    return shlex.join([_python(), "-m", "pip", "install", *_options(), *names])


def _python() -> str:
    """This interpreter, relative to the current folder where it lies below."""
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
    command, packages = SYSTEM_PACKAGES[family]
    words = [*command.split(), *(word for kind in kinds for word in packages[kind].split())]
    return shlex.join(words if is_root() else ["sudo", *words])


def system_advice(*kinds: str) -> str:
    """The sentence with system_install(), which names Debian and Ubuntu where the distribution is not known."""
    where = "" if distribution() else "Debian and Ubuntu: "
    return where + system_install(*kinds)


def distribution() -> str:
    """The family of this Linux, a key of SYSTEM_PACKAGES, by os-release(5); "" for others."""
    facts = {}
    for folder in ("/etc", "/usr/lib"):
        with suppress(OSError, UnicodeDecodeError):
            lines = Path(folder, "os-release").read_text(encoding="utf-8").splitlines()
            facts = dict(line.partition("=")[::2] for line in lines)
            break
    named = " ".join(facts.get(key, "").strip("\"'") for key in ("ID", "ID_LIKE")).split()
    named = ["debian" if name == "ubuntu" else "fedora" if name == "rhel" else name for name in named]
    return next((name for name in named if name in SYSTEM_PACKAGES), "")


def is_root() -> bool:
    """True if this user may install system packages without sudo."""
    return user_id() == 0
