"""Keyboard shortcuts: actions with their keys, and the keys that a picture's settings declare.

One list of actions dispatches keys, prints the help and fills the command palette. A setting declared by
`scene.setting(key=...)` is stepped by that key: to its next choice, on or off, or to the next number;
panel_actions.step_setting() applies the step.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

from renderer.paths import ASSETS
from renderer.records import dataclass, fields, replace
from renderer.system.files import read_toml
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui

PICTURE_GROUP = "This picture"  # the help's group for a picture's own keys
T = TypeVar("T")
Modifiers = tuple[bool, bool, bool]  # Ctrl, Shift, Alt
SettingStep = Callable[[Any, str, int], None]  # steps a setting of the active panel: AppState, name, 1 or -1
# Written name -> Dear ImGui's key: A, 1, F1, PageUp; Left for left_arrow
KEY_NAMES = {
    "".join(word.title() for word in name.removesuffix("_arrow").split("_")): key
    for name, key in imgui.Key.__members__.items()
}
SYMBOLS = dict(zip("+-.,/[]", "Equal Minus Period Comma Slash LeftBracket RightBracket".split(), strict=True))
KEY_NAMES |= {symbol: KEY_NAMES[name] for symbol, name in SYMBOLS.items()}


@dataclass(frozen=True)
class Action:
    """A named action with its shortcut: `keys` such as "Ctrl+Shift+Z", and `run`, which takes the AppState.

    The command palette finds it by its name, its group and `words`, which are not shown.
    """

    keys: str
    name: str
    group: str
    run: Callable[[Any], object]
    repeats: bool = False
    words: str = ""


def read_actions(file: str, modules: Iterable[ModuleType], editor: object = None) -> list[Action]:
    """The actions of a file of assets/tables: a row for each, by its keys.

    A row has the Action's `group`, `name` and, if it has them, `words` and `repeats`. Its `run` is the path of a
    function of one of the modules, which is called with the AppState first, or of a method of "app", the AppState, or
    of the `editor`; then come the row's `values`, by default none.
    """
    by_name = {module.__name__.rpartition(".")[2]: module for module in modules}

    def call(run: str, values: Sequence[object], app: object) -> None:
        owner, _, path = run.partition(".")
        if owner in by_name:
            attrgetter(path)(by_name[owner])(app, *values)
        else:
            attrgetter(path)({"app": app, "editor": editor}[owner])(*values)

    rows = read_toml(ASSETS / "tables" / file).items()
    # pop() leaves the Action's own fields in the row, which come last.
    return [Action(keys, run=partial(call, row.pop("run"), row.pop("values", ())), **row) for keys, row in rows]


class Chord(NamedTuple):
    """A key with its modifiers."""

    key: imgui.Key
    modifiers: Modifiers


@cache
def chord(keys: str) -> Chord:
    """Parses keys such as "Ctrl+Shift+Z"; raises ValueError for an unknown key or modifier."""
    name = "+" if keys.endswith("+") else keys.rpartition("+")[2]
    modifiers = set(filter(None, keys.removesuffix(name).split("+")))
    if name not in KEY_NAMES:
        raise ValueError(f"{keys!r} is not a key")
    if unknown := modifiers - {"Ctrl", "Shift", "Alt"}:
        raise ValueError(f"{keys!r}: unknown modifier {', '.join(unknown)}")
    return Chord(KEY_NAMES[name], ("Ctrl" in modifiers, "Shift" in modifiers, "Alt" in modifiers))


def pressed(action: Action, modifiers_at_press: dict[imgui.Key, Modifiers]) -> bool:
    """True if the action's key went down in this frame with exactly its modifiers.

    `modifiers_at_press` holds the modifiers of each key's last press, where the backend knows them: input methods
    deliver a key after the release of its modifiers when someone types fast.
    """
    wanted = chord(action.keys)
    if not imgui.is_key_pressed(wanted.key, action.repeats):
        return False
    io = imgui.get_io()
    now = (io.key_ctrl or io.key_super, io.key_shift, io.key_alt)
    return modifiers_at_press.get(wanted.key, now) == wanted.modifiers


@cache
def setting_actions(settings_class: type, step: SettingStep) -> list[Action]:
    """The actions of a Settings class: a setting's key steps it forwards, with Shift backwards."""
    actions = []
    for f in fields(settings_class):
        if key := f.metadata.get("key"):
            label = f.name.replace("_", " ")
            for keys, name, direction in ((key.upper(), "next", 1), (f"Shift+{key.upper()}", "previous", -1)):
                run = partial(lambda field, direction, app: step(app, field, direction), f.name, direction)
                actions.append(Action(keys, f"{name} {label}", PICTURE_GROUP, run, repeats=True))
    return actions


def active_actions(window_actions: list[Action], settings: object, step: SettingStep) -> list[Action]:
    """The actions available for a panel with these settings; a picture's keys take precedence."""
    settings_class: type = type(settings)  # mypy takes the class of a dataclass for unhashable
    picture_actions = setting_actions(settings_class, step) if settings is not None else []
    taken = {action.keys for action in picture_actions}
    return picture_actions + [action for action in window_actions if action.keys not in taken]


def action_buttons(run: Callable[[Action], None], actions: list[Action], labels: dict[str, str]) -> None:
    """A row of buttons, `labels`: label -> the keys of the action that a click runs, which the tooltip shows."""
    for number, (label, keys) in enumerate(labels.items()):
        if number:
            imgui.same_line(0, imgui.get_style().item_inner_spacing.x)
        action = next(action for action in actions if action.keys == keys)
        if theme.button(label, f"{keys}: {action.name}"):
            run(action)


def next_item(items: Sequence[T], current: T, direction: int = 1) -> T:
    """The item after (1) or before (-1) the current one; the first follows the last."""
    return items[(items.index(current) + direction) % len(items)]


def step_setting(settings: Any, name: str, direction: int) -> Any:
    """The settings with one of them a step further (1) or back (-1); choices and numbers wrap around."""
    f = next(f for f in fields(settings) if f.name == name)
    kind, value = get_type_hints(type(settings))[name], getattr(settings, name)
    choices = get_args(kind) if not isinstance(kind, type) else ()
    if choices:
        new = next_item(choices, value, direction)
    elif kind is bool:
        new = not value
    else:
        new = _next_number(value, kind, f.metadata, direction)
    return replace(settings, **{name: new})


def _next_number(value: float, kind: type, metadata: Mapping, direction: int) -> float:
    """A step by a quarter on a logarithmic scale, by 1 for integers, else by a twentieth of the range or 0.1."""
    low, high = metadata.get("low"), metadata.get("high")
    if metadata.get("logarithmic"):
        new = value * 1.25**direction
    elif kind is int:
        new = value + direction
    else:
        new = value + direction * ((high - low) / 20 if low is not None and high is not None else 0.1)
    if kind is int:  # at least one further
        new = round(new) if round(new) != value else value + direction
    if high is not None and new > high:
        return (low if low is not None else high) if value >= high else high
    if low is not None and new < low:
        return (high if high is not None else low) if value <= low else low
    return new
