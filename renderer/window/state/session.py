"""Session files: the panels of a window as JSON, saved while the window runs and restored by `--restore`.

A session file is written beside the old one and renamed, so that a crash leaves a complete file. Each running window
locks its session file; the system releases the lock when the process ends, after a crash too. The next window that
takes the file keeps its session under another name, session.TIME.json. The newest ten kept sessions of each kind stay:
with and without edits, closed and crashed. So a session without edits never displaces one with edits, nor does a closed
window displace the session of a crash. An edited session of a crash comes first until it was restored, or its card
declined: answer() then renames it to session.TIME.answered.json.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import IO, Any, Self

from renderer.errors import InputError, UserError
from renderer.host import try_lock
from renderer.paths import ensure_cache
from renderer.pictures import make_recipe, scene_of_table
from renderer.plain import Json, format_value, printable
from renderer.records import dataclass, field, replace
from renderer.scene.scene import Scene
from renderer.system.files import MAX_TEXT_BYTES, file_stamp, parse_json, read_text, resolve
from renderer.system.outputs import write_text
from renderer.system.trust import trusting
from renderer.window.document.scene_text import SceneText, fitting
from renderer.window.state.layout import LayoutNode, layout_from_table, layout_to_table

VERSION = 1
MAX_BYTES = 128 << 20  # MAX_PANELS texts of MAX_TEXT_BYTES with their settings
KEPT = 10  # kept sessions of each kind: with or without edits, closed or crashed
MAX_PANELS = 16  # in one window
MAX_EDITS = 1 << 31
MAX_RECENT, MAX_RECENT_BYTES, MAX_NAME = 12, 1 << 18, 4096  # recent files, bytes of their list, characters of a path
ANSWERED = ".answered.json"  # the end of the name of a crash's session, once the user was asked about it
MAX_WINDOWS = 64  # running windows that have a session file

Stamp = tuple[int, int]  # file_stamp(), by which a file is known under all of its names
_locks: list[IO[str]] = []  # keeps the locks of this process open


@dataclass(frozen=True)
class SavedPanel:
    """What a session keeps of a panel."""

    scene: Scene
    base: SceneText | None = None  # the text of the scene as the user edited it; None: the text of its file
    paused: bool = False  # a panel of a scene with a time is paused anyway
    stamp: Stamp | None = None  # file_stamp() of its file when it was read or written
    unsaved: bool = False  # the scene has work that its file has not
    error: str = field(default="", compare=False)  # of an input that cannot be read, which the panel shows


@dataclass(frozen=True)
class Session:
    """The panels of a window and their layout.

    `clean` is true if the user closed the window, `edited` if a scene was changed in it, by `edits` steps of undo, and
    not saved. `origin` identifies the file that the session was restored from.
    """

    panels: tuple[SavedPanel, ...]
    active: int = 0  # the index of the active panel
    columns: int = 0  # of the grid; 0 is automatic
    solo: bool = False  # only the active panel is displayed
    clean: bool = True
    layout: LayoutNode | None = None  # None is a grid of `columns`
    edited: bool = False
    edits: int = 0
    origin: Stamp | None = field(default=None, compare=False)

    @classmethod
    def of(cls, scenes: Iterable[Scene], **facts: Any) -> Self:
        """A session of panels that show these scenes as their files have them; `facts` are its other fields."""
        return cls(tuple(map(SavedPanel, scenes)), **facts)

    @property
    def scenes(self) -> tuple[Scene, ...]:
        """The scenes of the panels."""
        return tuple(panel.scene for panel in self.panels)


@dataclass(frozen=True)
class KeptSession:
    """A row of the list of sessions: a summary of one session file."""

    path: Path
    saved: float  # seconds since the epoch
    titles: tuple[str, ...] = ()  # titles of the session's panels; none if the file is damaged
    edited: bool = False
    clean: bool = True
    edits: int = 0

    @property
    def is_offered(self) -> bool:
        """True for the session of a crash that the user was not asked about, or gave no answer."""
        return not self.clean and not self.path.name.endswith(ANSWERED)

    def describe(self) -> str:
        """Its time, its titles and what is particular about it: "2026-11-24 11:02:31  julia, fern  (2 edits)"."""
        titles = ", ".join(self.titles[:3]) + (f" and {len(self.titles) - 3} more" if len(self.titles) > 3 else "")
        edits = f"{self.edits} edit{'s' * (self.edits > 1)}" if self.edits else "edited"
        facts = {edits: self.edited, "crashed": not self.clean, "damaged": not self.titles}
        found = ", ".join(name for name, is_so in facts.items() if is_so)
        words = f"{datetime.fromtimestamp(self.saved):%Y-%m-%d %H:%M:%S}", titles, found and f"({found})"
        return "  ".join(filter(None, words))


def default_path() -> Path:
    """The user's session file."""
    base = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.local/state"
    try:
        folder = Path(base).expanduser()
    except RuntimeError:  # the user has no home folder
        folder = ensure_cache()
    return folder / "rayfold" / "session.json"


def kept_sessions(base: Path) -> list[KeptSession]:
    """The sessions that no running window holds: edited ones that are offered, then others, each the newest first.

    `base` is the file of the first window.
    """
    free = _kept_files(base)
    for path in _session_paths(base):
        if path.exists() and (lock := _try_lock(path)):
            lock.close()
            free.append(path)
    return sorted(_newest_first(free), key=lambda kept: not (kept.is_offered and kept.edited))


def restore_nth(base: Path, number: int = 1) -> Session:
    """restore() for a number in kept_sessions(), from 1; InputError if there are fewer, or for a damaged session."""
    kept = kept_sessions(base)
    if not 1 <= number <= len(kept):
        raise InputError(f"session {number}: {len(kept)} are kept in {base.parent}; `view --restore list` lists them")
    path = kept[number - 1].path
    try:
        return restore(path)
    except InputError as error:
        others = [f"`view --restore {n}`" for n, one in enumerate(kept, 1) if one.titles and one.path != path]
        said = f"others are restored by {', '.join(others[:3])}" if others else "no other is kept"
        raise InputError(f"{error}; {said}") from error


def claim_session(base: Path) -> Path | None:
    """Locks a session file for this process until it ends; None if none can be locked.

    Sessions of windows that have ended are kept under other names first; `base` is the file of the first window.
    """
    claimed = None
    for path in _session_paths(base):
        if (claimed is None or path.exists()) and (lock := _try_lock(path)):
            with suppress(OSError):
                rotate_session(base, path)
            if claimed is None and not path.exists():  # a session that cannot be renamed is not overwritten
                claimed = path
                _locks.append(lock)
            else:
                lock.close()
    _prune(base)
    return claimed


def _prune(base: Path) -> None:
    """Removes all but the newest KEPT kept sessions of each kind."""
    files, kinds = _kept_files(base), Counter[tuple[bool, ...]]()
    for kept in _newest_first(files) if len(files) > KEPT else []:
        kind = kept.edited, kept.clean, bool(kept.titles)
        kinds[kind] += 1
        if kinds[kind] > KEPT:
            with suppress(OSError):
                kept.path.unlink()


def rotate_session(base: Path, path: Path) -> None:
    """Renames a session file, which the caller has locked, to a free name of a kept session; OSError if it cannot."""
    for left in path.parent.glob(f".{path.name}.*"):
        left.unlink()  # a temporary file of a save whose process was killed
    if path.exists():
        stamp = f"{datetime.fromtimestamp(path.stat().st_mtime):%Y%m%d-%H%M%S-%f}"
        stems = chain([stamp], (f"{stamp}-{number}" for number in count(2)))
        path.rename(next(free for stem in stems if not (free := base.with_suffix(f".{stem}.json")).exists()))


def _kept_files(base: Path) -> list[Path]:
    """The files of kept sessions, whose names have a time between stem and suffix."""
    return list(base.parent.glob(f"{base.stem}.*.json"))


def _newest_first(paths: list[Path]) -> list[KeptSession]:
    return sorted(filter(None, map(_describe, paths)), key=lambda kept: kept.saved, reverse=True)


def _describe(path: Path) -> KeptSession | None:
    """The row of a session file; None if the file has been deleted meanwhile."""
    try:
        saved = path.stat().st_mtime
    except OSError:
        return None
    try:
        table = parse_json(read_text(path, MAX_BYTES))
        titles = tuple(printable(str(panel["title"]), 40) for panel in table["panels"])
        edits = _read_int(table, "edits", MAX_EDITS, path)
        return KeptSession(path, saved, titles, table.get("edited") is True, table.get("clean") is not False, edits)
    except (InputError, ValueError, LookupError, TypeError, AttributeError):
        return KeptSession(path, saved)


def _session_paths(base: Path) -> list[Path]:
    """The session files of running windows: session.json, session-2.json, ..., session-64.json."""
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
    table: Json = {"rayfold_session": VERSION, "panels": [_panel_table(path, panel) for panel in session.panels]}
    table |= {name: getattr(session, name) for name in ("active", "columns", "solo", "clean", "edited", "edits")}
    if session.layout is not None:
        table["layout"] = layout_to_table(session.layout)
    write_text(path, json.dumps(table, indent=1), mode=0o600)  # it names the user's files and holds texts


def _panel_table(path: Path, panel: SavedPanel) -> Json:
    """The table of a panel in a session file at `path`, which _read_panel() reads."""
    scene, base = panel.scene, panel.base
    table: Json = {"path": str(resolve(scene.path)), "time": scene.time, "size": scene.size, "part": scene.part}
    table |= {"paused": panel.paused, "stamp": panel.stamp, "unsaved": panel.unsaved}
    table |= make_recipe(scene, path.parent)["scene"]
    return table if base is None else {**table, "text": base.text, "text_path": str(resolve(base.path))}


def restore(path: Path) -> Session:
    """Reads a session file; raises InputError with the file, the key and the value that is wrong."""
    try:
        table, origin = parse_json(read_text(path, MAX_BYTES)), file_stamp(path)
    except ValueError as error:
        raise InputError(f"{path}: not a session: {error}") from error
    version = table.get("rayfold_session") if isinstance(table, dict) else None
    if version != VERSION:
        raise InputError(f"{path}: rayfold_session is {format_value(version)}; this program reads {VERSION}")
    panels = table.get("panels")
    if not (isinstance(panels, list) and 1 <= len(panels) <= MAX_PANELS and all(isinstance(p, dict) for p in panels)):
        raise InputError(f"{path}: panels must be a list of 1 to {MAX_PANELS} tables")
    kept = tuple(_read_panel(panel, path) for panel in panels)
    active, columns = _read_int(table, "active", len(kept) - 1, path), _read_int(table, "columns", MAX_PANELS, path)
    try:
        layout = layout_from_table(table["layout"], len(kept)) if "layout" in table else None
    except ValueError as error:
        raise InputError(f"{path}: layout: {error}") from error
    solo, clean, edited = table.get("solo") is True, table.get("clean") is not False, table.get("edited") is True
    return Session(
        kept, active, columns, solo, clean, layout, edited, _read_int(table, "edits", MAX_EDITS, path), origin
    )


def answer(base: Path, origin: Stamp | None, removes: bool = False) -> None:
    """Notes that the user was asked about the kept session with this file_stamp(), or removes the session.

    Another window may have renamed its file, so that it is found by its stamp.
    """
    for path in _kept_files(base) if origin else []:
        if file_stamp(path) == origin:
            with suppress(OSError):  # else it is offered again
                stem = path.name.removesuffix(ANSWERED).removesuffix(".json")
                path.unlink() if removes else path.rename(path.with_name(stem + ANSWERED))


def _read_panel(table: Json, path: Path) -> SavedPanel:
    """The panel of a table of the session file at `path`; raises InputError."""
    text, text_path, stamp = (table.pop(key, None) for key in ("text", "text_path", "stamp"))
    paused, unsaved = (table.pop(key, None) is True for key in ("paused", "unsaved"))
    scene = _read_scene(table, path)
    base = _read_text(text, text_path, scene)
    return SavedPanel(scene, base, paused, tuple(stamp) if isinstance(stamp, list) else None, unsaved)


def _read_text(text: object, path: object, scene: Scene) -> SceneText | None:
    """The text of a panel's scene; None if the session has none that fits: the saved scene is then used alone."""
    if not isinstance(text, str) or not isinstance(path, str) or len(text) > MAX_TEXT_BYTES:
        return None
    return fitting(text, Path(path), scene)


def _read_int(table: Json, key: str, high: int, path: Path) -> int:
    value = table.get(key, 0)
    if type(value) is not int or not 0 <= value <= high:
        raise InputError(f"{path}: {key} is {format_value(value)}; it must be 0 to {high}")
    return value


def _read_scene(table: Json, path: Path) -> Scene:
    """The scene of a panel's table; its paths are relative to the session's folder."""
    origin, time, part = table.pop("path", None), table.pop("time", 0.0), str(table.pop("part", ""))
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 <= time < 1e9:
        raise InputError(f"{path}: time is {format_value(time)}; it must be a number of at least 0")
    with trusting():  # this program wrote the session, with the files that the user had opened
        scene = replace(scene_of_table(table, path), time=float(time))
    scene = replace(scene, part=part if part == "film" or part.isdecimal() and len(part) < 10 else "")
    return replace(scene, path=Path(origin)) if isinstance(origin, str) and origin else scene


class RecentFiles:
    """The scene files that were opened or saved last, the newest first; the menu "File" lists them.

    `path` is the file that holds the list, beside the session file; None keeps it in memory.
    """

    def __init__(self, path: Path | None):
        self._path = path
        self.files: list[Path] = []
        if path is not None and path.is_file():
            with suppress(UserError, ValueError):  # a damaged list is an empty one
                saved = parse_json(read_text(path, MAX_RECENT_BYTES))
                names = saved if isinstance(saved, list) else []
                shown = [n for n in names if isinstance(n, str) and 0 < len(n) < MAX_NAME and n.isprintable()]
                self.files = list(dict.fromkeys(map(Path, shown)))[:MAX_RECENT]

    def add(self, path: Path) -> None:
        """Puts a file at the front of the list."""
        path = resolve(path)
        if self.files[:1] == [path]:
            return
        self.files = [path, *(other for other in self.files if other != path)][:MAX_RECENT]
        if self._path is not None:
            with suppress(UserError, OSError):  # a list that cannot be kept is no reason to stop work
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_text(self._path, json.dumps([str(file) for file in self.files]), mode=0o600)
