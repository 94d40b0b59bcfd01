"""Where shaders, scenes and assets lie: beside the package in a checkout, inside the package in a wheel."""

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
