"""The TOML text of a scene, edited along with it: comments, order and everything unedited stay as they are.

Document calls with_scene() to bring a text up to date and moved_to() to save it in another folder.

In this file a path that is a tuple, such as ("settings", "lights", 2, "power"), leads to a value in the TOML text; `f`
is a dataclass field; `folder` is the folder of the scene file, to which the names of files in it are relative. The
functions _with_*() return the text after one kind of edit; they change nothing else in it.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import Any

from renderer.errors import UserError
from renderer.paths import is_bundled
from renderer.pictures import SCENE_KEYS, scene_of_table, tone_table
from renderer.plain import Json
from renderer.records import MISSING, Field, dataclass, fields, is_dataclass, replace
from renderer.scene import toml_text
from renderer.scene.animation import write_animation
from renderer.scene.scene import Scene
from renderer.scene.schema import PictureSettings, to_plain, to_table
from renderer.scene.toml_text import TextError
from renderer.system.files import parse_toml, read_text, resolve
from renderer.system.trust import trusting

MAX_MATCHED = 2000  # items that difflib matches; changed ranges longer than this are replaced as one
KEYFRAMES = ("animation", "keyframes")


@dataclass(frozen=True)
class SceneText:
    """The text of a scene file at `path`; files that it names are relative to the folder of the path."""

    text: str
    path: Path

    @cached_property
    def scene(self) -> Scene:
        """The scene that the text describes."""
        with trusting():  # the user has opened or chosen the files that the text names
            return scene_of_table(parse_toml(self.text), self.path)

    def comments(self, group: str) -> list[str]:
        """The comments beside the headers of the items of a list of settings; [] where the list has another form."""
        if group not in self._comments:
            self._comments[group] = toml_text.list_comments(self.text, ("settings", group))
        return self._comments[group]

    @cached_property
    def _comments(self) -> dict[str, list[str]]:
        return {}


def opened(scene: Scene) -> SceneText | None:
    """The text of the file that a scene was loaded from; None if that is no scene file."""
    if scene.path.suffix.lower() == ".toml":
        with suppress(UserError, ValueError):  # the file is gone or damaged: only the scene in memory is left
            return fitting(read_text(scene.path), scene.path, scene)
    return None


def fitting(text: str, path: Path, scene: Scene) -> SceneText | None:
    """The text of a scene; None if it describes another kind of picture, or cannot be read.

    It cannot if a file that it names is gone.
    """
    with suppress(UserError, ValueError):
        known = SceneText(text, path)
        return known if type(known.scene.settings) is type(scene.settings) else None
    return None


def written(scene: Scene, path: Path | None = None) -> SceneText:
    """A new text of a scene, as a person would write it: a header for each item of a list."""
    path = path or scene.path.with_suffix(".toml")
    head: dict[str, Any] = {"title": scene.title, "picture": scene.picture}
    if scene.size is not None:
        head["size"] = list(scene.size)
    lines = [f"{key} = {toml_text.format_value(value)}" for key, value in head.items()]
    for name, table in (("tone", tone_table(scene, path.parent)), ("inspect", to_table(scene.inspect, path.parent))):
        if table:
            lines += ["", *toml_text.table_lines(name, table)]
    lines += ["", *_settings_lines("settings", scene.settings, path.parent)]
    text = "\n".join(lines) + "\n"
    text = _with_groups(text, {}, scene.groups)
    if scene.animation is not None:
        text = _with_animation(text, None, write_animation(scene.animation))
    for name in ("bench", "test"):
        if table := getattr(scene, name):
            text += "\n" + "\n".join(toml_text.table_lines(name, table)) + "\n"
    return SceneText(text, path)


def _settings_lines(name: str, settings: PictureSettings, folder: Path) -> list[str]:
    """The lines of the settings; each item of a list of tables gets a header line."""
    table = to_table(settings, folder)
    lists = [key for key in table if _is_list_of_tables(getattr(settings, key))]
    out = toml_text.table_lines(name, {key: value for key, value in table.items() if key not in lists})
    for key in lists:
        for item in table[key]:
            out += ["", *toml_text.table_lines(f"{name}.{toml_text.format_key(key)}", item, True)]
    return out


def _is_list_of_tables(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(is_dataclass, value))


def with_scene(before: SceneText, scene: Scene) -> SceneText:
    """The text with the differences between its scene and this one applied.

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
    old_animation, animation = _animation_table(old), _animation_table(scene)
    if old_animation != animation:
        text = _with_animation(text, old_animation, animation)
    text = _with_groups(text, old.groups, scene.groups)
    if text == before.text:
        return before
    after = SceneText(text, before.path)
    _check(after, scene)
    return after


def _check(after: SceneText, scene: Scene) -> None:
    """Raises TextError if the edited text does not parse to the scene: its layout is one that no edit handles."""
    try:
        parsed = after.scene
    except ValueError as error:
        raise TextError(f"the text of {after.path.name} cannot be edited: {error}") from error
    is_equal = all(getattr(parsed, k) == getattr(scene, k) for k in ("title", "tone", "settings", "groups"))
    if not is_equal or _animation_table(parsed) != _animation_table(scene):
        raise TextError(f"the text of {after.path.name} is laid out in a way that its editor cannot change")


def _animation_table(scene: Scene) -> Json | None:
    """The scene's animation as the plain data of its TOML table."""
    return None if scene.animation is None else write_animation(scene.animation)


def _with_table(text: str, path: toml_text.Path, old: Any, new: Any, folder: Path) -> str:
    """The text after the values of the dataclass at `path` that differ between `old` and `new` are replaced."""
    for f in fields(new):
        a, b, at = getattr(old, f.name), getattr(new, f.name), (*path, f.name)  # old value, new value, its path
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
    """The text after the items of the list of tables at `path` that differ are edited, removed or inserted.

    `order` holds the names of the fields of the list's table, so that the first item of a new list comes before the
    fields that follow it. Edits run from the last item to the first, so that earlier indices stay valid.
    """
    later = order[order.index(f.name) + 1 :]
    if item_count(text, path) != len(old):  # the file does not name the list: its items are the default's
        old = ()
    for tag, a, b, c, d in reversed(_opcodes(old, new)):
        if tag == "pairs":
            for index in range(a, b):
                text = _with_table(text, (*path, index), old[index], new[c + index - a], folder)
        else:
            tables = [to_table(item, folder) for item in new[c:d]]
            text = _with_items(text, path, range(a, b), tables, later)
    default = f.default_factory() if f.default_factory is not MISSING else f.default
    if not new and default != ():
        text = toml_text.replace_value(text, path, [], SCENE_KEYS)
    return text


def _with_items(text: str, path: toml_text.Path, old: range, tables: list[Json], later: Sequence[str] = ()) -> str:
    """The text after the items of the list at `path` in the range `old` are replaced by tables; both may be empty."""
    for index in reversed(old):
        text = toml_text.remove_item(text, path, index)
    for index, table in enumerate(tables, old.start):
        text = toml_text.insert_item(text, path, index, table, "", later)
    return text


def item_count(text: str, path: toml_text.Path) -> int:
    """The number of items that a text gives a list, in any TOML notation."""
    value = _value_at(text, path)
    return len(value) if isinstance(value, list) else 0


def _value_at(text: str, path: toml_text.Path) -> Any:
    """The value that a text gives the key at a path; None if it gives none."""
    value: Any = parse_toml(text)
    for name in path:
        try:
            value = value[name]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _opcodes(old: Sequence[object], new: Sequence[object]) -> list[tuple[str, int, int, int, int]]:
    """Edits (action, a, b, c, d) that turn items old[a:b] into new[c:d], in order.

    Action "pairs", for as many new as old items of equal types, edits each item's text. The other actions are "insert",
    "delete" and "replace", as in difflib. `first` items at the start and `last` at the end are equal and not compared.
    """
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


def _with_groups(text: str, old: dict[str, tuple[str, ...]], new: dict[str, tuple[str, ...]]) -> str:
    """The text after its [groups] table is changed from `old` to `new`."""
    if old and not new:
        return toml_text.remove_value(text, ("groups",))
    for name in old.keys() - new.keys():
        text = toml_text.remove_value(text, ("groups", name))
    for name, members in new.items():
        if members != old.get(name):
            text = toml_text.replace_value(text, ("groups", name), list(members), SCENE_KEYS)
    return text


def _with_animation(text: str, old: Json | None, new: Json | None) -> str:
    """The text after its [animation] table is changed from `old` to `new`, as write_animation() makes them.

    If the rows of key frames in the text are not the rows of `old` (in another order, or grouped otherwise), each row
    is compared with an empty one, so that every value is written.
    """
    if new is None:
        return toml_text.remove_value(text, ("animation",))
    for key in ("duration", "loop"):
        # A new table has the loop only if it is on, as a person writes it
        is_other = old[key] != new[key] if old is not None else key == "duration" or new[key]
        if is_other:
            text = toml_text.replace_value(text, ("animation", key), new[key], SCENE_KEYS)
    rows, before = new["keyframes"], old["keyframes"] if old else []
    present = [row for row in _value_at(text, KEYFRAMES) or [] if isinstance(row, dict)]
    if [row.get("time", 0.0) for row in present] != [row["time"] for row in before]:  # in another order or grouping
        before = [{} for _ in present]
    for tag, a, b, c, d in reversed(_opcodes(before, rows)):
        if tag == "pairs":
            for index in range(a, b):
                text = _with_row(text, index, before[index], rows[c + index - a])
        else:
            text = _with_items(text, KEYFRAMES, range(a, b), [_row(row) for row in rows[c:d]])
    return text


def _row(row: Json) -> Json:
    """A row of key frames without the default interpolation, as a person writes it."""
    return {key: value for key, value in row.items() if (key, value) != ("interpolation", "smooth")}


def _with_row(text: str, index: int, old: Json, new: Json) -> str:
    """The text with the key frame `index` changed from the row `old` to `new`; equal values keep their spelling."""
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
    if is_bundled(before.path) and not is_bundled(path):
        for name in ("test", "bench"):  # tables for this program's tests and measurements alone
            text = toml_text.remove_value(text, (name,)) if name in parse_toml(text) else text
    if resolve(path.parent) != resolve(before.path.parent):
        named = [*_file_values(scene.settings, ("settings",)), *_file_values(scene.tone, ("tone",))]
        for at, f, value in named:
            if _value_at(text, at) is not None:
                text = toml_text.replace_value(text, at, to_plain(value, path.parent, f.metadata))
    after = SceneText(text, path)
    _check(after, replace(scene, path=path))
    return after


def _file_values(node: Any, path: toml_text.Path) -> Iterator[tuple[toml_text.Path, Field, Any]]:
    """The settings of `node`, a dataclass at `path`, that name files: path in the text, field and value of each."""
    for f in fields(node):
        value, at = getattr(node, f.name), (*path, f.name)
        if f.metadata.get("file") and value:
            yield at, f, value
        elif is_dataclass(value):
            yield from _file_values(value, at)
        elif _is_list_of_tables(value):
            for index, item in enumerate(value):
                yield from _file_values(item, (*at, index))
