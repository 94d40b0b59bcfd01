"""The commands `rayfold view`, `serve` and `lesson`: their options, and the inputs as live panels of one window.

Modules that load libraries are imported when a command runs, so that `--help` answers at once.
"""

import argparse
import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from renderer.errors import UserError
from renderer.lessons import command as lessons
from renderer.paths import SCENES
from renderer.plain import printable
from renderer.system import arguments, trust
from renderer.system.process import StopFlag

if TYPE_CHECKING:
    from renderer.gpu import DeviceContext
    from renderer.scene.scene import Scene
    from renderer.window.state.app_state import AppState
    from renderer.window.state.session import Session

DEMO = SCENES / "demo.toml"
WIDE = 1500  # units of a window that has room for a lesson's column and the controls
add_lesson_arguments = lessons.add_arguments


def add_view_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold view`."""
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help="what export takes; without one, scenes/demo.toml")
    parser.add_argument("--animation", metavar="NAME", help="of a model: name or number of what plays, else the first")
    parser.add_argument("--new", action="store_true", help="begin with an empty scene, to be edited by hand")
    parser.add_argument(
        "--restore", type=session_number, nargs="?", const=1, metavar="N|list",
        help="restore the Nth session that `list` shows, by default the first: a crash with edits, else the newest",
    )  # fmt: skip
    parser.add_argument("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    parser.add_argument("--size", type=arguments.size, default=(1600, 900), metavar="WxH", help="of the window")
    trust.add_arguments(parser)


def add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold serve`."""
    add_view_arguments(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=arguments.port, default=8377, metavar="N", help="0 picks one (default 8377)")


def session_number(text: str) -> int:
    """Parses what --restore takes: the number of a kept session, from 1, as list_sessions() prints it; 0 for "list"."""
    try:
        return 0 if text == "list" else arguments.positive(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{printable(text, 60)!r} is not the number of a session or `list`; with --restore there are no inputs"
        ) from error


def list_sessions() -> int:
    """Prints a line for each kept session: number, time, titles, and if it was edited or crashed.

    Crashed sessions with edits come first, then the others, each the newest first.
    """
    from renderer.window.state.session import default_path, kept_sessions

    kept = kept_sessions(default_path())
    for number, session in enumerate(kept, 1):
        print(f"{number:3}  {session.describe()}")
    if not kept:
        print(f"rayfold: no session is kept in {default_path().parent}", file=sys.stderr)
    return 0


def run_view(args: argparse.Namespace) -> int:
    """Runs `rayfold view` with its parsed arguments: the window, until the user closes it."""
    if args.restore == 0:
        return list_sessions()
    session = requested_session(args.inputs, args.restore, args.animation, args.new)
    title = f"{session.scenes[0].title} - Rayfold" if len(session.scenes) == 1 else "Rayfold"
    return _run_window(args, session, title)


def run_lesson(args: argparse.Namespace) -> int:
    """Runs `rayfold lesson` with its parsed arguments: in a window, or without one as the options ask."""
    if not lessons.needs_window(args):
        return lessons.command(args)
    from renderer.window.state.lesson_actions import open_lesson
    from renderer.window.state.lesson_reader import LessonReader

    lesson = lessons.requested_lesson(args)
    reader = LessonReader(lesson, (args.step or 1) - 1, args.device, args.seconds)  # the reader counts steps from 0

    def prepare(app: "AppState") -> None:
        open_lesson(app, reader)
        app.overlays.sidebar.is_on = args.size[0] >= WIDE

    return _run_window(args, reader.session(), f"{lesson.title} - Rayfold", prepare)


def _run_window(
    args: argparse.Namespace, session: "Session", title: str, prepare: Callable[["AppState"], None] = lambda app: None
) -> int:
    """Runs a window of args.size with a session on args.device until the user closes it; prepare(app) comes first."""
    from renderer.gpu import open_context
    from renderer.gpu.compilation import CompilePool
    from renderer.window.app.backends import Window

    with (
        StopFlag() as stop,
        contextlib.closing(Window(args.size, f"{title}, starting")) as window,
        contextlib.closing(CompilePool()) as pool,
    ):
        gpu = open_context(args.device, gl=window.gl)
        gpu.compile_in_children(pool)
        restores = getattr(args, "restore", None) is not None  # `rayfold lesson` has no --restore
        app = open_app(session, gpu, args.device, restores)
        prepare(app)
        window.run(app, stop)
    return 0


def run_serve(args: argparse.Namespace) -> int:
    """Runs `rayfold serve`: draws the window without a display and serves it to a browser until the user quits."""
    if args.restore == 0:
        return list_sessions()
    from renderer.gpu import open_context
    from renderer.gpu.compilation import CompilePool
    from renderer.window.app.backends import OffscreenWindow
    from renderer.window.remote.server import RemoteServer
    from renderer.window.state.app_state import AppState

    session, gpu = requested_session(args.inputs, args.restore, args.animation, args.new), open_context(args.device)

    def another_window() -> OffscreenWindow:
        """The window of a further browser: it begins with the same panels, and its session is not saved."""
        app = AppState(session, gpu)
        app.device = args.device
        return OffscreenWindow(app, gpu.gl, args.size)

    with (
        StopFlag() as stop,
        contextlib.closing(RemoteServer(args.host, args.port)) as server,
        contextlib.closing(CompilePool()) as pool,
    ):
        gpu.compile_in_children(pool)
        app = open_app(session, gpu, args.device, args.restore is not None)
        with contextlib.closing(OffscreenWindow(app, gpu.gl, args.size)) as window:
            print(server.address, flush=True)
            server.run(window, another_window, stop)
    return 0


def open_app(session: "Session", gpu: "DeviceContext", device: str = "auto", restores: bool = False) -> "AppState":
    """The state of a window that saves its session to the user's file.

    Unless it `restores` a session already, it shows a card that offers the first of kept_sessions(), if that session
    crashed and the user has not answered yet.
    """
    from renderer.window.state.app_state import AppState
    from renderer.window.state.session import answer, claim_session, default_path, kept_sessions

    base = default_path()
    path = claim_session(base)
    app = AppState(session, gpu, path)
    app.device = device
    app.overlays.tour_marker = base.parent / "tour.done"
    app.overlays.tour_step = None if app.overlays.tour_marker.exists() else 0
    if path is None:
        app.show_message(f"no session is saved: {base.parent} cannot be written")
    elif not restores:
        app.overlays.recovered = next((kept for kept in kept_sessions(base)[:1] if kept.is_offered), None)
    answer(base, session.origin)  # the kept session that was restored is not offered again
    return app


def requested_session(
    inputs: list[str], restored: int | None = None, animation: str | None = None, new: bool = False
) -> "Session":
    """Returns the session that the command line asks for: a kept one, an empty scene, panels of the inputs, the demo.

    `restored` is the number of a kept session, from 1, as list_sessions() prints it. `animation` plays in all panels.
    """
    from renderer.pictures import picture_class
    from renderer.window.document.creation import new_scene
    from renderer.window.state.session import SavedPanel, Session, default_path, restore_nth

    if restored:
        if inputs or new:
            raise UserError("view --restore: it restores the panels of a session, so it takes no inputs and no --new")
        return restore_nth(default_path(), restored)
    if new:
        if inputs:
            raise UserError("view --new: it begins with an empty scene, so it takes no inputs")
        return Session.of([new_scene(Path.cwd())])
    scenes, columns, errors = load_panels([Path(name) for name in inputs] or [DEMO])
    if animation is not None:
        pairs = zip(scenes, errors, strict=True)
        scenes = [s if error else picture_class(s.picture).with_animation(s, animation) for s, error in pairs]
    return Session(tuple(SavedPanel(s, error=error) for s, error in zip(scenes, errors, strict=True)), 0, columns)


def load_panels(inputs: list[Path]) -> tuple[list["Scene"], int, list[str]]:
    """The scenes of all inputs, layouts expanded, the columns of a single layout (0: automatic), and errors.

    An empty scene stands for an input with an error beside others; if none can be read, the first error is raised.
    """
    from renderer.pictures import expand_layout, load_for_window
    from renderer.window.document.creation import new_scene
    from renderer.window.state.session import MAX_PANELS

    loaded, scenes, errors = list["Scene"](), list["Scene"](), list[UserError | None]()
    for path in inputs:
        try:
            loaded.append(load_for_window(path))
            panels = expand_layout(loaded[-1])
            errors += [None] * len(panels)
        except UserError as error:
            panels = [replace(new_scene(path.parent), path=path, title=path.name)]
            errors.append(error)
        scenes += panels
    if errors[0] and all(errors):  # no input could be read
        raise errors[0]
    for problem in filter(None, errors):
        print(f"rayfold: {problem}", file=sys.stderr)
    if len(scenes) > MAX_PANELS:
        raise UserError(f"view: {len(scenes)} panels are too many; a window holds at most {MAX_PANELS}")
    is_layout = len(inputs) == 1 and scenes != loaded  # expand_layout() returns any other scene as it is
    columns = getattr(loaded[0].settings, "columns", 0) if is_layout else 0
    return scenes, columns, [str(error or "") for error in errors]
