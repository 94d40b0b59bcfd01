"""Error containment: a failing panel, region, action, or dropped or edited file does not end the window.

Every such block runs inside contained(): an exception ends the block for this frame and becomes a sentence, which the
window shows. Dear ImGui's error recovery then restores its stacks (windows, IDs, tables, styles) as they were at the
start of the block, so that the rest of the frame is drawn.
"""

import sys
import traceback
from collections.abc import Callable

from renderer.errors import KernelError, UserError
from renderer.system.process import log_internal_error
from renderer.window.controls.toolkit import imgui

MAX_LOGGED = 100  # lines of code whose errors are logged; errors of further lines show a sentence only

_logged: dict[tuple, str] = {}  # by block, class and line of code: an error that repeats each frame is logged once


def allow_recovery() -> None:
    """Makes Dear ImGui close windows and stacks that an exception left open; by default it would fail an assertion."""
    imgui.get_io().config_error_recovery_enable_assert = False
    imgui.get_io().config_error_recovery_enable_tooltip = False
    imgui.get_current_context().debug_log_flags = 0  # recovery must report in some way; nothing is logged


class contained:  # noqa: N801  (used as a function, as contextlib.suppress)
    """Ends the block of a `with` at any exception and calls show(exception, sentence).

    An error that a user can cause, or one of `refusals`, is shown by its text. An internal error is logged; its
    sentence names the log and `doing`, the work of the block. This is a class, as a generator is slower and a frame
    enters some forty of them.
    """

    __slots__ = ("_doing", "_frame", "_refusals", "_show", "_stacks")

    def __init__(self, doing: str, show: Callable[[Exception, str], None], refusals: tuple[type[Exception], ...] = ()):
        self._doing, self._show, self._refusals = doing, show, refusals

    def __enter__(self) -> None:
        self._frame = _open_frame()
        if self._frame is not None:
            self._stacks = imgui.internal.ErrorRecoveryState()
            imgui.internal.error_recovery_store_state(self._stacks)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        # Work that waited for a compiler ends in a later frame, whose stacks are not to be restored
        if self._frame is not None and self._frame == _open_frame():
            imgui.internal.error_recovery_try_to_recover_state(self._stacks)
        is_expected = self._refusals and isinstance(error, self._refusals)
        self._show(error, str(error) if is_expected else sentence(error, self._doing))
        return True  # nothing that fails inside ends the window


def _open_frame() -> int | None:
    """The number of Dear ImGui's frame, None outside of one."""
    context = imgui.get_current_context()
    return context.frame_count if context is not None and context.within_frame_scope else None


def sentence(error: Exception, doing: str) -> str:
    """The sentence of an error: its text if a user can cause it, else a sentence that names its log."""
    return str(error) if isinstance(error, (UserError, KernelError)) else report(error, doing)


def report(error: Exception, doing: str) -> str:
    """Logs an internal error and prints its traceback, once for each line that raises it; returns its sentence."""
    frames = traceback.extract_tb(error.__traceback__)
    key = (doing, type(error), frames[-1].filename, frames[-1].lineno) if frames else (doing, type(error))
    if key not in _logged and len(_logged) < MAX_LOGGED:
        _logged[key] = log_internal_error(error, doing)
        traceback.print_exception(error, file=sys.stderr)
    return _logged.get(key) or f"internal error in {doing}: {type(error).__name__}"
