"""The window's key bindings: one Action for each row of assets/tables/keys.toml, which names the function that it runs.

MainWindow dispatches keys to ACTIONS; the key help and the command palette list them.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from renderer.window.app import docking, overlays
from renderer.window.controls.shortcuts import read_actions
from renderer.window.state import AppState, lesson_reader, open_files, panel_actions, save_files, unsaved
from renderer.window.timeline import actions

MODULES = (actions, docking, lesson_reader, open_files, overlays, panel_actions, save_files, unsaved)
OWNERS: dict[str, Any] = {module.__name__.rpartition(".")[2]: module for module in MODULES}


def _run(app: AppState, run: str, values: Sequence[Any]) -> None:
    """Calls a function of a module with the AppState, or a method of "app", by its path."""
    owner, _, path = run.partition(".")
    attrgetter(path)(app)(*values) if owner == "app" else attrgetter(path)(OWNERS[owner])(app, *values)


ACTIONS = read_actions("keys.toml", _run)
FOCUS_CONTROLS = next(action for action in ACTIONS if action.keys == "F6")
