"""The boundary between the window and what fails inside it: a panel, a region, an action, a dropped or edited file.

Every part of the window that can fail runs inside contained(): an exception ends that part for this frame and becomes a
sentence that the part shows. Dear ImGui's stacks (windows, IDs, tables, styles) are then as they were when the block
began, as its own error recovery restores them, so that the rest of the frame is drawn.
"""

import sys
import traceback
from collections.abc import Callable
from typing import Any

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


class Containment:
    """The context manager of contained(). It is a class, not a generator, as a frame enters some forty of them."""

    __slots__ = ("_doing", "_frame", "_refusals", "_show", "_stacks")

    def __init__(self, doing: str, show: Callable[[Exception, str], None], refusals: tuple[type[Exception], ...]):
        self._doing, self._show, self._refusals = doing, show, refusals

    def __enter__(self) -> None:
        self._frame = _open_frame()
        if self._frame is not None:
            self._stacks = imgui.internal.ErrorRecoveryState()
            imgui.internal.error_recovery_store_state(self._stacks)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, Exception):
            return False
        if (
            self._frame is not None and self._frame == _open_frame()
        ):  # work that waited for a compiler is in a later one
            imgui.internal.error_recovery_try_to_recover_state(self._stacks)
        is_expected = self._refusals and isinstance(error, self._refusals)
        self._show(error, str(error) if is_expected else sentence(error, self._doing))
        return True  # the boundary: nothing that fails inside ends the window


def contained(
    doing: str, show: Callable[[Exception, str], None], refusals: tuple[type[Exception], ...] = ()
) -> Containment:
    """Ends the block of a `with` at any exception and calls show(exception, sentence).

    The sentence of an error that a user can cause, and of `refusals`, is its own; another error of ours is logged, and
    named after what the block was `doing`.
    """
    return Containment(doing, show, refusals)


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
