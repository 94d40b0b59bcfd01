"""Actions on the active panel's exposure and tone."""

from dataclasses import replace
from typing import get_args, get_type_hints

from renderer.scene.scene import ToneMapping
from renderer.window.controls.step import next_item
from renderer.window.state.app_state import AppState


def adjust_exposure(app: AppState, stops: float) -> None:
    """Changes the exposure by so many stops."""
    tone = app.panel.scene.tone
    ev = round(min(max(tone.ev + stops, -30.0), 30.0), 2)
    _set_tone(app, replace(tone, ev=ev), f"exposure {ev:+.1f} EV")


def cycle_tone(app: AppState, name: str) -> None:
    """Sets a tone mapping setting to its next choice."""
    tone = app.panel.scene.tone
    choice = next_item(get_args(get_type_hints(ToneMapping)[name]), getattr(tone, name))
    _set_tone(app, replace(tone, **{name: choice}), f"{name} {choice}")


def _set_tone(app: AppState, tone: ToneMapping, message: str) -> None:
    app.panel.show(replace(app.panel.scene, tone=tone))
    app.show_message(message)
