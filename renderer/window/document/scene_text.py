"""The TOML text of a scene, kept in step with it: comments, order and all that was not edited stay as they are."""

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any

from renderer.errors import UserError
from renderer.files import parse_toml, read_text
from renderer.pictures import SCENE_KEYS, scene_of_table, tone_table
from renderer.scene import toml_text
from renderer.scene.animation import write_animation
from renderer.scene.scene import Scene
from renderer.scene.schema import to_plain, to_table
from renderer.scene.toml_text import TextError

MAX_MATCHED = 2000  # items of a list that are matched; a longer list is compared item by item
KEYFRAMES = ("animation", "keyframes")


@dataclass(frozen=True)
class SceneText:
    """The text of a scene file in `folder`, to which its paths are relative."""

    text: str
    path: Path

    @cached_property
    def scene(self) -> Scene:
        """The scene that the text says."""
        return scene_of_table(parse_toml(self.text), self.path)

    def comments(self, group: str) -> list[str]:
        """The comments beside the headers of the items of a list of settings; [] where the list has another form."""
        if group not in self._comments:
            self._comments[group] = toml_text.comments_of(self.text, ("settings", group))
        return self._comments[group]

    @cached_property
    def _comments(self) -> dict[str, list[str]]:
        return {}


def opened(scene: Scene) -> SceneText | None:
    """The text of the file that a scene comes from; None for one that is no scene file."""
    if scene.path.suffix.lower() != ".toml":
        return None
    try:
        found = SceneText(read_text(scene.path), scene.path)
        return found if type(found.scene.settings) is type(scene.settings) else None
    except (UserError, ValueError):  # the file is gone or damaged: the scene is what is left of it
        return None


def written(scene: Scene, path: Path | None = None) -> SceneText:
    """A new text of a scene, as a person would write it: a header for each item of a list."""
    path = path or scene.path.with_suffix(".toml")
    head: dict[str, Any] = {"title": scene.title, "picture": scene.picture}
    if scene.size is not None:
        head["size"] = list(scene.size)
    lines = [f"{key} = {toml_text.format_value(value)}" for key, value in head.items()]
    if tone := tone_table(scene, path.parent):
        lines += ["", *toml_text.table_lines("tone", tone)]
    if inspect := to_table(scene.inspect, path.parent):
        lines += ["", *toml_text.table_lines("inspect", inspect)]
    lines += ["", *_settings_lines("settings", scene.settings, path.parent)]
    text = "\n".join(lines) + "\n"
    if scene.animation is not None:
        text = _with_animation(text, None, write_animation(scene.animation))
    for name in ("bench", "test"):
        if table := getattr(scene, name):
            text += "\n" + "\n".join(toml_text.table_lines(name, table)) + "\n"
    return SceneText(text, path)


def _settings_lines(name: str, settings: Any, folder: Path) -> list[str]:
    """The lines of the settings with a header of its own for each item of a list of tables."""
    table = to_table(settings, folder)
    lists = [key for key in table if _is_list_of_tables(getattr(settings, key))]
    out = toml_text.table_lines(name, {key: value for key, value in table.items() if key not in lists})
    for key in lists:
        for item in table[key]:
            out += ["", *toml_text.table_lines(f"{name}.{toml_text.format_key(key)}", item, True)]
    return out


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(is_dataclass, value))


def with_scene(before: SceneText, scene: Scene) -> SceneText:
    """The text with what differs between its scene and this one.

    Raises TextError where the text is laid out so that the edit cannot be made in it.
    """
    old = before.scene
    if old.picture != scene.picture or type(old.settings) is not type(scene.settings):
        return written(scene, before.path)
    text, folder = before.text, before.path.parent
    if scene.title != old.title:
        text = toml_text.replace_value(text, ("title",), scene.title)
    if scene.size != old.size and scene.size is not None:
        text = toml_text.replace_value(text, ("size",), list(scene.size))
    text = _with_table(text, ("tone",), old.tone, scene.tone, folder)
    text = _with_table(text, ("settings",), old.settings, scene.settings, folder)
    animations = [None if a is None else write_animation(a) for a in (old.animation, scene.animation)]
    if animations[0] != animations[1]:
        text = _with_animation(text, *animations)
    if text == before.text:
        return before
    after = SceneText(text, before.path)
    _check(after, scene)
    return after


def _check(after: SceneText, scene: Scene) -> None:
    """Raises TextError if the text does not say the scene: it was laid out as no edit foresees."""
    try:
        found = after.scene
    except ValueError as error:
        raise TextError(f"the text of {after.path.name} cannot be edited: {error}") from error
    kept = ("title", "tone", "settings")
    if any(getattr(found, name) != getattr(scene, name) for name in kept) or _plain(found) != _plain(scene):
        raise TextError(f"the text of {after.path.name} is laid out in a way that its editor cannot change")


def _plain(scene: Scene) -> Any:
    return None if scene.animation is None else write_animation(scene.animation)


def _with_table(text: str, path: toml_text.Path, old: Any, new: Any, folder: Path) -> str:
    """The text with the fields of a dataclass that differ, at `path`."""
    for f in fields(new):
        a, b, at = getattr(old, f.name), getattr(new, f.name), (*path, f.name)
        if a is b or a == b:
            continue
        if is_dataclass(b) and type(a) is type(b):
            text = _with_table(text, at, a, b, folder)
        elif _is_list_of_tables(a) or _is_list_of_tables(b):
            text = _with_list(text, at, a, b, folder, f, [later.name for later in fields(new)])
        elif b is None:
            text = toml_text.remove_value(text, at)
        else:
            text = toml_text.replace_value(text, at, to_plain(b, folder, f.metadata), SCENE_KEYS)
    return text


def _with_list(
    text: str, path: toml_text.Path, old: tuple, new: tuple, folder: Path, f: Field, order: Sequence[str]
) -> str:
    """The text with the items of a list of tables that differ; `order` is that of the lists of its table."""
    later = order[order.index(f.name) + 1 :]
    if item_count(text, path) != len(old):  # the file does not name the list: its items are the default's
        old = ()
    for tag, a, b, c, d in reversed(_opcodes(old, new)):
        for index in range(b, a, -1) if tag in ("delete", "replace") else ():
            text = toml_text.remove_item(text, path, index - 1)
        if tag == "pairs":
            for index in range(a, b):
                text = _with_table(text, (*path, index), old[index], new[c + index - a], folder)
        elif tag in ("insert", "replace"):
            for index in range(c, d):
                text = toml_text.insert_item(text, path, a + index - c, to_table(new[index], folder), "", later)
    default = f.default_factory() if f.default_factory is not MISSING else f.default
    if not new and default != ():
        text = toml_text.replace_value(text, path, [], SCENE_KEYS)
    return text


def item_count(text: str, path: toml_text.Path) -> int:
    """The number of items that a text gives a list, in whatever form."""
    found: Any = parse_toml(text)
    for name in path:
        if isinstance(found, list) and isinstance(name, int) and name < len(found):
            found = found[name]
        else:
            found = found.get(name, {}) if isinstance(found, dict) else {}
    return len(found) if isinstance(found, list) else 0


def _opcodes(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[str, int, int, int, int]]:
    """What to do with items old[a:b] to make new[c:d] of them: (action, a, b, c, d); "pairs" changes each in place."""
    first, last = 0, 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    a, b, c, d = first, len(old) - last, first, len(new) - last
    if b - a == d - c:
        same = all(type(x) is type(y) for x, y in zip(old[a:b], new[c:d], strict=True))
        return [("pairs" if same else "replace", a, b, c, d)]
    if max(b - a, d - c) > MAX_MATCHED:
        return [("replace", a, b, c, d)]
    matcher = SequenceMatcher(None, [repr(x) for x in old[a:b]], [repr(x) for x in new[c:d]], False)
    return [(tag, i + a, j + a, k + c, m + c) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]


def _with_animation(text: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> str:
    """The text with another [animation] table, as write_animation() makes it."""
    if new is None:
        return toml_text.remove_value(text, ("animation",))
    for key in ("duration", "loop"):
        if old is None and (key == "duration" or new[key]) or old is not None and old[key] != new[key]:
            text = toml_text.replace_value(text, ("animation", key), new[key], SCENE_KEYS)
    rows, before = new["keyframes"], old["keyframes"] if old else []
    present = _rows_of(text)
    if [row.get("time", 0.0) for row in present] != [row["time"] for row in before]:  # in another order or grouping
        before = [{} for _ in present]
    for tag, a, b, c, d in reversed(_opcodes(before, rows)):
        for index in range(b, a, -1) if tag in ("delete", "replace") else ():
            text = toml_text.remove_item(text, KEYFRAMES, index - 1)
        if tag == "pairs":
            for index in range(a, b):
                text = _with_row(text, index, before[index], rows[c + index - a])
        elif tag in ("insert", "replace"):
            for index in range(c, d):
                text = toml_text.insert_item(text, KEYFRAMES, a + index - c, _row(rows[index]))
    return text


def _rows_of(text: str) -> list[dict[str, Any]]:
    rows = parse_toml(text).get("animation", {}).get("keyframes", [])
    return [row for row in rows if isinstance(row, dict)]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of key frames as a person writes it: the usual interpolation is not named."""
    return {key: value for key, value in row.items() if (key, value) != ("interpolation", "smooth")}


def _with_row(text: str, index: int, old: dict[str, Any], new: dict[str, Any]) -> str:
    at = (*KEYFRAMES, index)
    if old.get("set", {}).keys() != new["set"].keys():
        text = toml_text.replace_value(text, (*at, "set"), new["set"])
    else:
        for path, value in new["set"].items():
            if value != old["set"][path]:
                text = toml_text.replace_value(text, (*at, "set", path), value)
    for key in new.keys() - {"set"}:
        if new[key] != old.get(key):
            text = toml_text.replace_value(text, (*at, key), new[key])
    for key in old.keys() - new.keys():
        text = toml_text.remove_value(text, (*at, key))
    return text


def moved_to(before: SceneText, scene: Scene, path: Path) -> SceneText:
    """The text of a scene for another file: paths are relative to that file's folder."""
    text = with_scene(before, scene).text
    if path.parent.resolve() != before.path.parent.resolve():
        named = [*_file_values(scene.settings, ("settings",)), *_file_values(scene.tone, ("tone",))]
        for at, f, value in named:
            if _is_written(text, at):
                text = toml_text.replace_value(text, at, to_plain(value, path.parent, f.metadata))
    after = SceneText(text, path)
    _check(after, replace(scene, path=path))
    return after


def _is_written(text: str, path: toml_text.Path) -> bool:
    found: Any = parse_toml(text)
    for name in path:
        if not (isinstance(found, dict) and name in found or isinstance(found, list) and isinstance(name, int)):
            return False
        found = found[name]  # type: ignore[index]  # checked above
    return True


def _file_values(node: Any, path: toml_text.Path) -> Iterator[tuple[toml_text.Path, Field, Any]]:
    """The settings that name files, with their paths in the text and their values."""
    for f in fields(node):
        value, at = getattr(node, f.name), (*path, f.name)
        if f.metadata.get("file") and value:
            yield at, f, value
        elif is_dataclass(value):
            yield from _file_values(value, at)
        elif _is_list_of_tables(value):
            for index, item in enumerate(value):
                yield from _file_values(item, (*at, index))
