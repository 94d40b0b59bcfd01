"""What the window held, kept on disk: written beside the old file and renamed, so that a crash leaves one whole."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from renderer.errors import InputError, UserError
from renderer.formats.images import atomic_write
from renderer.pictures import recipe_of, scene_of_table
from renderer.scene.scene import Scene
from renderer.scene.schema import format_value, read_text
from renderer.window.state.layout import LayoutNode, layout_from_table, layout_to_table

VERSION = 1
MAX_BYTES = 16 << 20  # bytes of a session file


@dataclass(frozen=True)
class Session:
    """The panels of a window, and how they stood. `clean` says that the window was closed by its user."""

    scenes: tuple[Scene, ...]
    active: int = 0
    columns: int = 0
    solo: bool = False
    clean: bool = True
    layout: LayoutNode | None = None  # None is a grid of `columns`


def default_path() -> Path:
    """Where this user's last session is kept."""
    base = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".local" / "state"
    return Path(base) / "rayfold" / "session.json"


def previous_path(path: Path) -> Path:
    """Where the one before the one of `path` is kept."""
    return path.with_suffix(".previous.json")


def save(session: Session, path: Path) -> None:
    """Writes the session; UserError when it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    panels = [
        {"path": str(s.path.resolve()), "time": s.time, **recipe_of(s, path.parent)["scene"]} for s in session.scenes
    ]
    table = {"rayfold_session": VERSION, "panels": panels}
    table |= {name: getattr(session, name) for name in ("active", "columns", "solo", "clean")}
    if session.layout is not None:
        table["layout"] = layout_to_table(session.layout)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(table, indent=1), encoding="utf-8")


def restore(path: Path) -> Session:
    """The session of a file; InputError says what is wrong with it."""
    try:
        table = json.loads(read_text(path, MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a session: {error}") from error
    version = table.get("rayfold_session") if isinstance(table, dict) else None
    if version != VERSION:
        raise InputError(f"{path}: rayfold_session is {format_value(version)}; this program reads {VERSION}")
    panels = table.get("panels")
    if not (isinstance(panels, list) and 1 <= len(panels) <= 16 and all(isinstance(p, dict) for p in panels)):
        raise InputError(f"{path}: panels must be a list of 1 to 16 tables")
    scenes = tuple(_scene(dict(panel), path) for panel in panels)
    active, columns = (table.get(name, 0) for name in ("active", "columns"))
    if type(active) is not int or not 0 <= active < len(scenes):
        raise InputError(f"{path}: active is {format_value(active)}; it must be 0 to {len(scenes) - 1}")
    if type(columns) is not int or not 0 <= columns <= 16:
        raise InputError(f"{path}: columns is {format_value(columns)}; it must be 0 to 16")
    try:
        layout = layout_from_table(table["layout"], len(scenes)) if "layout" in table else None
    except ValueError as error:
        raise InputError(f"{path}: layout: {error}") from error
    return Session(scenes, active, columns, table.get("solo") is True, table.get("clean") is not False, layout)


def _scene(table: dict, path: Path) -> Scene:
    """The scene of a panel's tables; its paths are relative to the session's folder."""
    origin, moment = table.pop("path", None), table.pop("time", 0.0)
    if isinstance(moment, bool) or not isinstance(moment, (int, float)) or not 0 <= moment < 1e9:
        raise InputError(f"{path}: time is {format_value(moment)}; it must be a number of at least 0")
    scene = replace(scene_of_table(table, path), time=float(moment))
    return replace(scene, path=Path(origin)) if isinstance(origin, str) and origin else scene


def to_toml(table: dict) -> str:
    """The text of a scene file for plain tables of numbers, texts, lists and tables."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key in table.keys() - plain.keys():
        lines += ["", f"[{_key(key)}]", *(f"{_key(k)} = {_value(v)}" for k, v in table[key].items())]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
