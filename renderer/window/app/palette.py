"""What the command palette finds beside the actions of keys: scenes, recent files, lessons, views, and settings.

Each is an Action without keys, whose group says what it is.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from renderer.images.algorithm_view import VIEW_HELP
from renderer.lessons.lesson import bundled_lessons
from renderer.paths import SCENES
from renderer.pictures import picture_class
from renderer.window.controls.shortcuts import Action
from renderer.window.state import lesson_reader, open_files
from renderer.window.state.app_state import AppState

SCENE, RECENT, LESSON, VIEW, SETTING = "Scene", "Recent file", "Lesson", "View", "Setting"
KIND_WORDS = {  # what a kind of picture is also called
    "raytrace": "ray tracer", "fractal": "fractal, GLSL", "toy": "ShaderToy, shader, GLSL", "cdollar": "C$ program",
    "flame": "fractal flame", "layout": "panels", "lightfield": "light field",
}  # fmt: skip
MAX_DEPTH = 2  # of settings inside settings


def entries(app: AppState) -> list[Action]:
    """The entries for the active panel."""
    recent = [_entry(path.name, RECENT, partial(_open, path)) for path in app.recent.files]
    lessons = [_entry(name, LESSON, partial(_open_lesson, name)) for name in bundled_lessons()]
    views = picture_class(app.panel.scene.picture).view_names()
    shown = [_entry(f"{name}: {VIEW_HELP.get(name, '')}", VIEW, partial(_show_view, name)) for name in views]
    return [*recent, *_scenes(), *lessons, *shown, *_settings(type(app.panel.scene.settings))]


def _entry(name: str, group: str, run: Callable[[AppState], None]) -> Action:
    return Action("", name, group, run)


@cache
def _scenes() -> list[Action]:
    """The scenes that come with the program, with their kind."""
    paths = sorted(path for path in SCENES.iterdir() if path.suffix in open_files.OPEN_SUFFIXES)
    return [_entry(f"{path.stem}  ({_kind(path)})", SCENE, partial(_open, path)) for path in paths]


def _kind(path: Path) -> str:
    kind = str(open_files.picture_kind(path))
    return KIND_WORDS.get(kind, kind)


def _settings(settings_class: Any, prefix: str = "", depth: int = 0) -> list[Action]:
    """The settings of a picture: an entry opens the controls and tells what it is for."""
    out = []
    for f in fields(settings_class):
        name = f"{prefix}{f.name.replace('_', ' ')}"
        text = f.metadata.get("help", "")
        out.append(_entry(f"{name}: {text}" if text else name, SETTING, partial(_show_setting, name, text)))
        if is_dataclass(f.default) and depth < MAX_DEPTH:
            out += _settings(type(f.default), f"{name}: ", depth + 1)
    return out


def _open(path: Path, app: AppState) -> None:
    open_files.open_path(app, path)


def _open_lesson(name: str, app: AppState) -> None:
    lesson_reader.open_bundled(app, name)


def _show_view(name: str, app: AppState) -> None:
    app.panel.inspection.select(name)
    app.panel.inspection.opens_controls = True


def _show_setting(name: str, text: str, app: AppState) -> None:
    app.overlays.sidebar.is_on = True
    app.show_message(f"{name}: {text}; it is under Settings")
