"""The boundary between the window and what fails inside it: a panel, a region, an action, a dropped or edited file.

Every part of the window that can fail runs inside contained(): an exception ends that part for this frame and becomes a
sentence that the part shows. Dear ImGui's stacks (windows, IDs, tables, styles) are then as they were when the block
began, as its own error recovery restores them, so that the rest of the frame is drawn.
"""

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from renderer.errors import KernelError, UserError
from renderer.process import log_internal_error
from renderer.window.controls.toolkit import imgui

MAX_LOGGED = 100  # places whose errors have a log; beyond them only the sentence is shown

_logged: dict[tuple, str] = {}  # by what failed and where: an error that repeats each frame is logged once


def allow_recovery() -> None:
    """Makes Dear ImGui close what an exception left open, where it would end the program by an assertion."""
    imgui.get_io().config_error_recovery_enable_assert = False
    imgui.get_io().config_error_recovery_enable_tooltip = False
    imgui.get_current_context().debug_log_flags = 0  # it is asked to log, as one kind of answer is required, to nowhere


@contextmanager
def contained(doing: str, show: Callable[[Exception, str], None]) -> Iterator[None]:
    """Ends the block at any exception and calls show(exception, sentence).

    The sentence of an error that a user can cause is its own; another error of ours is logged, and named after what the
    block was `doing`.
    """
    stacks, frame = imgui.internal.ErrorRecoveryState(), _open_frame()
    if frame is not None:
        imgui.internal.error_recovery_store_state(stacks)
    try:
        yield
    except Exception as error:  # the boundary: nothing that fails inside ends the window
        if frame is not None and frame == _open_frame():  # work that waits for a compiler goes on in a later one
            imgui.internal.error_recovery_try_to_recover_state(stacks)
        show(error, sentence(error, doing))


def _open_frame() -> int | None:
    """The number of Dear ImGui's frame, None outside of one."""
    context = imgui.get_current_context()
    return context.frame_count if context is not None and context.within_frame_scope else None


def sentence(error: Exception, doing: str) -> str:
    """What to show of an error: its own sentence if a user can cause it, else the one that names its log."""
    return str(error) if isinstance(error, (UserError, KernelError)) else report(error, doing)


def report(error: Exception, doing: str) -> str:
    """Logs an error of ours and prints its traceback, once for each place where it is raised; returns the sentence."""
    frames = traceback.extract_tb(error.__traceback__)
    place = (doing, type(error), frames[-1].filename, frames[-1].lineno) if frames else (doing, type(error))
    if place not in _logged and len(_logged) < MAX_LOGGED:
        _logged[place] = log_internal_error(error, doing)
        traceback.print_exception(error, file=sys.stderr)
    return _logged.get(place) or f"internal error in {doing}: {type(error).__name__}"
