"""Decides when the window draws: after input, while something works or moves, and until the display has settled.

An idle window draws nothing; it only looks for edited files.
"""

from renderer.window.controls.toolkit import imgui
from renderer.window.state import main_loop, open_files
from renderer.window.state.app_state import AppState

IDLE_WAIT = 0.25  # seconds to wait for an event if nothing is drawn, and between two checks for edited files
REPORTED_WAIT = 15.0  # the wait of an idle window if the system reports edited files
SLOW_WAIT = 0.1  # seconds to wait while a few frames a second are enough
COMPUTE_WAIT = 1 / 60  # seconds to wait while only a compute device works
WAITS = {"drawing": 0.0, "waiting": COMPUTE_WAIT, "compiling": SLOW_WAIT, "flipping": SLOW_WAIT, "idle": IDLE_WAIT}
SETTLE_SECONDS = 1.5  # after the last input or draw: tooltips appear, the frame rate dims, the session is saved


class IdleWatch:
    """Decides whether a window needs its next frame."""

    def __init__(self, app: AppState):
        self._app = app
        self._awake_until = app.now() + SETTLE_SECONDS

    def wait(self) -> float:
        """Seconds to wait for an event before the next check; 0 if there is something to do."""
        app, now = self._app, self._app.now()
        activity = main_loop.activity(app, now)
        if activity == "idle" and now >= self._awake_until and app.file_watcher.is_notified and not _is_typing():
            return REPORTED_WAIT
        return WAITS[activity]

    def needs_frame(self, had_input: bool = False) -> bool:
        """True if the next frame must be drawn; otherwise reloads edited files.

        `had_input` adds input that Dear ImGui's event queue does not hold, such as a dropped file.
        """
        app, now = self._app, self._app.now()
        queue = imgui.get_current_context().input_events_queue
        if not had_input and not queue and main_loop.activity(app, now) == "idle" and not _is_typing():
            if now >= self._awake_until:
                with app.errors_as_messages("looking for edited files"):
                    open_files.reload_changed_files(app, now)
                if main_loop.activity(app, now) == "idle":  # nothing was reloaded, and no message is shown
                    return False
        else:
            self._awake_until = now + SETTLE_SECONDS
        return True


def _is_typing() -> bool:
    """True if a text cursor blinks or a control is held."""
    return imgui.get_io().want_text_input or imgui.is_any_item_active()
