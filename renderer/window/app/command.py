"""`rayfold view` and `serve`: the inputs as live panels in one window, here or in a browser; see renderer/window."""

import contextlib
from pathlib import Path

from renderer.errors import UserError
from renderer.gpu import open_context
from renderer.paths import SCENES
from renderer.pictures import load, panels_of
from renderer.scene.scene import Scene
from renderer.window.app.backends import Offscreen, Window
from renderer.window.app.session import Session, default_path, last, restore
from renderer.window.app.state import LARGEST_COUNT, Studio
from renderer.window.remote.server import Remote

DEMO = SCENES / "demo.toml"


def view(args) -> int:
    """Runs the window until it is closed; returns the exit code."""
    session, told = wanted(args), set_aside(default_path())
    scenes = list(session.scenes)
    window = Window(args.size, f"{scenes[0].title} - Rayfold" if len(scenes) == 1 else "Rayfold")
    try:
        studio = Studio(scenes, open_context(args.device, gl=window.gl), kept=default_path())
        studio.stand_as(session)
        if told:
            studio.tell(told)
        window.show(studio)
    finally:
        window.close()
    return 0


def serve(args) -> int:
    """`rayfold serve`: the same window in a browser, drawn without a display; returns the exit code."""
    session = wanted(args)
    gpu = open_context(args.device)
    remote = Remote(args.host, args.port)
    try:
        studio = Studio(list(session.scenes), gpu)
        studio.stand_as(session)
        screen = Offscreen(studio, gpu.gl, args.size)
        print(remote.address, flush=True)
        try:
            remote.run(screen)
        finally:
            screen.close()
    finally:
        remote.close()
    return 0


def wanted(args) -> Session:
    """What the command asks for: the last session, or the inputs, or the demo."""
    if args.restore:
        if args.inputs:
            raise UserError("view --restore: brings back the panels of the last session, so it takes no inputs")
        kept = [path for path in (default_path(), last(default_path())) if path.exists()]
        return restore(kept[0] if kept else default_path())
    scenes, columns = opened([Path(name) for name in args.inputs] or [DEMO])
    return Session(tuple(scenes), 0, columns)


def set_aside(path: Path) -> str:
    """Keeps the last session beside the new one; what to tell the user where it did not end well."""
    try:
        crashed = path.exists() and not restore(path).clean
    except UserError:
        crashed = False  # a damaged file is told when someone asks for it
    with contextlib.suppress(OSError):
        path.replace(last(path))
    return "the last session broke off; Ctrl+O brings it back" if crashed else ""


def opened(inputs: list[Path]) -> tuple[list[Scene], int]:
    """The scenes of all inputs, layouts taken apart, and the columns that a single layout asks for (0: any)."""
    loaded = [load(path) for path in inputs]
    scenes = [panel for scene in loaded for panel in panels_of(scene)]
    if len(scenes) > LARGEST_COUNT:
        raise UserError(f"view: {len(scenes)} panels are too many; a window holds at most {LARGEST_COUNT}")
    return scenes, getattr(loaded[0].settings, "columns", 0) if len(loaded) == 1 and scenes != loaded else 0
