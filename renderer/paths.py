"""Where shaders, scenes and assets lie: beside the package in a checkout, inside the package in a wheel."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE if (PACKAGE / "shaders").is_dir() else PACKAGE.parent
SHADERS = ROOT / "shaders"
SCENES = ROOT / "scenes"
ASSETS = ROOT / "assets"
