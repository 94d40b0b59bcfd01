"""The window's key bindings: one Action for each row of assets/tables/keys.toml, which names the function that it runs.

MainWindow dispatches keys to ACTIONS; the key help and the command palette list them.
"""

from renderer.window.app import docking, overlays
from renderer.window.controls.shortcuts import read_actions
from renderer.window.state import lesson_actions, open_files, panel_actions, save_files, unsaved
from renderer.window.timeline import actions

MODULES = (actions, docking, lesson_actions, open_files, overlays, panel_actions, save_files, unsaved)
ACTIONS = read_actions("keys.toml", MODULES)
FOCUS_CONTROLS = next(action for action in ACTIONS if action.keys == "F6")
