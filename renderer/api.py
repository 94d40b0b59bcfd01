"""The public API: scenes to NumPy arrays. `import renderer` offers these names; `assets/guides/api.md` shows them."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import UserError
from renderer.export.plan import DEFAULT_SIZE
from renderer.export.render import (
    MAX_UNTILED_PIXELS,
    RenderJob,
    RenderResult,
    TiledImage,
    tonemapped_blocks,
    write,
)
from renderer.export.render import render as render_job
from renderer.flames.interpolation import KeyFrame
from renderer.formats.images import png_bytes
from renderer.gpu import open_context
from renderer.images.tone_mapping import Encoding
from renderer.paths import ensure_cache
from renderer.pictures import load
from renderer.pictures import open_picture as open_picture_on
from renderer.pictures.flame import scene_of_keyframe
from renderer.pictures.picture import AnyPicture
from renderer.scene.animation import without_tracks
from renderer.scene.scene import Scene
from renderer.scene.schema import replace_path
from renderer.system.progress import Progress

__all__ = ["Image", "load", "open_picture", "refine", "render"]


class Image(np.ndarray):
    """A rendered picture: (height, width, 4) float32, linear Rec. 709 with alpha last, row 0 on top.

    An ndarray that knows its `scene`, its `samples` per pixel and the device it was `drawn_on`. It shows itself in
    notebooks. Indexing and arithmetic give plain arrays, which know none of this.
    """

    _rendered: RenderResult
    _job: RenderJob
    _shown: bool

    @classmethod
    def _of(cls, rendered: RenderResult, job: RenderJob) -> "Image":
        image = np.asarray(rendered.linear[:]).view(cls)
        image._rendered, image._job, image._shown = rendered, job, False
        return image

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __array_wrap__(self, array: np.ndarray, context: object = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    @property
    def scene(self) -> Scene:
        """The scene that was drawn."""
        return self._job.scene

    @property
    def samples(self) -> int:
        """Samples of every pixel."""
        return self._rendered.samples

    @property
    def drawn_on(self) -> str:
        """The name of the device that drew it."""
        return self._rendered.device

    def displayed(self, dtype: str = "u1") -> np.ndarray:
        """(height, width, 4) sRGB pixels by the scene's tone mapping, uint8 or (dtype="u2") uint16."""
        encoding = Encoding(int(np.iinfo(dtype).max))
        return np.concatenate(list(tonemapped_blocks(self._rendered, self._job.scene, encoding)))

    def save(self, path: str | Path, bits: int = 8) -> None:
        """Writes .png (tone mapped, `bits` a channel, with its recipe) or .exr (linear).

        Raises:
            UserError: the path ends in another suffix.
        """
        path = Path(path)
        if path.suffix.lower() not in (".png", ".exr"):
            raise UserError(f"save {path}: unknown suffix {path.suffix or '(none)'}; allowed are .png, .exr")
        write(path, self._rendered, self._job, bits)

    def _repr_png_(self) -> bytes:
        return png_bytes(self.displayed())

    def _ipython_display_(self) -> None:
        """Shows the picture, except the first time if `render` has shown it while drawing it (`_shown`)."""
        if self._shown:
            self._shown = False
            return
        from IPython.display import display

        display({"image/png": self._repr_png_()}, raw=True)


def render(
    source: str | Path | Scene | KeyFrame,
    *,
    size: tuple[int, int] | None = None,
    samples: int | None = None,
    time: float | None = None,
    device: str = "auto",
    **settings: object,
) -> Image:
    """Draws a scene: a bundled scene's name, a file that `rayfold export` takes, a Scene, or a flame (flames.KeyFrame).

    `size` is (width, height) in pixels, `samples` the draws that are averaged, `time` seconds into an animated scene;
    each defaults to what the scene says. `device` is "auto", "cpu", "cuda:0", "opencl:0:0". Other keywords replace the
    scene's settings (`max_depth=4`). The same seed gives the same picture. In a notebook the picture shows itself and
    refines while it is drawn.

    Raises:
        UserError: a setting or size that is not allowed; InputError: a bad file; UnavailableError: a missing device.
    """
    job, picture = _prepare(source, size, samples, time, device, settings)
    if _in_notebook() and job.size[0] * job.size[1] <= MAX_UNTILED_PIXELS:
        return _show_while_drawn(job, picture)
    title = f"{job.scene.title}, {job.size[0]} x {job.size[1]}"
    with Progress(job.samples * len(job.tiles()), title) as progress:
        return Image._of(render_job(picture, job, progress), job)


def refine(
    source: str | Path | Scene | KeyFrame,
    *,
    size: tuple[int, int] | None = None,
    samples: int | None = None,
    time: float | None = None,
    device: str = "auto",
    **settings: object,
) -> Iterator[Image]:
    """Yields the picture of `render` as it gets better: after 1, 2, 4, ... samples, and at last after all of them."""
    job, picture = _prepare(source, size, samples, time, device, settings)
    yield from _refined(job, picture)


def open_picture(scene: Scene, device: str = "auto") -> AnyPicture:
    """The Picture of a scene on a device, for draws of one's own: `picture.draw(settings, size, time)`."""
    ensure_cache()
    return open_picture_on(scene, open_context(device))


def _prepare(
    source: str | Path | Scene | KeyFrame,
    size: tuple[int, int] | None,
    samples: int | None,
    time: float | None,
    device: str,
    settings: dict[str, Any],
) -> tuple[RenderJob, AnyPicture]:
    if isinstance(source, KeyFrame):
        source = scene_of_keyframe(source)
    scene = source if isinstance(source, Scene) else load(Path(source))
    for key, value in settings.items():
        settings_asked = replace_path(scene.settings, [key], value, "render")
        scene = replace(without_tracks(scene, key), settings=settings_asked)
    size = size or scene.size or DEFAULT_SIZE
    if not (len(size) == 2 and all(isinstance(n, int) and 1 <= n <= 1 << 17 for n in size)):
        raise UserError(f"size is {size}; it must be (width, height), each 1 to {1 << 17}")
    if samples is not None and not (isinstance(samples, int) and samples >= 1):
        raise UserError(f"samples is {samples!r}; it must be a whole number of at least 1")
    picture = open_picture(scene, device)
    samples = samples or scene.samples or picture.sample_count(scene.settings, size)
    return RenderJob(scene, size, samples, scene.time if time is None else time), picture


def _refined(job: RenderJob, picture: AnyPicture) -> Iterator[Image]:
    """The job's image at each power of two of its samples, and at last after all of them."""
    count = 0
    picture.restart()
    while count < job.samples:
        goal = min(2 * count or 1, job.samples)
        while count < goal:
            frame = picture.draw(job.settings(), job.size, job.time)
            count += 1
        image = TiledImage(job.size)
        image.merge_tile((0, 0, *job.size), frame.read(), {})
        yield Image._of(image.result(count, frame.device.name, frame), job)


def _show_while_drawn(job: RenderJob, picture: AnyPicture) -> Image:
    from IPython.display import display

    handle = None
    for image in _refined(job, picture):
        picture_now = {"image/png": image._repr_png_()}
        if handle is None:
            handle = display(picture_now, raw=True, display_id=True)
        else:
            handle.update(picture_now, raw=True)
    image._shown = True
    return image


def _in_notebook() -> bool:
    """True if this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")
