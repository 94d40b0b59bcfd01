"""Image: what a drawing returns. An array that shows itself, saves itself and knows how it was drawn.

Image is a subclass of numpy.ndarray. Its Drawing has the scene, samples and device, from which save() writes the recipe
into a PNG, and from which layers such as albedo and depth are drawn when they are first asked for.
"""

import json
import os
import re
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from renderer import pictures
from renderer.api.scenes import Scene
from renderer.errors import UserError
from renderer.export.render import RenderJob, RenderResult, render, tonemapped_blocks, write
from renderer.formats.images import png_bytes, write_exr, write_png_rows
from renderer.gpu import open_context
from renderer.images.tone_mapping import Encoding, ExposureMeter
from renderer.pictures.picture import Frame
from renderer.plain import IN_MEMORY, Json, format_value
from renderer.records import dataclass, field, replace
from renderer.scene.schema import to_table
from renderer.system.outputs import check_suffix, write_bytes, writing
from renderer.system.progress import Progress

__all__ = ["Image"]
ARRAY_FILE = re.compile(rf'"{IN_MEMORY.pattern}"')  # a temporary file of an array, in JSON
BITS = {8: "u1", 16: "u2"}  # bits of a PNG's channel -> dtype


@dataclass(frozen=True)
class Drawing:
    """The origin of an Image: `job` with the samples drawn, the device's name, and true if OpenGL drew it.

    `asked` is the spelling of the device that was asked for, on which layers are drawn.
    `linear` are the pixels of the whole picture, which a crop shares for its exposure. `prototype` is a frame of the
    kind that was drawn, on whose device tone mapping runs; None in another process.
    """

    job: RenderJob
    device: str
    is_gl: bool
    linear: np.ndarray
    prototype: Frame | None = None
    drawn_layers: dict[str, np.ndarray] = field(default_factory=dict)
    asked: str = "auto"

    @cached_property
    def meter(self) -> ExposureMeter:
        """The exposure meter of the whole picture: a crop is shown as bright as in it."""
        return ExposureMeter().add(self.linear)

    @cached_property
    def layers(self) -> dict[str, np.ndarray]:
        """The layers by name; drawn again, once, unless they were drawn with the picture."""
        if self.drawn_layers or not pictures.picture_class(self.job.scene.picture).layer_names:
            return self.drawn_layers
        picture, job = pictures.open_picture(self.job.scene, open_context(self.asked)), replace(self.job, layers=True)
        with Progress(job.samples * len(job.tiles), f"{job.scene.title}, layers") as progress:
            return render(picture, job, progress).layers

    @cached_property
    def mattes(self) -> dict[str, np.ndarray]:
        """The layers and Cryptomatte's; drawn again, once, unless the picture was drawn with `cryptomatte`."""
        scene = self.job.scene
        if scene.settings.cryptomatte:
            return self.layers
        scene = replace(scene, settings=replace(scene.settings, cryptomatte=True))
        return replace(self, job=replace(self.job, scene=scene), drawn_layers={}).layers

    def result(self, pixels: np.ndarray) -> RenderResult:
        """The RenderResult of (height, width, 4) pixels of this drawing, to be tone mapped or written."""
        prototype, linear = self.prototype, np.ascontiguousarray(pixels, "f4")
        if prototype is None:
            gpu = open_context()
            prototype = gpu.gl.texture((1, 1)) if self.is_gl else gpu.device.buffer((1, 1, 4))
        opaque = bool((linear[..., 3] >= 1).all())
        return RenderResult(linear, self.meter, opaque, self.job.samples, self.device, prototype)


class Image(np.ndarray):
    """A rendered picture: (height, width, 4) float32, linear Rec. 709 with alpha last, row 0 on top.

    An ndarray that knows its `scene`, the `samples` of every pixel, the name of the `device` that drew it, and its
    `layers`. It shows itself in notebooks. Crops (`image[:24]`), flipped, scaled and computed pictures of three axes
    and four channels are Images too, with the exposure of the whole; other results are plain arrays.
    """

    _drawing: Drawing | None
    _is_whole: bool  # the picture as it was drawn, with its recipe and layers; False for a part of it
    _shown: bool

    @classmethod
    def of(cls, drawing: Drawing, is_whole: bool = True) -> "Image":
        """The Image of a drawing's pixels."""
        image = drawing.linear.view(cls)
        image._drawing, image._is_whole = drawing, is_whole
        return image

    def __array_finalize__(self, source: object) -> None:
        self._drawing = getattr(source, "_drawing", None)
        self._is_whole = self._shown = False

    def __getitem__(self, key: Any) -> Any:
        return _as_image(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._is_whole = False
        super().__setitem__(key, value)

    def __array_wrap__(self, array: np.ndarray, context: object = None, return_scalar: bool = False) -> Any:
        if array is self:  # computed in place
            self._is_whole = False
            return self
        return array[()] if return_scalar else _as_image(array.view(Image) if array.ndim else array, self)

    def copy(self, order: Literal["K", "A", "C", "F"] | None = "C") -> "Image":
        """A copy that keeps the drawing, and counts as unchanged if this Image does."""
        out = super().copy(order)
        out._is_whole = self._is_whole
        return out

    def __reduce__(self) -> tuple[object, ...]:
        if self._drawing is None:
            return _unpickled_array, (np.asarray(self),)
        job, scene = self._drawing.job, self._drawing.job.scene
        tables = pictures.make_recipe(scene, Path("."))["scene"]  # a scene's read-only tables cannot be pickled
        tables |= {"settings": to_table(scene.settings), "tone": pictures.tone_table(scene)}
        facts = {"size": job.size, "samples": job.samples, "time": job.time, "path": str(scene.path)}
        facts |= {"device": self._drawing.device, "is_gl": self._drawing.is_gl, "is_whole": self._is_whole}
        return _unpickled, (np.asarray(self), np.asarray(self._drawing.linear), json.dumps(tables), facts)

    def _known(self) -> Drawing:
        if self._drawing is None:
            raise UserError("this array was not drawn: renderer.render() returns Images")
        return self._drawing

    def _pixels(self) -> np.ndarray:
        if self.ndim != 3 or self.shape[2] != 4 or not self.size:
            raise UserError(f"an array {self.shape} is no picture; it must be (height, width, 4)")
        return np.asarray(self)

    @property
    def scene(self) -> Scene:
        """The scene that was drawn, with the `time` and `samples` of the picture; key frames move its settings then."""
        job = self._known().job
        assert isinstance(job.scene, Scene)
        return replace(job.scene, time=job.time, samples=job.samples)

    @property
    def samples(self) -> int:
        """Samples of every pixel."""
        return self._known().job.samples

    @property
    def device(self) -> str:  # type: ignore[override]  # the array API's "cpu", which every ndarray says
        """The name of the device that drew it."""
        return self._known().device

    @property
    def layers(self) -> dict[str, np.ndarray]:
        """Arrays by name, such as albedo, normal, depth, id, variance and samples; {} for a picture without layers.

        `depth` is the distance along the ray, infinite without a hit; `id` the number of the primitive (the triangle,
        sphere, ...) plus 1, 0 without a hit: not of the shape, of its instance or of its material, which `mask` shows.
        The picture is drawn again for them at the first use, unless `render` was called with `layers=True`.

        Raises:
            UserError: this is a crop, or was computed: only the whole picture has layers.
        """
        if not self._is_whole:
            raise UserError("a crop or a computed picture has no layers; the whole picture has")
        return self._known().layers

    def mask(self, name: str) -> np.ndarray:
        """Coverage (height, width) float32, 0 to 1, of an object or else a material: its matte of Cryptomatte.

        An object has its `name` or where the scene has it: "spheres[2]", "instances[0]"; a model's node has the node's.
        The picture is drawn again for all of them at the first use, unless it was drawn with `cryptomatte=True`.

        Raises:
            UserError: a name that the scene has not, a picture that is not ray traced, or no whole picture.
        """
        from renderer.raytracing.cryptomatte import coverage

        drawing = self._known()
        job = drawing.job
        if job.scene.picture != "raytrace":
            raise UserError(f"mask: a {job.scene.picture} picture has no objects; a raytrace picture has")
        if not self._is_whole:
            raise UserError("a crop or a computed picture has no masks; the whole picture has")
        return coverage(job.settings(), name, lambda: drawing.mattes)

    def displayed(self, dtype: Literal["u1", "u2"] = "u1") -> np.ndarray:
        """(height, width, 4) sRGB pixels by the scene's tone mapping, uint8 or (dtype="u2") uint16."""
        if np.dtype(dtype) not in (np.uint8, np.uint16):
            raise UserError(f"dtype is {dtype}; allowed are u1, u2")
        encoding = Encoding(int(np.iinfo(dtype).max))
        return np.concatenate(list(tonemapped_blocks(self._known().result(self._pixels()), self.scene, encoding)))

    def save(self, path: str | Path, bits: int = 8) -> None:
        """Writes .png (tone mapped, 8 or 16 `bits` a channel) or .exr (linear, with all layers).

        The whole picture carries its recipe, from which `renderer.verify` draws it again; a crop or a
        computed picture has none. Meshes and textures from arrays are written to a folder NAME.arrays beside the
        picture, which the recipe names.

        Raises:
            UserError: the path ends in another suffix, or the bits are others.
        """
        path, pixels, drawing = Path(path), self._pixels(), self._known()
        suffix = check_suffix("save", path, ".png", ".exr")
        if bits not in BITS or isinstance(bits, bool):
            raise UserError(f"save {path}: bits is {format_value(bits)}; allowed are 8, 16")
        if suffix == ".png" and not np.isfinite(pixels).all():
            count = f"{np.count_nonzero(~np.isfinite(pixels).all(axis=2))} pixels"
            warnings.warn(f"save {path}: {count} are NaN or infinite, which .exr keeps and .png cannot", stacklevel=2)
        if self._is_whole:
            result = drawing.result(pixels)
            result.layers = drawing.layers if suffix == ".exr" else {}
            write(path, result, _with_arrays_beside(drawing.job, path), bits)
        elif suffix == ".exr":
            write_exr(path, {"RGBA": pixels})
        else:
            shown = self.displayed("u2" if bits == 16 else "u1")
            channels = 3 if (pixels[..., 3] >= 1).all() else 4
            write_png_rows(path, (*shown.shape[:2], channels), shown.dtype, [shown[..., :channels]])

    def _repr_png_(self) -> bytes:
        return png_bytes(self.displayed())

    def _ipython_display_(self) -> None:
        """Shows the picture, except the first time if `render` has shown it while drawing it (`_shown`)."""
        if self._drawing is None or self.ndim != 3 or self.shape[2] != 4:
            raise NotImplementedError  # so IPython prints the array
        if self._shown:
            self._shown = False
            return
        from IPython.display import display

        display({"image/png": self._repr_png_()}, raw=True)


def _with_arrays_beside(job: RenderJob, path: Path) -> RenderJob:
    """The job, whose temporary files of arrays are copied into a folder beside the picture at `path`."""
    text = json.dumps(to_table(job.scene.settings))
    files = {json.loads(found[0]) for found in ARRAY_FILE.finditer(text)}
    if not files:
        return job
    folder = Path(os.path.abspath(path)).with_suffix(".arrays")
    with writing(folder):
        folder.mkdir(exist_ok=True)
    for file in files:
        copy = folder / Path(file).name
        if not copy.exists():
            write_bytes(copy, Path(file).read_bytes())
        text = text.replace(json.dumps(file), json.dumps(str(copy)))
    settings = pictures.picture_class(job.scene.picture).read_settings(json.loads(text), "settings", None)
    return replace(job, scene=replace(job.scene, settings=settings))


def _as_image(result: Any, source: Image | None = None) -> Any:
    """The result as an Image if it is a picture, which knows what its source knows; else as a plain array."""
    if not isinstance(result, Image):
        return result
    if result.ndim != 3 or result.shape[2] != 4 or result.dtype != np.float32:
        return np.asarray(result)
    if source is not None:
        result._drawing = source._drawing
    return result


def _unpickled_array(array: np.ndarray) -> Image:
    return array.view(Image)


def _unpickled(array: np.ndarray, linear: np.ndarray, tables: str, facts: Json) -> Image:
    scene = Scene(**vars(pictures.scene_of_table(json.loads(tables), Path(facts["path"]), any_file=True)))
    job = RenderJob(scene, facts["size"], facts["samples"], facts["time"])
    image = Image.of(Drawing(job, facts["device"], facts["is_gl"], linear), facts["is_whole"])
    if facts["is_whole"]:
        return image
    part = array.view(Image)
    part._drawing = image._drawing
    return part
