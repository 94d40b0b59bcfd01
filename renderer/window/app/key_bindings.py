"""The window's key bindings: one action a line, shared by the dispatcher, the help and the command palette."""

from functools import partial
from operator import methodcaller

from renderer.window.app import tour
from renderer.window.controls.shortcuts import Action
from renderer.window.state import (
    compare_actions,
    documents,
    layout_actions,
    lesson_reader,
    open_files,
    save_files,
    tone_actions,
    view_actions,
)
from renderer.window.state.app_state import AppState
from renderer.window.timeline import actions

ARROW_STEP = 0.08  # of the panel's height, by which an arrow key drags
FILE, WINDOW, PANEL, VIEW, TONE, TIME = "File", "Window", "Panel", "View", "Exposure", "Time"
FOCUS_CONTROLS = Action(
    "F6", "move keyboard focus to the controls and back", WINDOW, AppState.toggle_keyboard_navigation
)
ACTIONS = [
    FOCUS_CONTROLS,
    Action("Space", "pause or resume", PANEL, AppState.toggle_pause),
    Action("R", "restart", PANEL, lambda s: s.panel.restart()),
    Action("N", "next scene", PANEL, lambda s: open_files.next_scene(s, 1)),
    Action("P", "previous scene", PANEL, lambda s: open_files.next_scene(s, -1)),
    Action("Enter", "maximize panel (or double-click)", PANEL, lambda s: s.toggle("solo")),
    Action("Tab", "next panel", PANEL, lambda s: s.next_panel(1)),
    Action("Shift+Tab", "previous panel", PANEL, lambda s: s.next_panel(-1)),
    Action("L", "render continuously, to measure frame rate", PANEL, view_actions.toggle_free_run),
    Action("Z", "resolution: automatic, full, half, quarter", PANEL, view_actions.cycle_resolution),
    Action("Alt+N", "denoise finished pictures on or off", PANEL, AppState.toggle_denoise),
    Action("Ctrl+D", "duplicate panel", PANEL, lambda s: s.add_panels([s.panel.scene])),
    Action("Ctrl+W", "close panel", PANEL, AppState.close_panel),
    Action("Ctrl+G", "arrange panels in a grid", PANEL, layout_actions.reset_to_grid),
    Action("F12", "screenshot with its recipe", PANEL, save_files.screenshot),
    Action("+", "zoom in", VIEW, lambda s: view_actions.move_view(s, lambda view: view.scroll(1)), True),
    Action("-", "zoom out", VIEW, lambda s: view_actions.move_view(s, lambda view: view.scroll(-1)), True),
    Action("Home", "reset view", VIEW, view_actions.reset_view),
    Action("Ctrl+F", "focus on the next click (or Ctrl+click)", VIEW, view_actions.pick_focus),
    Action("Ctrl+T", "timeline on or off", TIME, actions.toggle_timeline),
    Action("Ctrl+Shift+T", "tracks of the timeline on or off", TIME, actions.toggle_tracks),
    Action("Ctrl+K", "insert key frame", TIME, actions.add_keyframe),
    Action("Ctrl+Shift+K", "delete key frame", TIME, actions.delete_keyframe_here),
    Action("PageUp", "previous key frame", TIME, lambda s: actions.step_keyframe(s, -1)),
    Action("PageDown", "next key frame", TIME, lambda s: actions.step_keyframe(s, 1)),
    Action(",", "previous frame", TIME, lambda s: actions.step_frame(s, -1), True),
    Action(".", "next frame", TIME, lambda s: actions.step_frame(s, 1), True),
    Action("E", "half a stop brighter", TONE, lambda s: tone_actions.adjust_exposure(s, 0.5), True),
    Action("Shift+E", "half a stop darker", TONE, lambda s: tone_actions.adjust_exposure(s, -0.5), True),
    Action("X", "exposure automatic or manual", TONE, lambda s: tone_actions.cycle_tone(s, "exposure")),
    Action("T", "next tone curve", TONE, lambda s: tone_actions.cycle_tone(s, "curve")),
    Action("S", "keep picture as reference", PANEL, compare_actions.set_reference),
    Action("Shift+S", "compare with the next panel", PANEL, compare_actions.compare_with_next),
    Action("W", "compare: off, wipe, flip, difference", PANEL, compare_actions.compare),
    Action("Ctrl+J", "program beside the picture", PANEL, lambda s: s.toggle("code")),
    Action("Ctrl+L", "next view: layers of the picture", PANEL, lambda s: view_actions.cycle_view(s, 1)),
    Action("Ctrl+Shift+L", "previous view", PANEL, lambda s: view_actions.cycle_view(s, -1)),
    Action("Ctrl+]", "next step of an algorithm's view", PANEL, lambda s: view_actions.move_step(s, 1), True),
    Action("Ctrl+[", "previous step of an algorithm's view", PANEL, lambda s: view_actions.move_step(s, -1), True),
    Action("Ctrl+B", "compare stencil bits, flags, compaction, off, fused", PANEL, view_actions.compare_schedules),
    Action("Ctrl+M", "measure MSE, PSNR and FLIP against the reference", PANEL, lambda s: s.panel.measure()),
    Action("Ctrl+Home", "show the whole picture (Ctrl+wheel magnifies)", VIEW, view_actions.reset_zoom),
    Action("I", "pixel inspector", PANEL, lambda s: s.toggle("inspector")),
    Action("Ctrl+N", "new scene", FILE, documents.new_document),
    Action("Ctrl+O", "open a file", FILE, documents.open_dialog),
    Action("Ctrl+S", "save the scene", FILE, documents.save),
    Action("Ctrl+Shift+S", "save the scene as", FILE, documents.save_as_dialog),
    Action("Ctrl+Shift+E", "export a film", FILE, lambda s: s.toggle("film_dialog")),
    Action("Ctrl+Shift+O", "restore the last session", FILE, AppState.restore),
    Action("F1", "all keys", WINDOW, lambda s: s.toggle("help")),
    Action("Shift+F1", "reference: settings, C$, materials", WINDOW, lambda s: s.toggle("reference")),
    Action("Ctrl+F1", "tour of five steps", WINDOW, tour.start),
    Action("Ctrl+PageDown", "next step of the lesson", WINDOW, lesson_reader.next_step),
    Action("Ctrl+PageUp", "previous step of the lesson", WINDOW, lesson_reader.previous_step),
    Action("Alt+M", "measure what the lesson's step asks for", WINDOW, lesson_reader.measure_step),
    Action("Ctrl+P", "command palette", WINDOW, lambda s: s.toggle("palette")),
    Action("H", "hide or show the controls", WINDOW, lambda s: s.toggle("sidebar")),
    Action("F11", "full screen", WINDOW, lambda s: s.toggle("fullscreen")),
    Action("Ctrl+Z", "undo", WINDOW, AppState.undo, True),
    Action("Ctrl+Y", "redo", WINDOW, AppState.redo, True),
    Action("Ctrl+Backspace", "reset all settings", WINDOW, AppState.reset_scene),
    Action("F5", "reload shaders and scenes", WINDOW, open_files.reload),
    Action("Shift+F12", "screenshot of the window", WINDOW, save_files.screenshot_window),
    Action("Escape", "close what is open", WINDOW, AppState.escape),
    Action("Ctrl+Q", "quit", WINDOW, lambda s: setattr(s, "quit_requested", True)),
]
SIDES = {"Left": ("left", -1, 0), "Right": ("right", 1, 0), "Up": ("above", 0, -1), "Down": ("below", 0, 1)}
for key, (side, right, down) in SIDES.items():
    dx, dy = ARROW_STEP * right, ARROW_STEP * down
    ACTIONS += [
        Action(key, "orbit", VIEW, partial(view_actions.move_view, move=methodcaller("drag", dx, dy)), True),
        Action(f"Shift+{key}", "pan", VIEW, partial(view_actions.move_view, move=methodcaller("pan", dx, dy)), True),
        Action(f"Ctrl+{key}", "swap with the neighbor panel", PANEL, partial(layout_actions.swap_panel, side=side)),
        Action(f"Ctrl+Shift+{key}", "dock panel along that side", PANEL, partial(layout_actions.dock_panel, side=side)),
    ]
ACTIONS += [Action(str(k + 1), "select panel", PANEL, partial(AppState.select_panel, index=k)) for k in range(9)]
