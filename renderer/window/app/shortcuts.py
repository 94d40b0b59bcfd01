"""What keys do: one table that dispatches, that the help prints, and that the command palette lists.

Beside it stand the keys that the active picture's settings name (`scene.setting(key=...)`): they step that setting.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

from renderer.window.controls.toolkit import imgui

ACTIONS_OF_A_PICTURE = "This picture"  # the group of its own keys
NAMED = {
    "Space": imgui.Key.space, "Enter": imgui.Key.enter, "Escape": imgui.Key.escape, "Tab": imgui.Key.tab,
    "Backspace": imgui.Key.backspace, "Delete": imgui.Key.delete, "Home": imgui.Key.home,
    "Left": imgui.Key.left_arrow, "Right": imgui.Key.right_arrow, "Up": imgui.Key.up_arrow,
    "Down": imgui.Key.down_arrow, "PageUp": imgui.Key.page_up, "PageDown": imgui.Key.page_down,
    "+": imgui.Key.equal, "-": imgui.Key.minus, ".": imgui.Key.period, ",": imgui.Key.comma,
    "/": imgui.Key.slash, "[": imgui.Key.left_bracket, "]": imgui.Key.right_bracket,
}  # fmt: skip


@dataclass(frozen=True)
class Action:
    """`keys` as people write them, such as "Ctrl+Shift+Z"; run takes the Studio."""

    keys: str
    name: str
    group: str
    run: Callable
    repeats: bool = False


@dataclass(frozen=True)
class Chord:
    key: "imgui.Key"
    ctrl: bool
    shift: bool
    alt: bool


@cache
def chord(keys: str) -> Chord:
    """The key and modifiers that a spelling means; ValueError when it means none."""
    *modifiers, name = keys.split("+") if not keys.endswith("+") else [*keys[:-1].rstrip("+").split("+"), "+"]
    modifiers = [m for m in modifiers if m]
    if name in NAMED:
        key = NAMED[name]
    elif name.isdigit() and len(name) == 1:
        key = getattr(imgui.Key, f"_{name}")
    elif hasattr(imgui.Key, name.lower()) and (len(name) == 1 or name[0] == "F"):
        key = getattr(imgui.Key, name.lower())
    else:
        raise ValueError(f"{keys!r} is no key")
    unknown = set(modifiers) - {"Ctrl", "Shift", "Alt"}
    if unknown:
        raise ValueError(f"{keys!r}: unknown modifier {', '.join(unknown)}")
    return Chord(key, "Ctrl" in modifiers, "Shift" in modifiers, "Alt" in modifiers)


def pressed(action: Action, held: dict) -> bool:
    """Whether the action's keys went down in this frame, with exactly its modifiers.

    `held` is key -> (ctrl, shift, alt) at its last press, where the window knows: input methods deliver a key after
    the release of its modifiers when someone types fast.
    """
    wanted = chord(action.keys)
    if not imgui.is_key_pressed(wanted.key, action.repeats):
        return False
    io = imgui.get_io()
    now = (io.key_ctrl or io.key_super, io.key_shift, io.key_alt)
    return held.get(wanted.key, now) == (wanted.ctrl, wanted.shift, wanted.alt)


@cache
def of_settings(kind: type) -> list[Action]:
    """The actions of a picture's own keys: the key steps the setting forwards, with Shift backwards."""
    actions = []
    for f in fields(kind):
        key = f.metadata.get("key")
        if key:
            words = f.name.replace("_", " ")
            actions.append(_step(key.upper(), f"next {words}", f.name, 1))
            actions.append(_step(f"Shift+{key.upper()}", f"previous {words}", f.name, -1))
    return actions


def _step(keys: str, name: str, field: str, direction: int) -> Action:
    return Action(keys, name, ACTIONS_OF_A_PICTURE, lambda studio: studio.step_setting(field, direction), repeats=True)


def table(studio_actions: list[Action], settings) -> list[Action]:
    """All actions that are live for a panel with these settings; a picture's own keys come before the window's."""
    own = of_settings(type(settings)) if settings is not None else []
    taken = {action.keys for action in own}
    return own + [action for action in studio_actions if action.keys not in taken]
