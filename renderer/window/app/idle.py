"""Decides when the window draws: after input, while something works or moves, and until the display has settled.

An idle window draws nothing; it only looks for edited files. While panels refine, the window draws a frame when one of
them has something new to display, not for each of their draws.
"""

from renderer.window.controls.toolkit import imgui
from renderer.window.state import AppState, main_loop, open_files

IDLE_WAIT = 0.25  # seconds to wait for an event if nothing is drawn, and between two checks for edited files
REPORTED_WAIT = 15.0  # the wait of an idle window if the system reports edited files
SLOW_WAIT = 0.1  # seconds to wait while a few frames a second are enough
COMPUTE_WAIT = 1 / 60  # seconds to wait while only a compute device works, whose completion ends the wait
REFINING_FRAME = 3.0  # most seconds between two frames while panels refine
SETTLING_FRAME = 1 / 30  # and after input, until the display has settled
WAITS = {"drawing": 0.0, "waiting": COMPUTE_WAIT, "compiling": SLOW_WAIT, "polling": SLOW_WAIT, "idle": IDLE_WAIT}
SETTLE_SECONDS = 1.5  # after the last input or draw: tooltips appear, the frame rate dims, the session is saved


class IdleWatch:
    """Decides whether a window needs its next frame."""

    def __init__(self, app: AppState):
        self._app = app
        self._awake_until = self._input_until = app.now() + SETTLE_SECONDS
        self._framed_at = -1e9  # the time of the last frame

    def wait(self) -> float:
        """Seconds to wait for an event before the next check; 0 if there is something to do."""
        app, now = self._app, self._app.now()
        activity = main_loop.activity(app, now)
        if activity == "idle" and now >= self._awake_until and app.file_watcher.is_notified and not _is_typing():
            return REPORTED_WAIT
        return WAITS[activity]

    def needs_frame(self, had_input: bool = False) -> bool:
        """True if the next frame must be drawn; otherwise reloads edited files, and panels draw what is not displayed.

        `had_input` adds input that Dear ImGui's event queue does not hold, such as a dropped file.
        """
        app, now = self._app, self._app.now()
        queue = imgui.get_current_context().input_events_queue
        if had_input or queue or _is_typing():
            self._awake_until = self._input_until = now + SETTLE_SECONDS
        elif (activity := main_loop.activity(app, now)) != "idle":
            self._awake_until = now + SETTLE_SECONDS
            if activity in ("drawing", "waiting") and main_loop.only_refines(app, now):
                main_loop.refine(app, now)
                self._reload(now)
                interval = SETTLING_FRAME if now < self._input_until else REFINING_FRAME
                if now < self._framed_at + interval and main_loop.only_refines(app, now):
                    return False
        elif now >= self._awake_until:
            self._reload(now)
            if main_loop.activity(app, now) == "idle":  # nothing was reloaded, and no message is shown
                return False
        self._framed_at = now
        return True

    def _reload(self, now: float) -> None:
        with self._app.errors_as_messages("looking for edited files"):
            open_files.reload_changed_files(self._app, now)


def _is_typing() -> bool:
    """True while a text cursor blinks or a control is pressed."""
    return imgui.get_io().want_text_input or imgui.is_any_item_active()
