"""Entries of the command palette beside the actions of keys: scenes, files, lessons, views, additions, settings, pages.

Each is an Action without keys, whose group says what it is.
"""

from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path

from renderer.images.algorithm_view import VIEW_HELP
from renderer.lessons.lesson import bundled_lessons
from renderer.paths import ASSETS, SCENES
from renderer.pictures import picture_class
from renderer.system.files import read_toml
from renderer.window.app.reference import PAGES, setting_lines
from renderer.window.controls.shortcuts import Action
from renderer.window.document import creation
from renderer.window.state import AppState, edit_actions, lesson_actions, open_files

SCENE, RECENT, LESSON, VIEW, SETTING, ADD = "Scene", "Recent file", "Lesson", "View", "Setting", "Add"
PAGE = "Reference page"
PARTS_VIEWS = ("stencil", "passes")  # views that have the time of each part
KIND_WORDS: dict[str, str] = read_toml(ASSETS / "tables" / "kind_words.toml")


def entries(app: AppState) -> list[Action]:
    """The entries for the active panel."""
    recent = [_entry(path.name, RECENT, partial(open_files.open_path, path=path)) for path in app.recent.files]
    lessons = [_entry(name, LESSON, partial(lesson_actions.open_bundled, name=name)) for name in bundled_lessons()]
    views = picture_class(app.panel.scene.picture).view_names()
    named = {f"{name}: {VIEW_HELP.get(name, '')}": name for name in views}
    for name in set(views).intersection(PARTS_VIEWS):  # at most one
        named["time: why it is slow, the cost of each part, a profile"] = name
    shown = [_entry(text, VIEW, partial(_look_closely, name=name)) for text, name in named.items()]
    added = [
        _entry(f"{new.section.lower()}: {new.name}", ADD, partial(edit_actions.run_command, command=new.run))
        for new in creation.additions(app.panel.scene.settings)
    ]
    if app.panel.scene.picture == "flame":  # its section has it, not the settings
        text = "size: width and height of the picture, in pixels"
        added.append(_entry(text, SETTING, partial(_show_setting, text=text, section="Flame")))
    settings_class: type = type(app.panel.scene.settings)
    pages = [_entry(f"reference: {title}", PAGE, partial(_show_page, title=title)) for title in PAGES]
    return [*recent, *added, *_scenes(), *lessons, *pages, *shown, *_settings(settings_class)]


def matches(offered: list[Action], words: list[str]) -> list[Action]:
    """The actions whose name, group or search words contain all words.

    Their order, by the first difference: the name up to its colon is what was typed; it is no view; the action has
    keys; all words are found without the group; the name begins with the first word.
    """

    def rank(action: Action) -> tuple[bool, ...]:
        name = action.name.lower()
        is_other = name.partition(":")[0] != " ".join(words)
        is_named, begins = all(word in f"{name} {action.words.lower()}" for word in words), name.startswith(words[0])
        return is_other, not is_other and action.group == VIEW, not action.keys, not is_named, not begins

    found = [a for a in offered if all(word in f"{a.name} {a.group} {a.words}".lower() for word in words)]
    return sorted(found, key=rank)


def _entry(name: str, group: str, run: Callable[[AppState], object]) -> Action:
    return Action("", name, group, run)


@cache
def _scenes() -> list[Action]:
    """The scenes that come with the program, with their kind."""
    paths = sorted(path for path in SCENES.iterdir() if path.suffix in open_files.OPEN_SUFFIXES)
    return [_entry(f"{path.stem}  ({_kind(path)})", SCENE, partial(open_files.open_path, path=path)) for path in paths]


def _kind(path: Path) -> str:
    kind = str(open_files.picture_kind(path))
    return KIND_WORDS.get(kind, kind)


@lru_cache(16)  # toys make a class of settings for each program
def _settings(settings_class: type) -> list[Action]:
    """The settings of a picture and of the tables inside: an entry opens the controls and says what it is for."""
    out, table = [], ""
    for line in setting_lines(settings_class):
        if line.is_heading:
            table = "" if line.term == "settings" else f"{line.term.replace('_', ' ')}: "
        else:
            name = f"{table}{line.term.replace('_', ' ')}"
            text = f"{name}: {line.text}" if line.text else name
            out.append(_entry(text, SETTING, partial(_show_setting, text=text)))
    return out


def _look_closely(app: AppState, name: str) -> None:
    app.panel.inspection.look_closely(name)


def _show_page(app: AppState, title: str) -> None:
    app.overlays.reference.is_on, app.overlays.page = True, title


def _show_setting(app: AppState, text: str, section: str = "Settings") -> None:
    app.overlays.sidebar.is_on = True
    app.show_message(f"{text}; it is under {section}")
