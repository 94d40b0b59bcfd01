"""Draws the passes of a toy: buffers with feedback frame by frame, then the image; row 0 of all textures is the bottom.

In a frame the buffers A to D are drawn in this order. A pass reads of a buffer what was drawn last: of itself and of
later ones the frame before. Buffers are zero before frame 0.
"""

import math
import time
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from renderer.errors import InputError
from renderer.formats.images import read_exr, read_pixels
from renderer.gpu.gl import CubeTexture, GlContext, Pass, Sampled, Texture
from renderer.images.algorithm_view import AlgorithmView, StepPicture
from renderer.images.reduction_passes import magnified
from renderer.plain import Json
from renderer.system.progress import Progress
from renderer.toys.glsl import compile_pass
from renderer.toys.program import ALIASES, BUFFERS, IMAGE, KEYBOARD, NOISE, Channel, Program

Size = tuple[int, int]
SAMPLE_RATE = 44100.0  # Hz, iSampleRate
KEYS = 256  # codes of keys, as JavaScript's keyCode
NOISE_SIDE = 256
NOISE_SHIFT = (239, 37)  # rows, columns by which red is green: shaders read two layers of 3D noise in one texel
KEPT_FRAMES = 30  # a window that changes the size draws so few frames again; later it scales the buffers
# By the faces in a row and a column: the cells (column, row) of +x, -x, +y, -y, +z, -z.
CUBE_LAYOUTS = {
    (4, 3): ((2, 1), (0, 1), (1, 0), (1, 2), (1, 1), (3, 1)), (3, 4): ((2, 1), (0, 1), (1, 0), (1, 2), (1, 1), (1, 3)),
    (6, 1): tuple((k, 0) for k in range(6)), (1, 6): tuple((0, k) for k in range(6)),
}  # fmt: skip
WINDOW_FRAMES, WINDOW_SECONDS = 8, 0.1  # most frames, and seconds on software GL, that a draw catches up in a window


class Input(NamedTuple):
    """Inputs of a frame: the mouse, the keyboard, the date, and the values of uniforms."""

    mouse: tuple[float, float, float, float]  # x, y, and x, y of the click, in fractions of the picture's size
    keys: tuple[int, ...]  # codes of the keys that are held
    toggled: tuple[int, ...]  # codes of the keys that were pressed an odd number of times
    date: tuple[float, float, float, float]  # year, month from 0, day, and seconds of the day, at time 0
    rate: float  # frames a second
    uniforms: tuple[tuple[str, object], ...]  # name and value


class ToyPasses:
    """The compiled passes of a program, its textures, and the frame to which its buffers are drawn."""

    def __init__(self, gl: GlContext, program: Program) -> None:
        self.gl, self.program = gl, program
        self._passes: dict[str, Pass] = {name: compile_pass(gl, program, tab) for name, tab in program.passes.items()}
        # The source of a cube map may be six paths, a line each.
        images = {c for row in program.channels.values() for c in row if c.source.split("\n")[0] in program.images}
        self._images = {(c.source, c.is_cube): self._read_image(c) for c in images}
        self._keyboard: Texture | None = None
        rows = program.channels.values()
        self._mipmapped = {channel.source for row in rows for channel in row if channel.filter == "mipmap"}
        self._buffers: dict[str, Texture] = {}
        self._spare: dict[str, Texture] = {}  # each buffer's target in the next frame, after which the two are swapped
        self._held: tuple[int, ...] = ()  # the keys of the frame before
        self._drawn: tuple[Size, Input] | None = None  # size and input of the last draw of the buffers
        self.frame = -1  # the frame to which the buffers are drawn
        self._first = 0  # the number of the next frame after the buffers are first cleared

    def _read_image(self, channel: Channel) -> Texture | CubeTexture:
        if channel.is_cube:
            return CubeTexture(self.gl, cube_faces(channel.source.split("\n")))
        if channel.source.lower().endswith(".exr"):
            return self.gl.image(channel.source, read_exr(Path(channel.source))[::-1], "f4").build_mipmaps()
        return self.gl.image(channel.source, read_pixels(channel.source)[::-1], "f1").build_mipmaps()

    @cached_property
    def _noise(self) -> Texture:
        """256 x 256 random texels, so that one read gives two layers of 3D noise: green and red, or alpha and blue."""
        random = np.random.default_rng(1).integers(0, 256, (NOISE_SIDE, NOISE_SIDE, 2), "u1")
        shifted = np.roll(random, (-NOISE_SHIFT[0], -NOISE_SHIFT[1]), (0, 1))
        texels = np.stack([shifted[..., 0], random[..., 0], shifted[..., 1], random[..., 1]], -1)
        return self.gl.texture((NOISE_SIDE, NOISE_SIDE), dtype="f1").write(texels).build_mipmaps()

    @cached_property
    def _black(self) -> Texture:
        return self.gl.texture((1, 1)).write(np.array([0, 0, 0, 1], "f4"))

    # Frames

    def adopt(self, before: "ToyPasses", frame: int) -> None:
        """Goes on from the buffers of an edited program's passes, by name; new buffers are zero at `frame`."""
        if before._drawn is None or not self.program.buffers:
            self._first = frame
            return
        self._clear(before._drawn[0])
        self._buffers |= {name: texture for name, texture in before._buffers.items() if name in self._buffers}
        self.frame, self._held, self._drawn = before.frame, before._held, before._drawn

    def advance(self, size: Size, frame: int, input_: Input, is_live: bool, progress: Progress | None = None) -> bool:
        """Draws the buffers' frames up to `frame`, from 0 if they belong to another size, input or later frame.

        In a window (`is_live`) the buffers go on through other inputs, are scaled to other sizes, and a call draws few
        frames. Returns false if frames are missing. All but the last frame advance `progress`.
        """
        if not self.program.buffers:
            return True
        if self._drawn is None or frame < self.frame:
            self._clear(size)
            # From frame 0, or from `_first` if an edit has just added the first buffer (adopt())
            self.frame, self._first = min(self._first, frame) - 1, 0
        elif size != self._drawn[0]:
            resize = self._scale if is_live and self.frame > KEPT_FRAMES else self._clear
            resize(size)
        elif input_ != self._drawn[1] and not is_live:
            self._clear(size)
        is_other = self._drawn != (size, input_) or self.frame != frame
        if is_other and not self.program.has_feedback:
            self.frame = frame - 1  # earlier frames leave nothing behind: only the last one is drawn
        self._drawn = size, input_
        most, until = (WINDOW_FRAMES, time.perf_counter() + WINDOW_SECONDS) if is_live else (frame + 1, math.inf)
        count = min(frame - self.frame, most)
        if progress is not None:
            progress.parts = max(count, 1)
        for k in range(count):
            self._draw_frame(size, self.frame + 1, input_)
            if progress is not None and k < count - 1:
                progress.advance()
            if is_live and self.gl.software:
                self.gl.finish()
                if time.perf_counter() > until:
                    break
        return self.frame >= frame

    def _clear(self, size: Size) -> None:
        zeros = np.zeros((size[1], size[0], 4), "f4")
        self._buffers = {name: self.gl.texture(size).write(zeros).build_mipmaps() for name in self.program.buffers}
        self._spare = {name: self.gl.texture(size) for name in self.program.buffers}
        self.frame, self._held = -1, ()

    def _scale(self, size: Size) -> None:
        """Scales the buffers to another size."""
        scale = self.gl.render_pass("images/toy_display.frag", MODE=2)  # copies, without a conversion of colors
        before, frame, held = self._buffers, self.frame, self._held
        self._clear(size)
        self.frame, self._held = frame, held
        for name, texture in before.items():
            scale(self._buffers[name], image=Sampled(texture, "linear"), skipped=(0, 0),
                  inverse_size=(1 / size[0], 1 / size[1]))  # fmt: skip

    def _draw_frame(self, size: Size, frame: int, input_: Input) -> None:
        for name in self.program.buffers:
            self._draw_pass(name, self._spare[name], size, frame, frame / input_.rate, input_)
            self._buffers[name], self._spare[name] = self._spare[name], self._buffers[name]
            if name in self._mipmapped:
                self._buffers[name].build_mipmaps()
        self.frame, self._held = frame, input_.keys

    def draw_image(self, target: Texture, origin: Size, size: Size, seconds: float, frame: int, input_: Input) -> None:
        """Draws the image of `size` at a time, whose texel (0, 0) is `origin`, over the target."""
        self._draw_pass(IMAGE, target, size, frame, seconds, input_, origin)

    def _draw_pass(
        self, name: str, target: Texture, size: Size, frame: int, seconds: float, input_: Input, origin: Size = (0, 0)
    ) -> None:
        """Draws a pass over its target, with the uniforms that its shader reads."""
        shader = self._passes[name]
        values = self._values(name, size, frame, seconds, input_)
        values["toy_origin"] = origin
        inputs = {}
        for uniform, (components, items, _) in shader.uniforms.items():
            value = values[ALIASES.get(uniform, uniform)]  # iTime for u_time
            if isinstance(value, list):  # the compiler cuts an array behind the last item that is read
                value = value[:items] if items > 1 else value[0]
            inputs[uniform] = value[:components] if type(value) is tuple else value  # vec2 u_resolution
        shader(target, None, **inputs)

    def _values(self, name: str, size: Size, frame: int, seconds: float, input_: Input) -> dict[str, object]:
        """The value of every uniform of a pass."""
        row = self.program.channels[name]
        textures = [self._texture(channel, input_) for channel in row]
        x, y, click_x, click_y = input_.mouse
        width, height = size
        values: dict[str, object] = {
            "iResolution": (float(width), float(height), 1.0),
            "iTime": seconds, "iTimeDelta": 1 / input_.rate, "iFrame": frame, "iFrameRate": input_.rate,
            "iMouse": (x * width, y * height, click_x * width, click_y * height),
            "iDate": (*input_.date[:3], input_.date[3] + seconds), "iSampleRate": SAMPLE_RATE,
            "iChannelTime": [seconds] * len(row),
            "iChannelResolution": [(float(t.size[0]), float(t.size[1]), 1.0) for t in textures],
        }  # fmt: skip
        for k, (texture, channel) in enumerate(zip(textures, row, strict=True)):
            values[f"iChannel{k}"] = Sampled(texture, channel.filter, channel.repeats)
        return values | dict(input_.uniforms)

    def _texture(self, channel: Channel, input_: Input) -> Texture | CubeTexture:
        """The texture that a channel reads."""
        if channel.source in BUFFERS:
            return self._buffers[channel.source]
        if channel.source == KEYBOARD:
            return self._keyboard_texture(input_)
        if channel.source == NOISE:
            return self._noise
        return self._images.get((channel.source, channel.is_cube)) or self._black

    def _keyboard_texture(self, input_: Input) -> Texture:
        """Keys by their code: row 0 is held, row 1 pressed in this frame, row 2 toggled."""
        texels = np.zeros((3, KEYS, 4), "u1")
        pressed = set(input_.keys) - set(self._held)
        for row, keys in enumerate((input_.keys, pressed, input_.toggled)):
            texels[row, [key for key in keys if 0 <= key < KEYS], :] = 255
        self._keyboard = self._keyboard or self.gl.texture((KEYS, 3), dtype="f1")
        return self._keyboard.write(texels)

    # The view of the passes

    def view(self, size: Size, seconds: float, input_: Input) -> AlgorithmView:
        """The texture of each pass, with its size, bytes, milliseconds and range."""
        image = self.gl.texture(size)
        self.draw_image(image, (0, 0), size, seconds, max(self.frame, 0), input_)
        textures = {**self._buffers, IMAGE: image}
        texels = {name: texture.read()[::-1] for name, texture in textures.items()}
        frame = max(self.frame, 0)
        times = {}
        for name in textures:  # over spare textures: the buffers stay as they are
            target = self._spare.get(name, image)
            draw = partial(self._draw_pass, name, target, size, frame, seconds, input_)
            times[name] = self.gl.time_seconds(draw)
        rows = tuple(_row(name, array, times[name]) for name, array in texels.items())

        def step(index: int) -> StepPicture:
            name = list(texels)[index]
            values = magnified(texels[name][..., :3], size)
            pixels = (np.clip(np.nan_to_num(values), 0, 1) * 255 + 0.5).astype("u1")
            return StepPicture(pixels, values, f"{name}: red, green, blue of its float texture, 0 black to 1 full")

        return AlgorithmView("pass", rows, step, len(rows) - 1)


def cube_faces(paths: list[str]) -> np.ndarray:
    """The faces (6, side, side, 4) of a cube map: six square images, or one, a cross or a strip. Raises InputError."""
    images = [read_pixels(path) for path in paths]
    height, width = images[0].shape[:2]
    if len(images) > 1:
        for path, image in zip(paths, images, strict=True):
            if image.shape[:2] != (width, width):
                size = f"{image.shape[1]} x {image.shape[0]}"
                raise InputError(f"{path}: is a face of {size} pixels; all six must be {width} x {width}")
        return np.stack(images)
    layout = next((cells for cells in CUBE_LAYOUTS if width * cells[1] == height * cells[0]), None)
    if layout is None:
        shapes = "a cross of 4 x 3 or 3 x 4 faces, or a strip of 6 x 1 or 1 x 6"
        raise InputError(f"{paths[0]}: is no cube map: {width} x {height} pixels; allowed are {shapes}")
    side = width // layout[0]
    faces = [images[0][y * side : (y + 1) * side, x * side : (x + 1) * side] for x, y in CUBE_LAYOUTS[layout]]
    if layout == (3, 4):  # -z hangs below -y there, upside down
        faces[5] = faces[5][::-1, ::-1]
    return np.stack(faces)


def _row(name: str, texels: np.ndarray, seconds: float) -> Json:
    """The numbers of a pass."""
    height, width = texels.shape[:2]
    finite = texels[np.isfinite(texels)]
    span = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
    row: Json = {"pass": name, "size": f"{width} x {height}", "bytes": texels.nbytes, "ms": 1e3 * seconds}
    row |= {"least": round(span[0], 5), "greatest": round(span[1], 5)}
    return row | {"not finite": int(texels.size - finite.size)}
