"""The main loop of the window: its activity, the order in which panels draw, and the recording of undo steps.

The back ends (app/backends.py) call advance() after each frame; app/idle.py asks for the activity, and calls refine()
in place of a frame while panels draw samples that are not displayed.
"""

from typing import Literal

from renderer.window.panels.draw_loop import MAX_IN_FLIGHT, MAX_QUEUED, QUEUED_SECONDS
from renderer.window.panels.panel import Panel
from renderer.window.state.app_state import AppState

DRAW_SECONDS = 1 / 60  # panels draw in the window's GL for at most so long in a frame; at least one panel draws
# The pause after a save of the session is SAVE_PAUSE times the time of the save, but at most SAVE_INTERVAL seconds.
# So saves take at most 5 % of the time if each takes less than 25 ms, and more if they are slower.
SAVE_INTERVAL = 0.5
SAVE_PAUSE = 20.0
TYPING_SECONDS = 0.3  # pause of typing after which the code panel compiles its text
Activity = Literal["drawing", "waiting", "compiling", "polling", "idle"]


def activity(app: AppState, now: float) -> Activity:
    """The main loop's activity, by which app/idle.py chooses how long to wait for events.

    "drawing": a panel draws in this frame. "waiting": a compute device, a measurement of a lesson or an animation runs.
    "compiling": work waits for a compiler. "polling": a few frames a second are enough, because a comparison flips
    between its pictures, a view is due, the system's file dialog is open or an export runs. "idle": only input changes
    the window.
    """
    panels = app.panels
    drawn = panels.with_material_ball()
    works = [app.work, *(panel.work for panel in drawn)]
    if any(work.is_ready for work in works) or any(panel.draw_loop.is_ready for panel in drawn):
        return "drawing"
    is_measuring = app.lesson is not None and app.lesson.is_measuring
    for panel, size in panels.image_sizes():
        with panel.contain_errors():
            needs_draw = panel.draw_loop.needs_draw(size, now)
            if needs_draw and not _must_wait(app, panel, now) and not is_measuring:
                return "drawing"
    if app.loop.needs_frame:
        return "drawing"
    if is_measuring:
        return "waiting"
    if app.current_message(now) or any(panel.draw_loop.busy or panel.is_playing for panel in drawn):
        return "waiting"
    if any(work.is_waiting for work in works):
        return "compiling"
    is_due = any(panel.comparison.mode == "flip" or panel.inspection.is_due(panel) for panel in panels)
    asks = app.dialog is not None and app.dialog.system is not None
    return "polling" if is_due or asks or app.export is not None and app.export.is_running else "idle"


def only_refines(app: AppState, now: float) -> bool:
    """True if only the panels' samples change and no panel has a new picture to display: refine() is enough."""
    loop, panels = app.loop, app.panels
    if loop.needs_frame or not loop.drew_first_frame or loop.lost_device or app.dialog or app.current_message(now):
        return False
    if app.lesson is not None and app.lesson.is_measuring or app.export is not None and app.export.is_running:
        return False
    if app.work.is_waiting or app.screenshots.window:
        return False
    return not any(
        panel.display.is_new or panel.work.is_waiting or panel.is_playing or panel.is_interacting(now)
        or panel.comparison.mode != "off"
        for panel in panels.with_material_ball()
    )  # fmt: skip


def refine(app: AppState, now: float) -> None:
    """Takes over finished draws and starts further ones, without a frame of the window."""
    with app.errors_as_messages("an action that has waited for a compiler"):
        app.work.poll()
    for panel in app.panels.with_material_ball():
        with panel.contain_errors():
            view = panel.inspection.shown
            panel.draw_loop.poll()
            panel.display.update(panel.scene.tone)
            panel.display.is_new |= panel.inspection.shown is not view
    _draw_panels(app, now, app.loop.pixels)
    for lost in (panel for panel in app.panels if panel.device_lost):
        app.save()
        advice = "`rayfold view --restore` restores the panels"
        app.loop.lost_device = f"{lost.measured.device} is lost: {lost.error}. {advice}"


def advance(app: AppState, now: float, seconds: float, pixels: float) -> None:
    """Advances scene times and draws the panels that fit in a frame; `pixels` is framebuffer pixels per unit.

    The first frame draws no panel, so that the window shows what it prepares before kernels are compiled.
    """
    loop = app.loop
    if not loop.drew_first_frame:
        loop.drew_first_frame = True
        return
    loop.pixels = pixels
    for panel in app.panels.with_material_ball():
        panel.display.is_new = False
    for panel in app.panels:
        with panel.contain_errors():
            panel.tick(seconds)
    _save(app, now, seconds)
    refine(app, now)
    if loop.lost_device:
        return
    if loop.is_idle_input and not any(panel.is_interacting(now) for panel in app.panels):
        app.record_change()


def _save(app: AppState, now: float, seconds: float) -> None:
    """Saves the session if it changed. It runs before panels draw, because a draw may block or end the process.

    `seconds` is the duration of the last frame: a save that falls due before the next frame is made now.
    """
    if now + seconds < app.loop.next_save:
        return
    start = app.now()
    app.save()
    app.loop.next_save = app.now() + min(SAVE_PAUSE * (app.now() - start), SAVE_INTERVAL)


def _draw_panels(app: AppState, now: float, pixels: float) -> None:
    """Draws panels until DRAW_SECONDS are spent, in the order of their last draws, the oldest first."""
    start, drawn, expected, drawing = app.now(), False, 0.0, app.panels.with_material_ball()
    interacts = any(panel.is_interacting(now) for panel in app.panels)
    if app.lesson is not None:
        with app.errors_as_messages("measuring"):
            app.lesson.poll(now)
        if app.lesson.is_measuring:
            return  # draws of panels would slow the measurement down
    oldest_first = sorted(app.panels.image_sizes(), key=lambda shown: shown[0].draw_loop.started)
    for panel, (width, height) in oldest_first:
        size = (max(1, int(width * pixels)), max(1, int(height * pixels)))
        with panel.contain_errors():
            if not panel.draw_loop.needs_draw(size, now) or _must_wait(app, panel, now):
                continue
            expected += panel.draw_loop.expected_seconds(size, now)
            spent = max(app.now() - start, expected)
            # A panel's first draw opens its picture (`is_open`).
            # This may take long, so it waits for a frame in which no other panel has drawn.
            if drawn and (spent > DRAW_SECONDS or not panel.is_open):
                continue
            drawn = True
            # Panels that share the compute device; 0: draws of one sample, so that the moved panel waits for none
            panels = 0 if interacts else sum(other.draw_loop.refines for other in drawing)
            panel.draw_loop.draw(size, now, panels, app.loop.display_interval)


def _must_wait(app: AppState, panel: Panel, now: float) -> bool:
    """True if another panel goes first: the panel that the user moves, or a panel that uses the compute device.

    Software GL draws on the window's thread, so it waits while the user types code. At most MAX_IN_FLIGHT
    draws are at work on the compute device, or MAX_QUEUED short ones. While the user moves another panel, this one
    draws only if its samples are short and its last draw is finished.
    """
    if now - app.code_typed_at < TYPING_SECONDS and panel.draws_in_software and panel.display.texture is not None:
        return True
    drawn = app.panels.with_material_ball()
    others = [other for other in drawn if other is not panel]
    if panel.uses_compute_device:
        loops = [other.draw_loop for other in drawn if other.uses_compute_device]
        queued, seconds = sum(loop.busy for loop in loops), sum(loop.queued_seconds for loop in loops)
        if queued >= MAX_QUEUED or queued >= MAX_IN_FLIGHT and seconds > QUEUED_SECONDS:
            return True
    other_moves = any(other.is_interacting(now) for other in others) and not panel.is_interacting(now)
    return other_moves and (panel.measured.sample_seconds > DRAW_SECONDS / 2 or panel.draw_loop.busy > 0)
