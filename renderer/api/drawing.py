"""Draws scenes: `render` once, `refine` as the picture gets better, `open` for many pictures of one scene.

All of them take what scenes.as_scene() takes, and keywords that replace settings; they return Images (image.py). The
work is done by export/render.py, as for `rayfold export`, so that both give the same pixels.
"""

import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Self

import numpy as np

from renderer.api import scenes
from renderer.api.image import Drawing, Image
from renderer.api.scenes import Scene, Source, as_scene, checked_count, checked_size, checked_time
from renderer.errors import UserError
from renderer.export.plan import DEFAULT_SIZE
from renderer.export.render import InterruptHandler, RenderJob, draw
from renderer.export.render import render as render_job
from renderer.gpu import open_context
from renderer.gpu.gl import Texture
from renderer.paths import ensure_cache
from renderer.pictures import open_picture as open_picture_on
from renderer.pictures.picture import AnyPicture, Frame
from renderer.system.progress import OnProgress, Progress, checked_progress

__all__ = ["OnProgress", "Renderer", "open", "open_picture", "refine", "render"]


class Renderer:
    """A scene kept warm on a device: its geometry and kernels stay between pictures. `renderer.open` makes it.

    A context manager; `close` frees the device's memory. One thread uses it at a time. If OpenGL draws the scene, all
    calls must come from the thread of the first one.
    """

    def __init__(self, source: Source, device: str = "auto") -> None:
        """Opens the scene's picture on the device; see `render` for both."""
        ensure_cache()
        self.scene: Scene = as_scene(source)
        if not isinstance(device, str):
            raise UserError(f"device is {device!r}; it must be a text such as auto, cpu or cuda:0")
        self._asked, self._gpu = device, open_context(device)
        self._picture: AnyPicture | None = open_picture_on(self.scene, self._gpu)
        self._lock = threading.Lock()  # draw_job() of a second thread waits; refine() takes no lock
        self._is_prepared = False  # prepare_export() has run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees the scene's memory on the device. Images that were drawn stay valid."""
        self._picture = None

    def render(
        self,
        *,
        size: tuple[int, int] | None = None,
        samples: int | None = None,
        time: float | None = None,
        tone: object = None,
        layers: bool = False,
        progress: OnProgress | None = None,
        **settings: object,
    ) -> Image:
        """Draws the scene with these settings, as `renderer.render` does."""
        job = self.job(size, samples, time, tone, settings)
        if _in_notebook() and not layers and progress is None and len(job.tiles) == 1:
            return _show_while_drawn(self._refined(job))
        job = replace(job, layers=layers)
        return self.draw_job(job, progress)

    def refine(
        self,
        *,
        size: tuple[int, int] | None = None,
        samples: int | None = None,
        time: float | None = None,
        tone: object = None,
        **settings: object,
    ) -> Iterator[Image]:
        """Yields the picture of `render` after 1, 2, 4, ... samples, and at last after all of them."""
        yield from self._refined(self.job(size, samples, time, tone, settings))

    def job(self, size: object, samples: object, time: object, tone: object, settings: dict[str, object]) -> RenderJob:
        """The job of a picture; UserError or InputError for values that are not allowed."""
        scene = scenes.with_settings(self.scene, settings, tone) if settings or tone is not None else self.scene
        checked = checked_size(size if size is not None else scene.size or DEFAULT_SIZE)
        count = None if samples is None else checked_count("samples", samples)
        count = count or scene.samples or self._open_picture().sample_count(scene.settings, checked)
        return RenderJob(scene, checked, count, scene.time if time is None else checked_time(time), is_command=False)

    def draw_job(self, job: RenderJob, on_progress: OnProgress | None = None) -> Image:
        """Draws a job at once, or in tiles where it is large."""
        on_progress = checked_progress(on_progress)
        picture, total = self._open_picture(), job.samples * len(job.tiles)
        title = f"{job.scene.title}, {job.size[0]} x {job.size[1]}"
        # Not entered, it does not catch Ctrl-C, which raises KeyboardInterrupt: only the callback asks it to stop.
        stop = InterruptHandler()
        job, progress = replace(job, stop=stop), Progress(total, title, on_progress, stop.request)
        with self._lock, progress:
            if len(job.tiles) > 1:
                done = render_job(picture, job, progress)
                return self._image(job, done.prototype, done.samples, np.asarray(done.linear[:]), done.layers)
            # render_job() does this itself. Another tone than the first compiles when it is first used.
            if not self._is_prepared:
                picture.prepare_export(job.scene.tone)
                self._is_prepared = True
            frame, samples = draw(picture, job, None, progress)
            layers = picture.layers(job.settings(), job.size) if job.layers else {}
            return self._image(job, frame, samples, frame.read(), layers)

    def _image(
        self, job: RenderJob, frame: Frame, samples: int, linear: np.ndarray, layers: dict[str, np.ndarray]
    ) -> Image:
        """The Image of the samples drawn; warns if OpenGL drew them though another device was asked for."""
        is_gl = isinstance(frame, Texture)
        if isinstance(frame, Texture) and self._asked != "auto" and not (frame.gl.software and self._asked == "cpu"):
            text = f"OpenGL on {frame.device.name}, not on the device {self._asked}"
            # stacklevel 5: at the line that calls renderer.render()
            warnings.warn(f"a picture of the kind {self.scene.picture} is drawn by {text}", stacklevel=5)
        job = replace(job, samples=samples, layers=False, stop=None)
        return Image.of(Drawing(job, frame.device.name, is_gl, linear, frame, layers, self._asked))

    def _open_picture(self) -> AnyPicture:
        if self._picture is None:
            raise UserError(f"{self.scene.title}: this Renderer is closed")
        if "gl" in vars(self._gpu):  # a cached property: only if GL was opened
            self._gpu.gl.check_thread()
        return self._picture

    def _refined(self, job: RenderJob) -> Iterator[Image]:
        """The job's image at each power of two of its samples, and at last after all of them."""
        picture, count = self._open_picture(), 0
        picture.restart()  # no sample of an earlier picture counts
        while count < job.samples:
            goal = min(2 * count or 1, job.samples)
            while count < goal:
                frame = picture.draw(job.settings(), job.size, job.time)
                count += 1
            yield self._image(job, frame, count, frame.read(), {})


def render(
    source: Source,
    *,
    size: tuple[int, int] | None = None,
    samples: int | None = None,
    time: float | None = None,
    device: str = "auto",
    tone: object = None,
    layers: bool = False,
    progress: OnProgress | None = None,
    **settings: object,
) -> Image:
    """Draws a scene: a bundled scene's name, a file that `rayfold export` takes, a Scene, a table, a Mesh, or a flame.

    `size` is (width, height) in pixels, `samples` the draws that are averaged, `time` seconds into an animated scene;
    each defaults to what the scene says. `device` is "auto", "cpu", "cuda:0", "opencl:0:0". `tone` is a table of the
    tone mapping, such as {"ev": 1}, or a curve's name; with `layers` the albedo, normals and others are drawn at once.
    `progress(done, total)` is called after each step; if it returns False or 0, render returns the samples so far.

    Other keywords replace the scene's settings, checked together: `max_depth=4`, `camera={"position": [0, 1, 5]}`, and
    by dotted names `**{"materials.0.color": (1, 0, 0)}`. The same seed gives the same picture. In a notebook the
    picture shows itself and refines while it is drawn.

    Raises:
        UserError: a setting or size that is not allowed; InputError: a bad file; UnavailableError: a missing device.
    """
    with Renderer(source, device) as opened:
        return opened.render(
            size=size, samples=samples, time=time, tone=tone, layers=layers, progress=progress, **settings
        )


def refine(
    source: Source,
    *,
    size: tuple[int, int] | None = None,
    samples: int | None = None,
    time: float | None = None,
    device: str = "auto",
    tone: object = None,
    **settings: object,
) -> Iterator[Image]:
    """Yields the picture of `render` as it gets better: after 1, 2, 4, ... samples, and at last after all of them."""
    with Renderer(source, device) as opened:
        yield from opened.refine(size=size, samples=samples, time=time, tone=tone, **settings)


def open(source: Source, device: str = "auto") -> Renderer:
    """Opens a scene for many pictures: `with renderer.open("cornell") as r: r.render(camera=..., time=...)`.

    Geometry and kernels are made once, so each further picture takes as long as its samples.
    """
    return Renderer(source, device)


def open_picture(scene: Source, device: str = "auto") -> AnyPicture:
    """The Picture of a scene on a device, for calls of `picture.draw(settings, size, time)`."""
    ensure_cache()
    return open_picture_on(as_scene(scene), open_context(device))


def _show_while_drawn(images: Iterator[Image]) -> Image:
    """Shows the images in the notebook, each in place of the one before; returns the last."""
    from IPython.display import display

    handle = None
    for image in images:
        picture_now = {"image/png": image._repr_png_()}
        if handle is None:
            handle = display(picture_now, raw=True, display_id=True)
        else:
            handle.update(picture_now, raw=True)
    image._shown = True  # so _ipython_display_() of image.py does not show it again
    return image


def _in_notebook() -> bool:
    """True if this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")
