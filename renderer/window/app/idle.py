"""When the window draws: at input, while something works or moves, and until what is displayed has settled.

An idle window draws nothing; it only learns of edited files.
"""

from renderer.window.controls.toolkit import imgui
from renderer.window.state import open_files
from renderer.window.state.app_state import AppState

IDLE_WAIT = 0.25  # seconds to wait for an event when nothing is drawn, and between two looks for edited files
TOLD_WAIT = 15.0  # the same where the system reports edited files
SLOW_WAIT = 0.1  # the same while a few frames a second are enough
COMPUTE_WAIT = 1 / 60  # the same while only a compute device works
WAITS = {"drawing": 0.0, "waiting": COMPUTE_WAIT, "compiling": SLOW_WAIT, "flipping": SLOW_WAIT, "idle": IDLE_WAIT}
SETTLE_SECONDS = 1.5  # after the last input or draw: tooltips appear, the frame rate dims, the session is saved


class IdleWatch:
    """Says whether the next frame of one window is needed."""

    def __init__(self, app: AppState):
        self._app = app
        self._awake_until = app.now() + SETTLE_SECONDS

    def wait(self) -> float:
        """Seconds to wait for an event before the next look at what is to do; 0 for none."""
        app, now = self._app, self._app.now()
        activity = app.activity(now)
        if activity == "idle" and now >= self._awake_until and app.file_watcher.is_notified and not _is_typing():
            return TOLD_WAIT
        return WAITS[activity]

    def needs_frame(self, had_input: bool = False) -> bool:
        """Whether to draw; if not, edited files are reloaded. Events that wait in Dear ImGui's queue are input too."""
        app, now = self._app, self._app.now()
        queue = imgui.get_current_context().input_events_queue
        if not had_input and not queue and app.activity(now) == "idle" and not _is_typing():
            if now >= self._awake_until:
                with app.errors_as_messages("looking for edited files"):
                    open_files.reload_changed_files(app, now)
                if app.activity(now) == "idle":  # nothing was reloaded, and no message is shown
                    return False
        else:
            self._awake_until = now + SETTLE_SECONDS
        return True


def _is_typing() -> bool:
    """Whether a text cursor blinks or a control is held."""
    return imgui.get_io().want_text_input or imgui.is_any_item_active()
