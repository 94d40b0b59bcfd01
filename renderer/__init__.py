"""Rayfold: GPU ray tracing, fractals and GPGPU for Python.

    import renderer
    image = renderer.render("cornell", size=(640, 480), samples=64)
    image.save("box.png")

`assets/guides/api.md` has the rest; `assets/guides/architecture.md` is the map of the code. Names are imported when
they are first asked for, so that `import renderer` and `rayfold --help` answer at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from renderer.api import Image, load, open_picture, refine, render
    from renderer.errors import DiskFullError, InputError, KernelError, UnavailableError, UserError
    from renderer.scene.scene import Scene

__version__ = "0.2.0"
__all__ = [
    "DiskFullError",
    "Image",
    "InputError",
    "KernelError",
    "Scene",
    "UnavailableError",
    "UserError",
    "load",
    "open_picture",
    "refine",
    "render",
]
_HOMES = {
    "Scene": "renderer.scene.scene",
    **dict.fromkeys(("Image", "load", "open_picture", "refine", "render"), "renderer.api"),
}


def __getattr__(name: str) -> Any:
    if name == "cdollar":
        return import_module("renderer.cdollar")
    if name not in __all__:
        raise AttributeError(f"module 'renderer' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "renderer.errors")), name)
