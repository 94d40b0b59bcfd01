"""Rayfold: GPU ray tracing, fractals and GPGPU for Python.

    import renderer
    image = renderer.render("cornell", size=(640, 480), samples=64)
    image.save("box.png")

Pictures:
    render       draws a scene: a name, a file, a Scene, a table, a Mesh or a flame; returns an Image
    refine       yields the Image as it gets better: after 1, 2, 4, ... samples
    open         keeps a scene warm for many pictures: a Renderer
    film         draws an animated scene to a film or to frames
    load         the Scene of a file or of a name, not drawn
    scene_names  the names of the scenes that come along
    verify       draws a PNG again from the recipe inside it and compares every sample
    open_picture the Picture of a scene on a device, for draws of one's own
Scenes:
    Scene, Mesh, instances, Camera, Material         as a scene file's tables have them
    RaytraceSettings, FlameSettings, FractalSettings settings by kind of picture
Numbers:
    sum          the exact sum of an array or of files, rounded once
    solve        solves a banded system, refined to the last digit
Packages:
    flames, cdollar, numerics, gpu                   .flame files, the language C$, methods, devices
Errors:
    UserError, and of its kind InputError, UnavailableError, IncompleteError, DiskFullError; KernelError

`help(renderer.render)` says more of one name. `rayfold --help` says where the guides are: api.md is about Python, and
architecture.md is the map of the code. Names are imported when they are first asked for. `import rayfold` is
`import renderer`: one module by two names.
"""

import sys

# Only the command `rayfold` and `python -m renderer` change a signal, and no script that imports the package.
# While Python looks for the module of -m, sys.argv begins with "-m", and sys.orig_argv has the module's name there.
_words = getattr(sys, "argv", [])[:1] or [""]
if _words[0].endswith("/rayfold") or _words == ["-m"] and sys.orig_argv[-len(sys.argv)] == "renderer":
    import _signal  # the command: a signal during its imports leaves no traceback

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from renderer.lazy import lazy_names  # noqa: E402

TYPE_CHECKING = False  # to import the name from typing would take nine tenths of this module's time
if TYPE_CHECKING:
    from renderer import cdollar as cdollar
    from renderer import flames as flames
    from renderer import gpu as gpu
    from renderer import numerics as numerics
    from renderer.api.drawing import Renderer, open, open_picture, refine, render
    from renderer.api.files import film, verify
    from renderer.api.image import Image
    from renderer.api.kinds import FlameSettings, FractalSettings, RaytraceSettings
    from renderer.api.numbers import solve, sum
    from renderer.api.scenes import Mesh, Scene, instances, load
    from renderer.errors import DiskFullError, IncompleteError, InputError, KernelError, UnavailableError, UserError
    from renderer.paths import scene_names
    from renderer.raytracing.settings import Material
    from renderer.scene.cameras import Camera

__version__ = "0.2.0"
__all__ = [
    "Camera", "DiskFullError", "FlameSettings", "FractalSettings", "Image", "IncompleteError", "InputError",
    "KernelError", "Material", "Mesh", "RaytraceSettings", "Renderer", "Scene", "UnavailableError", "UserError", "film",
    "instances", "load", "open", "open_picture", "refine", "render", "scene_names", "solve", "sum", "verify",
]  # fmt: skip
_HOMES = {  # name -> the module below renderer that defines it; "": a package. Later lines replace earlier ones
    **dict.fromkeys(("cdollar", "flames", "gpu", "numerics"), ""),
    **dict.fromkeys(__all__, "errors"),
    **dict.fromkeys(("Renderer", "open", "open_picture", "refine", "render"), "api.drawing"),
    **dict.fromkeys(("film", "verify"), "api.files"),
    **dict.fromkeys(("FlameSettings", "FractalSettings", "RaytraceSettings"), "api.kinds"),
    **dict.fromkeys(("solve", "sum"), "api.numbers"),
    **dict.fromkeys(("Mesh", "Scene", "instances", "load"), "api.scenes"),
    "Camera": "scene.cameras",
    "Image": "api.image",
    "Material": "raytracing.settings",
    "scene_names": "paths",
}


if not TYPE_CHECKING:  # else a misspelled name would be Any
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
    del __all__  # so that lazy_names() answers: with it, help() prints all classes too, 4,000 lines
