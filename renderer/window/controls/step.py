"""Steps a setting by a key: to its next choice, on or off, or to the next number.

A setting declared with `scene.setting(key=...)` has such a key; panel_actions.step_setting() applies the step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints


def next_item(items: Sequence[Any], current: object, direction: int = 1) -> Any:
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


def _next_number(value: Any, kind: type, metadata: Mapping, direction: int) -> Any:
    """A step by a quarter on a logarithmic scale, by 1 for integers, else by a twentieth of the range or 0.1."""
    low, high = metadata.get("low"), metadata.get("high")
    if metadata.get("logarithmic"):
        new = value * 1.25**direction
    elif kind is int:
        new = value + direction
    else:
        new = value + direction * ((high - low) / 20 if low is not None and high is not None else 0.1)
    if kind is int:
        new = round(new) if round(new) != value else value + direction
    if high is not None and new > high:
        return (low if low is not None else high) if value >= high else high
    if low is not None and new < low:
        return (high if high is not None else low) if value <= low else low
    return new
