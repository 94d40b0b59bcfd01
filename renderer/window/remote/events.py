"""Mouse and keyboard events that a browser sends as JSON: their check, before the drawing thread sees them.

handler.py calls read_events(); server.py passes the checked events to Dear ImGui.
"""

import json
from collections.abc import Callable
from string import ascii_uppercase, digits

from renderer.plain import Json
from renderer.window.controls.shortcuts import KEY_NAMES

MAX_TEXT = 16  # characters that one event types
MAX_CODE = 40  # characters of a key's name. Unknown names are ignored: keyboards have more keys than the window uses

# JavaScript's KeyboardEvent.code -> Dear ImGui's key
KEYS = {f"Key{letter}": KEY_NAMES[letter] for letter in ascii_uppercase}
KEYS |= {f"Digit{digit}": KEY_NAMES[digit] for digit in digits}
KEYS |= {f"Arrow{side}": KEY_NAMES[side] for side in ("Left", "Right", "Up", "Down")}
KEYS |= {f"Bracket{side}": KEY_NAMES[f"{side}Bracket"] for side in ("Left", "Right")}
SAME_NAMES = "Space Enter Escape Tab Backspace Home End Delete PageUp PageDown Equal Minus Period Comma Slash"
KEYS |= {name: KEY_NAMES[name] for name in (*SAME_NAMES.split(), *(f"F{number}" for number in range(1, 13)))}


def _is_coordinate(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e6  # NaN is not


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_button(value: object) -> bool:
    return type(value) is int and 0 <= value <= 2


def _is_code(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_CODE


def _is_text(value: object) -> bool:
    """True if UTF-8 can encode the text (no half of a surrogate pair) and C can hold it (no NUL)."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return False
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value)


MODIFIERS = {"ctrl": _is_flag, "shift": _is_flag, "alt": _is_flag}  # false if they are missing
OPTIONAL = {*MODIFIERS, "ratio"}  # names of fields that an event may leave out
# The fields of each kind of event, besides `kind`; all but OPTIONAL are required.
FIELDS: dict[str, dict[str, Callable[[object], bool]]] = {
    "move": {"x": _is_coordinate, "y": _is_coordinate},
    "button": {"button": _is_button, "down": _is_flag},
    "wheel": {"y": _is_coordinate},
    "key": {"code": _is_code, "down": _is_flag, **MODIFIERS},
    "text": {"text": _is_text},
    "focus": {"focused": _is_flag},
    "resize": {"width": _is_coordinate, "height": _is_coordinate, "ratio": _is_coordinate},  # pixels a unit
}


def read_events(body: bytes) -> list[Json]:
    """The events of a request; raises ValueError unless the body is a list of events as in FIELDS."""
    try:
        events = json.loads(body)
    except (ValueError, RecursionError):
        events = None
    if not isinstance(events, list):
        raise ValueError("events must be a JSON list")
    for number, event in enumerate(events):
        _check(event, f"event {number}")
    return events


def _check(event: object, where: str) -> None:
    """Raises ValueError unless the event has the fields of its kind, with allowed values, and no others."""
    kind = event.get("kind") if isinstance(event, dict) else None
    if not (isinstance(event, dict) and isinstance(kind, str) and kind in FIELDS):
        raise ValueError(f"{where}: kind must be one of {', '.join(FIELDS)}")
    fields = FIELDS[kind]
    for name, is_valid in fields.items():
        if name in event and not is_valid(event[name]) or name not in event and name not in OPTIONAL:
            raise ValueError(f"{where}: {name} of {kind} is missing or not allowed")
    if len(event) > 1 + sum(name in event for name in fields):
        raise ValueError(f"{where}: {kind} has only {', '.join(fields)}")
