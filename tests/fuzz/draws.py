"""Draws what a reader accepted: a few samples of 16 x 12 pixels, in the process that reads.

What a picture refuses must have been refused when it was read. A UserError of a draw is a finding therefore, unless it
is about the content of a file that the scene names, or about this machine.
"""

import os
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from renderer.errors import UnavailableError, UserError
from tests.fuzz.host_device import HostDevice

SIZE = (16, 12)
INK_GRID = 32  # cells along a side: the host makes a matrix that grows with the cube; maxima.py draws the largest


class RefusedWhenDrawn(Exception):
    """A scene was read without an error, and its picture refused it."""


class NotFinite(Exception):
    """A picture has NaN."""


@cache
def context() -> Any:
    """A device that computes nothing; with RAYFOLD_FUZZ_DEVICE=real the devices of this machine."""
    from renderer.gpu import open_context

    found = open_context()
    if os.environ.get("RAYFOLD_FUZZ_DEVICE") != "real":
        found.devices = [HostDevice()]
    return found


@cache
def picture_of(kind: str) -> Any:
    from renderer.pictures import picture_class

    picture = picture_class(kind)(context())
    if hasattr(picture, "prefer_generic") and not isinstance(context().device, HostDevice):
        picture.prefer_generic(1 << 20)
    return picture


def draw(scene: Any, times: tuple[float, ...] = (0.0,)) -> None:
    """Draws the picture of a scene at these times; raises RefusedWhenDrawn and NotFinite."""
    from renderer.formats.linked import linked_files
    from renderer.scene.animation import settings_at

    for time in times:
        try:
            settings = settings_at(scene, time)
            picture = picture_of(scene.picture)
            if scene.picture == "toy":
                picture._shared.source = None  # it keeps its program by its path, which all inputs share
            if scene.picture == "raytrace" and isinstance(context().device, HostDevice):
                settings = replace(settings, builder="host_sah")  # the others ask the device how far they are
            if scene.picture == "ink" and isinstance(context().device, HostDevice):
                settings = replace(settings, grid=min(settings.grid, INK_GRID))
            picture.sample_count(settings, SIZE)
            picture.restart()
            frame = picture.draw(settings, SIZE, time).read()
            context().gl.ctx.gc()  # as each frame of a window does
        except UnavailableError:
            raise
        except UserError as error:
            if any(str(file) in str(error) for file in scene.files.union(*map(linked_files, scene.files))):
                raise
            raise RefusedWhenDrawn(str(error)).with_traceback(error.__traceback__) from error
        if np.isnan(frame).any():
            raise NotFinite(f"{int(np.isnan(frame).any(-1).sum())} pixels of {frame.shape} are NaN")
