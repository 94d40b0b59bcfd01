"""`main.py view`: opens the inputs as live panels in one window; see renderer/window for its parts."""

from pathlib import Path

from renderer import UserError
from renderer.gpu import open_gpu
from renderer.pictures import load, panels_of
from renderer.scene import Scene
from renderer.window.screen import Window
from renderer.window.studio import LARGEST_COUNT, Studio

DEMO = Path(__file__).resolve().parents[1] / "scenes" / "demo.toml"


def view(args) -> int:
    """Runs the window until it is closed; returns the exit code."""
    inputs = [Path(name) for name in args.inputs] or [DEMO]
    scenes, columns = opened(inputs)
    window = Window(args.size, f"{scenes[0].title} - Rayfold" if len(scenes) == 1 else "Rayfold")
    try:
        window.show(Studio(scenes, open_gpu(args.device, gl=window.gl), columns))
    finally:
        window.close()
    return 0


def opened(inputs: list[Path]) -> tuple[list[Scene], int]:
    """The scenes of all inputs, layouts taken apart, and the columns that a single layout asks for (0: any)."""
    loaded = [load(path) for path in inputs]
    scenes = [panel for scene in loaded for panel in panels_of(scene)]
    if len(scenes) > LARGEST_COUNT:
        raise UserError(f"view: {len(scenes)} panels are too many; a window holds at most {LARGEST_COUNT}")
    return scenes, getattr(loaded[0].settings, "columns", 0) if len(loaded) == 1 and scenes != loaded else 0
