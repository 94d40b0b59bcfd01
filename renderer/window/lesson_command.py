"""`rayfold lesson`: its options, and a lesson as a session of panels with a column of text."""

import argparse
import contextlib
from typing import Any

from renderer.lessons import command as headless
from renderer.lessons.command import add_arguments

__all__ = ["add_arguments", "command"]
WIDE = 1500  # units of a window that has room for the lesson's column and the controls


def command(args: argparse.Namespace) -> int:
    """Runs `rayfold lesson`; returns the exit code."""
    if not headless.needs_window(args):
        return headless.command(args)
    return open_lesson(headless.requested_lesson(args), args)


def open_lesson(lesson: Any, args: argparse.Namespace) -> int:
    """The window with the lesson's panels, until the user closes it."""
    from renderer.gpu import open_context
    from renderer.gpu.compilation import CompilePool
    from renderer.window.app.backends import Window
    from renderer.window.command import open_app
    from renderer.window.state import lesson_reader

    reader = lesson_reader.LessonReader(lesson, (args.step or 1) - 1, args.device, args.seconds)
    window = Window(args.size, f"{lesson.title} - Rayfold")
    with contextlib.closing(window), contextlib.closing(CompilePool()) as pool:
        gpu = open_context(args.device, gl=window.gl)
        gpu.compile_in_children(pool)
        app = open_app(reader.session(), gpu, args.device)
        lesson_reader.open_lesson(app, reader)
        app.sidebar = args.size[0] >= WIDE
        window.run(app)
    return 0
