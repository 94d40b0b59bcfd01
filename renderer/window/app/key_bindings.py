"""The window's own keys: one line each, which dispatch, help and palette share."""

from renderer.window.controls.shortcuts import Action
from renderer.window.state import layout_actions, open_files, save_files, view_actions
from renderer.window.state.app_state import AppState
from renderer.window.timeline import actions

WINDOW, PANEL, VIEW, TONE, TIME = "Window", "Panel", "View", "Exposure", "Time"
FOCUS_CONTROLS = Action("F6", "keyboard to the controls and back", WINDOW, AppState.toggle_keyboard_navigation)
ACTIONS = [
    FOCUS_CONTROLS,
    Action("Space", "pause or go on", PANEL, AppState.toggle_pause),
    Action("R", "restart", PANEL, AppState.restart),
    Action("N", "next scene", PANEL, lambda s: open_files.next_scene(s, 1)),
    Action("P", "previous scene", PANEL, lambda s: open_files.next_scene(s, -1)),
    Action("Enter", "one panel alone (or double-click)", PANEL, lambda s: s.toggle("solo")),
    Action("Tab", "next panel", PANEL, lambda s: s.next_panel(1)),
    Action("Shift+Tab", "previous panel", PANEL, lambda s: s.next_panel(-1)),
    Action("L", "draw without end, for frame rates", PANEL, AppState.toggle_free_run),
    Action("Z", "resolution: automatic, full, half, quarter", PANEL, AppState.cycle_resolution),
    Action("Ctrl+N", "denoise what is finished, or not", PANEL, AppState.toggle_denoise),
    Action("Ctrl+D", "another panel of the same", PANEL, AppState.duplicate),
    Action("Ctrl+W", "close panel", PANEL, AppState.close_panel),
    Action("Ctrl+G", "panels in a grid again", PANEL, layout_actions.reset_to_grid),
    Action("F12", "screenshot with its recipe", PANEL, save_files.screenshot),
    Action("Left", "orbit", VIEW, lambda s: view_actions.drag(s, -1, 0), True),
    Action("Right", "orbit", VIEW, lambda s: view_actions.drag(s, 1, 0), True),
    Action("Up", "orbit", VIEW, lambda s: view_actions.drag(s, 0, -1), True),
    Action("Down", "orbit", VIEW, lambda s: view_actions.drag(s, 0, 1), True),
    Action("Shift+Left", "pan", VIEW, lambda s: view_actions.pan(s, -1, 0), True),
    Action("Shift+Right", "pan", VIEW, lambda s: view_actions.pan(s, 1, 0), True),
    Action("Shift+Up", "pan", VIEW, lambda s: view_actions.pan(s, 0, -1), True),
    Action("Shift+Down", "pan", VIEW, lambda s: view_actions.pan(s, 0, 1), True),
    Action("+", "nearer", VIEW, lambda s: view_actions.zoom(s, 1), True),
    Action("-", "farther", VIEW, lambda s: view_actions.zoom(s, -1), True),
    Action("Home", "view as in the scene", VIEW, view_actions.home),
    Action("Ctrl+F", "focus on what is clicked next (or Ctrl+click)", VIEW, view_actions.pick_focus),
    Action("Ctrl+T", "line of time on or off", TIME, actions.toggle_timeline),
    Action("Ctrl+K", "key frame here", TIME, actions.add_key),
    Action("Ctrl+Shift+K", "delete the key frame here", TIME, actions.delete_key),
    Action("PageUp", "previous key frame", TIME, lambda s: actions.step_key(s, -1)),
    Action("PageDown", "next key frame", TIME, lambda s: actions.step_key(s, 1)),
    Action(",", "a frame back", TIME, lambda s: actions.step_frame(s, -1), True),
    Action(".", "a frame on", TIME, lambda s: actions.step_frame(s, 1), True),
    Action("E", "half a stop brighter", TONE, lambda s: s.adjust_exposure(0.5), True),
    Action("Shift+E", "half a stop darker", TONE, lambda s: s.adjust_exposure(-0.5), True),
    Action("X", "exposure automatic or manual", TONE, lambda s: s.cycle_tone("exposure")),
    Action("T", "next tone curve", TONE, lambda s: s.cycle_tone("curve")),
    Action("S", "keep this picture to compare with", PANEL, AppState.set_reference),
    Action("Shift+S", "compare with the next panel", PANEL, AppState.compare_with_next),
    Action("W", "compare: off, wipe, flip, difference", PANEL, AppState.compare),
    Action("I", "values of the pixel under the pointer", PANEL, lambda s: s.toggle("inspector")),
    Action("Ctrl+S", "save as a scene file", PANEL, save_files.save_scene),
    Action("Ctrl+O", "bring the last session back", WINDOW, AppState.restore),
    Action("F1", "all keys", WINDOW, lambda s: s.toggle("help")),
    Action("Ctrl+P", "command palette", WINDOW, lambda s: s.toggle("palette")),
    Action("H", "hide or show the controls", WINDOW, lambda s: s.toggle("sidebar")),
    Action("F11", "whole screen", WINDOW, lambda s: s.toggle("fullscreen")),
    Action("Ctrl+Z", "undo", WINDOW, AppState.undo, True),
    Action("Ctrl+Y", "redo", WINDOW, AppState.redo, True),
    Action("Ctrl+Backspace", "all settings as in the scene", WINDOW, AppState.reset_scene),
    Action("F5", "read shaders and scenes anew", WINDOW, open_files.reload),
    Action("Shift+F12", "picture of the window", WINDOW, save_files.screenshot_window),
    Action("Escape", "close what is open", WINDOW, AppState.escape),
    Action("Ctrl+Q", "leave", WINDOW, AppState.quit),
]
ARROW_SIDES = {"Left": "left", "Right": "right", "Up": "above", "Down": "below"}
for key, side in ARROW_SIDES.items():
    swap, dock = (
        (lambda s, side=side: layout_actions.swap_panel(s, side)),
        (lambda s, side=side: layout_actions.dock_panel(s, side)),
    )
    ACTIONS += [
        Action(f"Ctrl+{key}", "swap with the next panel there", PANEL, swap),
        Action(f"Ctrl+Shift+{key}", "put the panel along that side", PANEL, dock),
    ]
ACTIONS += [Action(str(n + 1), "panel by its number", PANEL, lambda s, n=n: s.select_panel(n)) for n in range(9)]
