"""The window's own keys: one line each, which dispatch, help and palette share."""

from renderer.window.app import open_files, save_files
from renderer.window.app.shortcuts import Action
from renderer.window.app.state import Studio
from renderer.window.panels import layout_actions, view_actions
from renderer.window.timeline import actions

WINDOW, PANEL, VIEW, TONE, TIME = "Window", "Panel", "View", "Exposure", "Time"
TO_CONTROLS = Action("F6", "keyboard to the controls and back", WINDOW, Studio.toggle_typing)
ACTIONS = [
    TO_CONTROLS,
    Action("Space", "pause or go on", PANEL, Studio.toggle_pause),
    Action("R", "restart", PANEL, Studio.restart),
    Action("N", "next scene", PANEL, lambda s: open_files.next_scene(s, 1)),
    Action("P", "previous scene", PANEL, lambda s: open_files.next_scene(s, -1)),
    Action("Enter", "one panel alone (or double-click)", PANEL, lambda s: s.toggle("solo")),
    Action("Tab", "next panel", PANEL, lambda s: s.next_panel(1)),
    Action("Shift+Tab", "previous panel", PANEL, lambda s: s.next_panel(-1)),
    Action("L", "draw without end, for frame rates", PANEL, Studio.toggle_free_run),
    Action("Z", "resolution: automatic, full, half, quarter", PANEL, Studio.cycle_resolution),
    Action("Ctrl+N", "denoise what is finished, or not", PANEL, Studio.toggle_denoise),
    Action("Ctrl+D", "another panel of the same", PANEL, Studio.duplicate),
    Action("Ctrl+W", "close panel", PANEL, Studio.close_panel),
    Action("Ctrl+G", "panels in a grid again", PANEL, layout_actions.stand_in_grid),
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
    Action("Ctrl+F", "focus on what is clicked next (or Ctrl+click)", VIEW, view_actions.pick_next),
    Action("Ctrl+T", "line of time on or off", TIME, actions.toggle_timeline),
    Action("Ctrl+K", "key frame here", TIME, actions.add_key),
    Action("Ctrl+Shift+K", "delete the key frame here", TIME, actions.delete_key),
    Action("PageUp", "previous key frame", TIME, lambda s: actions.step_key(s, -1)),
    Action("PageDown", "next key frame", TIME, lambda s: actions.step_key(s, 1)),
    Action(",", "a frame back", TIME, lambda s: actions.step_frame(s, -1), True),
    Action(".", "a frame on", TIME, lambda s: actions.step_frame(s, 1), True),
    Action("E", "half a stop brighter", TONE, lambda s: s.expose(0.5), True),
    Action("Shift+E", "half a stop darker", TONE, lambda s: s.expose(-0.5), True),
    Action("X", "exposure automatic or manual", TONE, lambda s: s.cycle_tone("exposure")),
    Action("T", "next tone curve", TONE, lambda s: s.cycle_tone("curve")),
    Action("S", "keep this picture to compare with", PANEL, Studio.keep_reference),
    Action("Shift+S", "compare with the next panel", PANEL, Studio.follow_next),
    Action("W", "compare: off, wipe, flip, difference", PANEL, Studio.compare),
    Action("I", "values of the pixel under the pointer", PANEL, lambda s: s.toggle("inspector")),
    Action("Ctrl+S", "save as a scene file", PANEL, save_files.save_scene),
    Action("Ctrl+O", "bring the last session back", WINDOW, Studio.restore),
    Action("F1", "all keys", WINDOW, lambda s: s.toggle("help")),
    Action("Ctrl+P", "command palette", WINDOW, lambda s: s.toggle("palette")),
    Action("H", "hide or show the controls", WINDOW, lambda s: s.toggle("sidebar")),
    Action("F11", "whole screen", WINDOW, lambda s: s.toggle("fullscreen")),
    Action("Ctrl+Z", "undo", WINDOW, Studio.undo, True),
    Action("Ctrl+Y", "redo", WINDOW, Studio.redo, True),
    Action("Ctrl+Backspace", "all settings as in the scene", WINDOW, Studio.reset),
    Action("F5", "read shaders and scenes anew", WINDOW, open_files.reload),
    Action("Shift+F12", "picture of the window", WINDOW, save_files.screenshot_window),
    Action("Escape", "close what is open", WINDOW, Studio.escape),
    Action("Ctrl+Q", "leave", WINDOW, Studio.leave),
]
ACROSS = {"Left": "left", "Right": "right", "Up": "above", "Down": "below"}
for key, side in ACROSS.items():
    swap, dock = (
        (lambda s, side=side: layout_actions.swap_panel(s, side)),
        (lambda s, side=side: layout_actions.dock_panel(s, side)),
    )
    ACTIONS += [
        Action(f"Ctrl+{key}", "swap with the next panel there", PANEL, swap),
        Action(f"Ctrl+Shift+{key}", "put the panel along that side", PANEL, dock),
    ]
ACTIONS += [Action(str(n + 1), "panel by its number", PANEL, lambda s, n=n: s.choose(n)) for n in range(9)]
