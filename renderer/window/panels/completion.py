"""Waiting for compute devices; a thread of its own waits for their queues, so that the window stays responsive."""

from collections.abc import Callable
from typing import Any

Clock = Callable[[], float]  # seconds


def finish_time(device: Any, now: Clock) -> float:
    """Blocks until the device has finished; returns the timestamp."""
    device.finish()
    return now()


def responds(device: Any) -> bool:
    """Whether a device still works after an error."""
    try:
        device.finish()
    except Exception:  # each driver raises exceptions of its own for a lost device
        return False
    return True
