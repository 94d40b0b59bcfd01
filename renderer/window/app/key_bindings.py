"""The window's key bindings: one Action a line: keys, name, group in the help, function of the AppState.

MainWindow dispatches keys to ACTIONS; the key help and the command palette list them.
"""

from functools import partial
from operator import methodcaller

from renderer.window.app import docking
from renderer.window.app.overlays import start_tour
from renderer.window.controls.shortcuts import Action
from renderer.window.state import AppState, lesson_reader, open_files, panel_actions, save_files, unsaved
from renderer.window.timeline import actions

ARROW_STEP = 0.08  # an arrow key drags by this fraction of the panel's height
FILE, WINDOW, PANEL, VIEW, TONE, TIME = "File", "Window", "Panel", "View", "Exposure", "Time"
CODE_WORDS = "code panel: edit the program, shader, GLSL, C$, scene of the ray tracer, flame"
FOCUS_CONTROLS = Action("F6", "keyboard focus to the controls and back", WINDOW, AppState.toggle_keyboard_navigation)
ACTIONS = [
    FOCUS_CONTROLS,
    Action("Space", "pause or resume", PANEL, panel_actions.toggle_pause),
    Action("R", "restart: time 0, first sample", PANEL, lambda s: s.panel.restart()),
    Action("N", "next scene", PANEL, lambda s: open_files.next_scene(s, 1)),
    Action("P", "previous scene", PANEL, lambda s: open_files.next_scene(s, -1)),
    Action("Enter", "maximize panel, or show all (or double-click)", PANEL, lambda s: s.panels.maximized.toggle()),
    Action("Tab", "next panel", PANEL, lambda s: s.panels.select_next(1)),
    Action("Shift+Tab", "previous panel", PANEL, lambda s: s.panels.select_next(-1)),
    Action("L", "render continuously, to measure frame rate", PANEL, panel_actions.toggle_free_run),
    Action("Z", "resolution: automatic, full, half, quarter", PANEL, panel_actions.cycle_resolution),
    Action("Alt+N", "denoise finished pictures on or off", PANEL, panel_actions.toggle_denoise),
    Action("Ctrl+D", "duplicate panel", PANEL, panel_actions.duplicate_panel),
    Action("Ctrl+W", "close panel", PANEL, unsaved.close_panel),
    Action("Ctrl+G", "arrange panels in a grid", PANEL, docking.reset_to_grid),
    Action("F12", "screenshot of the picture, as PNG with its recipe", PANEL, save_files.screenshot),
    Action("+", "zoom in", VIEW, lambda s: panel_actions.move_view(s, lambda view: view.scroll(1)), True),
    Action("-", "zoom out", VIEW, lambda s: panel_actions.move_view(s, lambda view: view.scroll(-1)), True),
    Action("Home", "reset view", VIEW, panel_actions.reset_view),
    Action("Ctrl+F", "focus on the next click (or Ctrl+click)", VIEW, panel_actions.pick_focus),
    Action("Ctrl+T", "timeline on or off", TIME, actions.toggle_timeline),
    Action("Ctrl+Shift+T", "tracks of the timeline on or off", TIME, actions.toggle_tracks),
    Action("Ctrl+K", "insert key frame", TIME, actions.add_keyframe),
    Action("Ctrl+Shift+K", "delete key frame", TIME, actions.delete_keyframe_here),
    Action("PageUp", "previous key frame", TIME, lambda s: actions.step_keyframe(s, -1)),
    Action("PageDown", "next key frame", TIME, lambda s: actions.step_keyframe(s, 1)),
    Action(",", "previous frame", TIME, lambda s: actions.step_frame(s, -1), True),
    Action(".", "next frame", TIME, lambda s: actions.step_frame(s, 1), True),
    Action("E", "half a stop brighter", TONE, lambda s: panel_actions.adjust_exposure(s, 0.5), True),
    Action("Shift+E", "half a stop darker", TONE, lambda s: panel_actions.adjust_exposure(s, -0.5), True),
    Action("X", "exposure automatic or manual", TONE, lambda s: panel_actions.cycle_tone(s, "exposure")),
    Action("T", "next tone curve", TONE, lambda s: panel_actions.cycle_tone(s, "curve")),
    Action("S", "keep picture as reference", PANEL, panel_actions.set_reference),
    Action("Shift+S", "compare with the next panel", PANEL, panel_actions.compare_with_next),
    Action("W", "compare: off, wipe, flip, difference", PANEL, panel_actions.compare),
    Action("Ctrl+J", "code beside the picture", PANEL, lambda s: s.overlays.code.toggle(), words=CODE_WORDS),
    Action("Ctrl+L", "next view: layers of the picture", PANEL, lambda s: panel_actions.cycle_view(s, 1)),
    Action("Ctrl+Shift+L", "previous view", PANEL, lambda s: panel_actions.cycle_view(s, -1)),
    Action("Ctrl+]", "next step of an algorithm's view", PANEL, lambda s: panel_actions.move_step(s, 1), True),
    Action("Ctrl+[", "previous step of an algorithm's view", PANEL, lambda s: panel_actions.move_step(s, -1), True),
    Action("Ctrl+B", "compare stencil bits, flags, compaction, off, fused", PANEL, panel_actions.compare_schedules),
    Action("Ctrl+M", "measure MSE, PSNR and FLIP against the reference", PANEL, panel_actions.measure),
    Action("Ctrl+Home", "show the whole picture (Ctrl+wheel magnifies)", VIEW, panel_actions.reset_zoom),
    Action("I", "pixel inspector", PANEL, lambda s: s.overlays.inspector.toggle()),
    Action("Ctrl+N", "new scene", FILE, open_files.new_document),
    Action("Ctrl+Shift+N", "new flame", FILE, open_files.new_flame),
    Action("Ctrl+Alt+N", "new shader", FILE, open_files.new_shader, words="GLSL, ShaderToy, mainImage, code"),
    Action("Ctrl+O", "open a file in this panel", FILE, open_files.open_dialog),
    Action("Ctrl+Alt+O", "open a file in a new panel", FILE, open_files.open_beside, words="beside, side by side"),
    Action("Ctrl+S", "save the scene", FILE, save_files.save_scene),
    Action("Ctrl+Shift+S", "save the scene as", FILE, save_files.save_scene_as),
    Action("Ctrl+Alt+E", "export a picture", FILE, lambda s: s.overlays.picture.toggle(), words="PNG, EXR, render"),
    Action("Ctrl+Shift+E", "export a film", FILE, lambda s: s.overlays.film.toggle(), words="MP4, video, animation"),
    Action("Ctrl+Shift+O", "restore the last session", FILE, unsaved.restore),
    Action("Ctrl+Shift+Backspace", "revert to the saved file", FILE, open_files.revert),
    Action("F1", "all keys", WINDOW, lambda s: s.overlays.help.toggle()),
    Action("Shift+F1", "reference: settings, C$, materials", WINDOW, lambda s: s.overlays.reference.toggle()),
    Action("Ctrl+F1", "tour of five steps", WINDOW, start_tour),
    Action("Ctrl+PageDown", "next step of the lesson", WINDOW, lesson_reader.next_step),
    Action("Ctrl+PageUp", "previous step of the lesson", WINDOW, lesson_reader.previous_step),
    Action("Alt+M", "measure what the lesson's step asks for", WINDOW, lesson_reader.measure_step),
    Action("Ctrl+P", "command palette", WINDOW, lambda s: s.overlays.palette.toggle()),
    Action("H", "hide or show the controls", WINDOW, lambda s: s.overlays.sidebar.toggle()),
    Action("F11", "full screen", WINDOW, lambda s: s.overlays.fullscreen.toggle()),
    Action("Ctrl+Z", "undo", WINDOW, AppState.undo, True),
    Action("Ctrl+Y", "redo", WINDOW, AppState.redo, True),
    Action("Ctrl+Backspace", "reset all settings", WINDOW, panel_actions.reset_scene),
    Action("F5", "reload shaders and scenes", WINDOW, open_files.reload),
    Action("Shift+F12", "screenshot of the window", WINDOW, save_files.screenshot_window),
    Action("Escape", "close what is open", WINDOW, AppState.escape),
    Action("Ctrl+Q", "quit", WINDOW, unsaved.quit),
]
SIDES = {"Left": ("left", -1, 0), "Right": ("right", 1, 0), "Up": ("above", 0, -1), "Down": ("below", 0, 1)}
for key, (side, right, down) in SIDES.items():
    dx, dy = ARROW_STEP * right, ARROW_STEP * down
    ACTIONS += [
        Action(key, "orbit", VIEW, partial(panel_actions.move_view, move=methodcaller("drag", dx, dy)), True),
        Action(f"Shift+{key}", "pan", VIEW, partial(panel_actions.move_view, move=methodcaller("pan", dx, dy)), True),
        Action(f"Ctrl+{key}", "swap with the neighbor panel", PANEL, partial(docking.swap_panel, side=side)),
        Action(f"Ctrl+Shift+{key}", "dock panel along that side", PANEL, partial(docking.dock_panel, side=side)),
    ]
ACTIONS += [Action(str(k + 1), "select panel", PANEL, partial(panel_actions.select_panel, index=k)) for k in range(9)]
