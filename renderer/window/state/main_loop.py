"""The main loop of the window: its activity, the order in which panels draw, and the recording of undo steps.

The back ends (app/backends.py) call advance() after each frame; app/idle.py asks for the activity.
"""

from typing import Literal

from renderer.window.panels.panel import Panel
from renderer.window.state.app_state import AppState

DRAW_SECONDS = 0.03  # panels draw in the window's GL for at most so long in a frame; at least one panel draws
SAVE_INTERVAL = 0.5  # seconds between two saves of a session that changes all the time, at most
SAVE_PAUSE = 20.0  # between two saves, in the time that a save takes: at most 5 % of the time is spent on them
Activity = Literal["drawing", "waiting", "compiling", "flipping", "idle"]


def activity(app: AppState, now: float) -> Activity:
    """The state of the main loop.

    "drawing": a panel draws in this frame. "waiting": a compute device, a child process or an animation is at work.
    "compiling": work waits for a compiler. "flipping": a comparison alternates its two pictures, a view is to be
    computed again, or the system's file dialog is open. "idle": nothing changes without input.
    """
    panels = app.panels
    works = [app.work, *(panel.work for panel in panels)]
    if any(work.is_ready for work in works):
        return "drawing"
    is_measuring = app.lesson is not None and app.lesson.is_measuring
    for panel, _, (_, _, width, height) in panels.placed_and_open():
        with panel.errors_stay():
            needs_draw = panel.draw_loop.needs_draw((width, height), now)
            if needs_draw and not _must_wait(app, panel, now) and not is_measuring:
                return "drawing"
    if app.loop.needs_frame:
        return "drawing"
    if is_measuring or app.film is not None and app.film.is_running:
        return "waiting"
    if app.current_message(now) or any(panel.draw_loop.busy or panel.is_playing for panel in panels):
        return "waiting"
    if any(work.is_waiting for work in works):
        return "compiling"
    changes = any(panel.comparison.mode == "flip" or panel.inspection.is_due(panel) for panel in panels)
    asks = app.dialog is not None and app.dialog.system is not None
    return "flipping" if changes or asks else "idle"


def advance(app: AppState, now: float, seconds: float, pixels: float = 1.0) -> None:
    """Advances scene times and draws the panels that fit in a frame; `pixels` is framebuffer pixels per unit.

    The first frame draws no panel, so that the window shows what it prepares before kernels are compiled.
    """
    loop = app.loop
    if not loop.drew_first_frame:
        loop.drew_first_frame = True
        return
    with app.errors_as_messages("an action that has waited for a compiler"):
        app.work.poll()
    for panel in app.panels:
        with panel.errors_stay():
            panel.draw_loop.poll()
            panel.tick(seconds)
            panel.display.update(panel.scene.tone)
    _save(app, now, seconds)
    _draw_panels(app, now, pixels)
    lost = next((panel for panel in app.panels if panel.device_lost), None)
    if lost:
        app.save()
        loop.lost_device = f"{lost.measured.device} is lost: {lost.error}. `rayfold view --restore` restores the panels"
        return
    if loop.is_idle_input and not any(panel.is_interacting(now) for panel in app.panels):
        app.record_change()


def _save(app: AppState, now: float, seconds: float) -> None:
    """Saves the session if it changed, before panels are drawn: a draw may block for long, or end the process.

    `seconds` is the time of the last frame: a save that could only be late in the next frame is made in this one.
    """
    if now + seconds < app.loop.next_save:
        return
    start = app.now()
    app.save()
    app.loop.next_save = app.now() + min(SAVE_PAUSE * (app.now() - start), SAVE_INTERVAL)


def _draw_panels(app: AppState, now: float, pixels: float) -> None:
    """Draws panels until DRAW_SECONDS are spent, in the order of their last draws, the oldest first."""
    start, drawn = app.now(), False
    if app.lesson is not None:
        with app.errors_as_messages("measuring"):
            app.lesson.poll(now)
        if app.lesson.is_measuring:
            return  # panels would take the time that is measured
    oldest_first = sorted(app.panels.placed_and_open(), key=lambda placed: placed.panel.draw_loop.started)
    for panel, _, (_, _, width, height) in oldest_first:
        size = (max(1, int(width * pixels)), max(1, int(height * pixels)))
        with panel.errors_stay():
            if not panel.draw_loop.needs_draw(size, now) or _must_wait(app, panel, now):
                continue
            spent = app.now() - start
            if drawn and (spent + panel.draw_loop.expected_seconds(size, now) > DRAW_SECONDS or not panel.is_open):
                continue
            drawn = True
            panel.draw_loop.draw(size, now)


def _must_wait(app: AppState, panel: Panel, now: float) -> bool:
    """True if another panel goes first: the panel that the user moves, or a panel that uses the compute device."""
    others = [other for other in app.panels if other is not panel]
    if panel.uses_compute_device and any(other.draw_loop.busy for other in others):
        return True
    other_moves = any(other.is_interacting(now) for other in others) and not panel.is_interacting(now)
    return other_moves and panel.measured.sample_seconds > DRAW_SECONDS / 2
