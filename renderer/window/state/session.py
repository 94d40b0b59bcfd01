"""Session files: the panels of a window as JSON, saved while the window runs and restored by `--restore`.

A session file is written beside the old one and renamed, so that a crash leaves a complete file. Each running window
locks its session file; the system releases the lock when the process ends, after a crash too.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from renderer.errors import InputError, UserError
from renderer.formats.images import atomic_write
from renderer.host import try_lock
from renderer.paths import ensure_cache
from renderer.pictures import make_recipe, scene_of_table
from renderer.plain import format_value
from renderer.scene.scene import Scene
from renderer.system.files import MAX_TEXT_BYTES, parse_json, read_text, resolve
from renderer.window.document.scene_text import SceneText
from renderer.window.state.layout import LayoutNode, layout_from_table, layout_to_table

VERSION = 1
MAX_BYTES = 16 << 20
MAX_PANELS = 16  # in one window
MAX_WINDOWS = 64  # running windows that have a session file

_locks: list[IO[str]] = []  # keeps the locks of this process open


@dataclass(frozen=True)
class Session:
    """The panels of a window and their layout. `clean` is true if the user closed the window."""

    scenes: tuple[Scene, ...]
    active: int = 0
    columns: int = 0
    solo: bool = False
    clean: bool = True
    layout: LayoutNode | None = None  # None is a grid of `columns`
    bases: tuple[SceneText | None, ...] = ()  # the texts of scenes that differ from their files


def default_path() -> Path:
    """The user's session file."""
    base = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.local/state"
    try:
        folder = Path(base).expanduser()
    except RuntimeError:  # there is no home
        folder = ensure_cache()
    return folder / "rayfold" / "session.json"


def previous_path(path: Path) -> Path:
    """The file of the previous session; `path` is the file of the current session."""
    return path.with_suffix(".previous.json")


def last_session(base: Path) -> Path | None:
    """The newest session file that no running window holds, or None. `base` is the file of the first window."""
    free = []
    for path in _session_paths(base):
        if path.exists() and (lock := _try_lock(path)):
            lock.close()
            free.append(path)
    return max(free, key=lambda path: path.stat().st_mtime_ns, default=None)


def claim_session(base: Path) -> Path | None:
    """Locks a session file for this process until it ends; None if none can be locked."""
    for path in _session_paths(base):
        if lock := _try_lock(path):
            _locks.append(lock)
            return path
    return None


def _session_paths(base: Path) -> list[Path]:
    return [base, *(base.with_stem(f"{base.stem}-{number}") for number in range(2, MAX_WINDOWS + 1))]


def _try_lock(path: Path) -> IO[str] | None:
    """The open lock file of a session file; None if another window holds it or the folder cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(path.with_suffix(".lock"), "a")
    except OSError:
        return None
    if not try_lock(lock.fileno()):
        lock.close()
        return None
    return lock


def save(session: Session, path: Path) -> None:
    """Writes a session file; raises UserError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    bases = session.bases or (None,) * len(session.scenes)
    panels = [_panel_table(scene, base, path) for scene, base in zip(session.scenes, bases, strict=True)]
    table = {"rayfold_session": VERSION, "panels": panels}
    table |= {name: getattr(session, name) for name in ("active", "columns", "solo", "clean")}
    if session.layout is not None:
        table["layout"] = layout_to_table(session.layout)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(table, indent=1), encoding="utf-8")


def _panel_table(scene: Scene, base: SceneText | None, path: Path) -> dict[str, Any]:
    table = {"path": str(resolve(scene.path)), "time": scene.time, **make_recipe(scene, path.parent)["scene"]}
    return table if base is None else {**table, "text": base.text, "text_path": str(resolve(base.path))}


def restore(path: Path) -> Session:
    """Reads a session file; raises InputError with the file, the key and the value that is wrong."""
    try:
        table = parse_json(read_text(path, MAX_BYTES))
    except ValueError as error:
        raise InputError(f"{path}: not a session: {error}") from error
    version = table.get("rayfold_session") if isinstance(table, dict) else None
    if version != VERSION:
        raise InputError(f"{path}: rayfold_session is {format_value(version)}; this program reads {VERSION}")
    panels = table.get("panels")
    if not (isinstance(panels, list) and 1 <= len(panels) <= MAX_PANELS and all(isinstance(p, dict) for p in panels)):
        raise InputError(f"{path}: panels must be a list of 1 to {MAX_PANELS} tables")
    texts = [(panel.pop("text", None), panel.pop("text_path", None)) for panel in panels]
    scenes = tuple(_read_scene(dict(panel), path) for panel in panels)
    bases = tuple(_read_text(*text, scene) for text, scene in zip(texts, scenes, strict=True))
    active = _read_int(table, "active", len(scenes) - 1, path)
    columns = _read_int(table, "columns", MAX_PANELS, path)
    try:
        layout = layout_from_table(table["layout"], len(scenes)) if "layout" in table else None
    except ValueError as error:
        raise InputError(f"{path}: layout: {error}") from error
    return Session(scenes, active, columns, table.get("solo") is True, table.get("clean") is not False, layout, bases)


def _read_text(text: object, path: object, scene: Scene) -> SceneText | None:
    """The text of a panel's scene; None if the session has none, or one of another kind of picture."""
    if not isinstance(text, str) or not isinstance(path, str) or len(text) > MAX_TEXT_BYTES:
        return None
    base = SceneText(text, Path(path))
    try:
        return base if type(base.scene.settings) is type(scene.settings) else None
    except (UserError, ValueError):  # a file that the text names is gone: use the saved scene
        return None


def _read_int(table: dict[str, Any], key: str, high: int, path: Path) -> int:
    value = table.get(key, 0)
    if type(value) is not int or not 0 <= value <= high:
        raise InputError(f"{path}: {key} is {format_value(value)}; it must be 0 to {high}")
    return value


def _read_scene(table: dict[str, Any], path: Path) -> Scene:
    """The scene of a panel's table; its paths are relative to the session's folder."""
    origin, time = table.pop("path", None), table.pop("time", 0.0)
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 <= time < 1e9:
        raise InputError(f"{path}: time is {format_value(time)}; it must be a number of at least 0")
    scene = replace(scene_of_table(table, path), time=float(time))
    return replace(scene, path=Path(origin)) if isinstance(origin, str) and origin else scene
