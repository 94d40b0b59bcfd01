"""What a key makes of a setting: the next of its choices, on or off, or a number a step further."""

from dataclasses import fields, replace
from typing import get_args, get_type_hints


def step_setting(settings, name: str, direction: int):
    """The settings with one of them a step further: the next of a choice, on or off, or a number."""
    f = next(f for f in fields(settings) if f.name == name)
    kind, value = get_type_hints(type(settings))[name], getattr(settings, name)
    low, high = f.metadata.get("low"), f.metadata.get("high")
    choices = get_args(kind) if not isinstance(kind, type) else ()
    if choices:
        new = choices[(choices.index(value) + direction) % len(choices)]
    elif kind is bool:
        new = not value
    else:
        new = _next_number(value, kind, low, high, f.metadata.get("logarithmic"), direction)
    return replace(settings, **{name: new})


def _next_number(value, kind, low, high, logarithmic: bool, direction: int):
    """A quarter more on a logarithmic scale, 1 for whole numbers, a twentieth of the range else; wraps round."""
    if logarithmic:
        new = value * 1.25**direction
    elif kind is int:
        new = value + direction
    else:
        new = value + direction * ((high - low) / 20 if None not in (low, high) else 0.1)
    if kind is int:
        new = round(new) if round(new) != value else value + direction
    if high is not None and new > high:
        return (low if low is not None else high) if value >= high else high
    if low is not None and new < low:
        return (high if high is not None else low) if value <= low else low
    return new
