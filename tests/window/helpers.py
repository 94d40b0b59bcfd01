"""Shared by the window's tests: scenes, the window's size, waiting for a process."""

import time

FRACTAL = """title = "{title}"
picture = "fractal"
settings = {{ max_iterations = 40, samples = 3, view = {{ center = [-0.6, 0.0], height = 2.6 }} }}
"""
MOVING = """
[animation]
duration = 2.0
loop = true
keyframes = [
    { time = 0.0, set = { "color_offset" = 0.0, "view.height" = 2.6 } },
    { time = 1.0, interpolation = "linear", set = { "color_offset" = 0.5, "view.height" = 0.5 } },
]
"""
WIDTH, HEIGHT = 900, 520


def wait_for(condition, process, limit: float = 120.0):
    """Waits for condition() to be true, and returns its value; fails if the process exits or after `limit` seconds."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        assert process.poll() is None, process.communicate()
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("timeout")
