"""Where shaders, scenes and assets lie: beside the package in a checkout, inside the package in a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
ROOT = _PACKAGE if (_PACKAGE / "shaders").is_dir() else _PACKAGE.parent
SHADERS = ROOT / "shaders"
SCENES = ROOT / "scenes"
ASSETS = ROOT / "assets"
