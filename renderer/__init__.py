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
    from renderer import cdollar as cdollar
    from renderer import flames as flames
    from renderer import gpu as gpu
    from renderer import numerics as numerics
    from renderer.api.drawing import Renderer, open, open_picture, refine, render
    from renderer.api.files import film, verify
    from renderer.api.image import Image
    from renderer.api.numbers import solve, sum
    from renderer.api.scenes import Mesh, Scene, instances, load
    from renderer.errors import DiskFullError, IncompleteError, InputError, KernelError, UnavailableError, UserError
    from renderer.raytracing.settings import Material
    from renderer.scene.cameras import Camera

__version__ = "0.2.0"
__all__ = [
    "Camera", "DiskFullError", "Image", "IncompleteError", "InputError", "KernelError", "Material", "Mesh", "Renderer",
    "Scene", "UnavailableError", "UserError", "film", "instances", "load", "open", "open_picture", "refine", "render",
    "solve", "sum", "verify",
]  # fmt: skip
_PACKAGES = ["cdollar", "flames", "gpu", "numerics"]
_HOMES = {
    **dict.fromkeys(("Renderer", "open", "open_picture", "refine", "render"), "api.drawing"),
    **dict.fromkeys(("film", "verify"), "api.files"),
    **dict.fromkeys(("solve", "sum"), "api.numbers"),
    **dict.fromkeys(("Mesh", "Scene", "instances", "load"), "api.scenes"),
    "Camera": "scene.cameras",
    "Image": "api.image",
    "Material": "raytracing.settings",
}


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES, "__all__", "__doc__", "__file__", "__name__", "__path__", "__version__"])


if not TYPE_CHECKING:  # else a misspelled name would be Any

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return import_module(f"renderer.{name}")
        if name not in __all__:
            from renderer.plain import suggestion

            raise AttributeError(f"module 'renderer' has no attribute {name!r}{suggestion(name, __dir__())}")
        return getattr(import_module(f"renderer.{_HOMES.get(name, 'errors')}"), name)
