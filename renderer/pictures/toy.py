"""The picture `toy`: a fragment shader with mainImage() as on shadertoy.com, its buffers and channels; or with main().

Time and frame decide the picture: buffers start at zero and their frames are drawn in order, `rate` a second. A window
draws a few of them at a time, and goes on from what it has drawn when settings or the size change.
"""

import json
import re
from copy import copy
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import ClassVar, Literal, Self

from renderer.errors import InputError, UnavailableError
from renderer.formats.images import read_exr, read_pixels
from renderer.formats.linked import remember_links
from renderer.gpu import DeviceContext, open_context
from renderer.gpu.compilation import result, start_thread
from renderer.gpu.gl import Texture
from renderer.images.algorithm_view import AlgorithmView
from renderer.paths import ASSETS, is_bundled, temporary_directory
from renderer.pictures.picture import CENTER, MAX_TEXTURE_SIDE, AnyPicture, Point, Size, Tile
from renderer.pictures.picture import Picture as BasePicture
from renderer.plain import Json
from renderer.records import dataclass, extended, fields, replace
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import EMPTY, PictureSettings, from_table, required_file, setting, to_table
from renderer.system import drafts
from renderer.system.files import parse_json, read_text, resolve
from renderer.system.trial import run_trial
from renderer.system.trust import allow, trusting
from renderer.toys.passes import Input, ToyPasses
from renderer.toys.program import COMMON, IMAGE, INCLUDE, MAX_BYTES, SUFFIXES, Program, Uniform, read_program

TAB_KEYS = {IMAGE: "image", COMMON: "common", "Buffer A": "buffer_a", "Buffer B": "buffer_b", "Buffer C": "buffer_c",
            "Buffer D": "buffer_d"}  # fmt: skip
TAB_FILE = re.compile(r"common|buf(?:fer)?[ _-]?([a-d])", re.IGNORECASE)  # stems of the files beside Image.glsl
TRIAL_SIZE = (32, 18)  # pixels of the picture by which a child process tries a shader
TRIAL_SECONDS = 20.0  # time limit of that child process
ROUNDING = 1e-6  # frames added before rounding down, so that 0.1 s x 60 frames a second is frame 6


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The settings of all toys; settings_class() adds the uniforms of one."""

    row_groups: ClassVar[dict[str, tuple[str, ...]]] = {"how it is drawn": ("rate", "output")}
    image: str = required_file(SUFFIXES, "the file of the tab Image, or of all tabs")
    common: str = setting("", help="text in front of every tab", file=SUFFIXES)
    buffer_a: str = setting("", help="the tab Buffer A", file=SUFFIXES)
    buffer_b: str = setting("", help="the tab Buffer B", file=SUFFIXES)
    buffer_c: str = setting("", help="the tab Buffer C", file=SUFFIXES)
    buffer_d: str = setting("", help="the tab Buffer D", file=SUFFIXES)
    channels: dict[str, tuple[str, ...]] = setting(
        EMPTY, help="iChannel0 to 3 of a tab: Buffer A to D, keyboard, noise, or an image file"
    )
    mouse: tuple[float, float, float, float] = setting(
        (0.0, 0.0, 0.0, 0.0), -1.0, 1.0, "iMouse in fractions of the picture: x, y, and where the click was"
    )
    keys: tuple[int, ...] = setting((), 0, 255, "codes of the keys that are held")
    toggled: tuple[int, ...] = setting((), 0, 255, "codes of the keys that were pressed an odd number of times")
    date: tuple[float, float, float, float] = setting(
        (2026.0, 0.0, 1.0, 0.0), help="iDate at time 0: year, month from 0, day, seconds"
    )
    rate: float = setting(60.0, 1.0, 1000.0, "frames of the buffers a second")
    output: Literal["srgb", "linear"] = setting("srgb", help="how the shader encodes its colors")

    @classmethod
    def is_stale(cls, key: str, value: object) -> bool:
        """True for the value of a uniform that the shader had when the file was written."""
        name, numbers = key.partition(".")[0], value if isinstance(value, list) else [value]
        return name not in cls.__dataclass_fields__ and all(isinstance(n, (int, float)) for n in numbers)


BASE_FIELDS = {f.name for f in fields(Settings)}


def open_file(path: Path) -> Scene:
    """A shader as a scene; its uniforms are settings.

    The tab Common is the first file beside it that it includes. Files beside one named Image are its other tabs.
    """
    is_image, files = path.stem.lower() == "image", {"image": path.name}
    for file in sorted(path.parent.glob(f"*{path.suffix}")) if is_image else ():
        if match := TAB_FILE.fullmatch(file.stem):
            files[f"buffer_{match[1].lower()}" if match[1] else "common"] = file.name
    others = {file.name for file in path.parent.glob(f"*{path.suffix}")} - {path.name}
    included = INCLUDE.search(read_text(path, MAX_BYTES))
    if included and included[1] in others:
        files["common"] = included[1]
    settings = Picture.read_settings(files, str(path), path.parent)
    title = (resolve(path).parent.name or path.stem) if len(files) > 1 else path.stem
    return Scene(path, title.replace("_", " "), "toy", settings, Picture.tone, notes=Picture.notes(settings, {}))


def open_image(path: Path) -> Scene:
    """A picture file as a scene of its size, for a window that shows, inspects and compares it. Raises InputError."""
    is_linear = path.suffix.lower() == ".exr"
    pixels = read_exr(path) if is_linear else read_pixels(path)
    allow(path)  # the user has opened it
    table = {"image": str(ASSETS / "picture.glsl"), "channels": {"image": [str(resolve(path))]}}
    settings = Picture.read_settings(table | ({"output": "linear"} if is_linear else {}), str(path), path.parent)
    return Scene(path, path.name, "toy", settings, Picture.tone, (pixels.shape[1], pixels.shape[0]))


def with_date(scene: Scene) -> Scene:
    """The scene with the present date, if its shader reads the date and no file sets it; for a window."""
    settings: Settings = scene.settings
    if settings.date != Settings.date or not program_of(settings).uses("iDate"):
        return scene
    now = datetime.now()
    seconds = float(now.hour * 3600 + now.minute * 60 + now.second)
    return replace(scene, settings=replace(settings, date=(now.year, now.month - 1, now.day, seconds)))


def program_of(settings: Settings) -> Program:
    """Reads the program that the settings name. Raises InputError."""
    files = {name: file for name, key in TAB_KEYS.items() if (file := getattr(settings, key))}
    return read_program(files, settings.channels, settings.image)


@cache
def settings_class(uniforms: tuple[Uniform, ...]) -> type[Settings]:
    """A frozen dataclass with a field for each uniform; the same one for equal uniforms, as undo and reload ask."""
    return extended("ToySettings", Settings, [each.field for each in uniforms]) if uniforms else Settings


class Picture(BasePicture[Settings]):
    """Draws a toy; one draw is the whole picture."""

    settings_type = Settings
    tone = ToneMapping("manual")
    passes = ("images/toy_display.frag",)
    algorithm_names = ("passes",)
    max_side = MAX_TEXTURE_SIDE
    can_clone = True

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self.gl = gpu.gl
        self._is_live = False  # never_block() was called: the picture is a window's
        self._shared = _Shared()  # passes and buffers, the same object in all clones
        self._draws = 0  # draws since the key changed
        self._key: object = None  # settings, size, time and tile of the last draw
        self._is_behind = False  # the buffers have not reached the frame of the last draw's time
        self._time = 0.0  # scene time of the last draw, in seconds

    @classmethod
    def read_settings(cls, table: object, context: str, folder: Path | None) -> Settings:
        """The settings of the shader that a table names, from that table. Raises InputError."""
        common = {k: v for k, v in table.items() if k in BASE_FIELDS} if isinstance(table, dict) else table
        base = from_table(Settings, common, context, folder)
        assert isinstance(table, dict), "from_table() refuses what is no table"
        unknown = sorted(base.channels.keys() - set(TAB_KEYS.values()) - {"common"})
        if unknown:
            raise InputError(f"{context}: channels has {unknown[0]!r}; allowed are {', '.join(TAB_KEYS.values())}")
        program = program_of(base)
        remember_links(Path(base.image), dict.fromkeys(map(Path, program.images)))
        present = settings_class(program.uniforms)
        kept = {key: value for key, value in table.items() if folder is None or not present.is_stale(key, value)}
        return from_table(present, kept, context, folder)

    @classmethod
    def notes(cls, settings: Settings, table: Json) -> tuple[str, ...]:
        """The program's notes, and a sentence for each value of a uniform that the shader does not have."""
        frames = table.get("animation", {}).get("keyframes", ())
        rows = [table.get("settings", {}), *(frame.get("set", {}) for frame in frames)]
        stale = {key: None for row in rows for key, value in row.items() if settings.is_stale(key, value)}
        named = Path(settings.image).name
        return (*program_of(settings).notes, *(f"the value of {key} has no uniform in {named}" for key in stale))

    @classmethod
    def check_tiles(cls, scene: Scene, size: Size) -> None:
        """Raises UnavailableError for a side that textures of the shader's buffers cannot have."""
        if max(size) > MAX_TEXTURE_SIDE and program_of(scene.settings).buffers:
            limit = f"the buffers of a shader are drawn whole; at most {MAX_TEXTURE_SIDE} a side are allowed"
            raise UnavailableError(f"{scene.path}: {size[0]} x {size[1]} pixels: {limit}")

    def never_block(self) -> None:
        """A window: buffers catch up a few frames a draw, and a child process tries each shader first."""
        self._is_live = True

    def clone(self) -> Self:
        """A picture that shares the passes and buffers, with its own frame."""
        other = copy(self)
        other._cache, other._key = {}, None
        return other

    def depends_on_time(self, settings: Settings) -> bool:
        """True if the shader reads the time, or has buffers."""
        return self._program(settings).depends_on_time

    def keeps_pixels(self, settings: Settings) -> bool:
        """True if a buffer reads what was drawn in the frame before."""
        return self._program(settings).has_feedback

    def frame_times(self, settings: Settings) -> tuple[float, float]:
        """With feedback, when the frame of the buffers begins and ends; (0, 0) until the shader is compiled."""
        if not self.keeps_pixels(settings):
            return super().frame_times(settings)
        passes = self._shared.passes
        frame = passes.frame if passes is not None else -1
        return max(frame, 0) / settings.rate, (frame + 1) / settings.rate

    def continue_from(self, before: AnyPicture) -> None:
        """The buffers and their frame go on, as on shadertoy.com."""
        if isinstance(before, Picture):
            self._shared.before = before._shared.passes or before._shared.before

    def restart(self) -> None:
        """Count draws anew, as the window does: or it would wait for one more forever."""
        self._key = None

    def sample_count(self, settings: Settings, size: Size) -> int:
        """One draw; in a window as many as the buffers need to reach their frame."""
        return self._draws + int(self._is_behind) if self._is_live else 1

    def draw(self, settings: Settings, size: Size, time: float, tile: Tile | None = None) -> Texture:
        """Draw the picture at a time, or a tile of it: first the frames of its buffers that are missing."""
        left, top, width, height = tile or (0, 0, *size)
        self._time, passes = time, self._load(settings)
        given, frame = self._input(settings, passes.program), max(0, int(time * settings.rate + ROUNDING))
        key = settings, size, time, tile
        self._draws, self._key = (self._draws + 1 if key == self._key else 1), key
        if (left, top) == (0, 0) or not self._is_live:  # all tiles of a window's sample show one frame
            self._is_behind = not passes.advance(size, frame, given, self._is_live, self.progress)
        if passes.program.buffers:
            frame, time = passes.frame, passes.frame / settings.rate
        # Derivatives are of blocks of 2 x 2 pixels, which lie alike in every tile.
        bottom = size[1] - top - height
        origin = left & ~1, bottom & ~1
        drawn = width + left - origin[0], height + bottom - origin[1]
        sizes = drawn, (width, height)
        textures: list[Texture] = self.cached("textures", sizes, lambda: [self.gl.texture(size) for size in sizes])
        image, frame_texture = textures
        passes.draw_image(image, origin, size, time, frame, given)
        display = self.gl.render_pass("images/toy_display.frag", MODE=int(settings.output == "linear"))
        display(frame_texture, image=image, skipped=(left - origin[0], 0), inverse_size=(0.0, 0.0))
        return frame_texture

    def algorithm(self, name: str, settings: Settings, size: Size, at: Point = CENTER) -> AlgorithmView:
        """The texture of each pass as it was drawn last."""
        passes = self._load(settings)
        given = self._input(settings, passes.program)
        if passes.program.buffers and passes.frame < 0:
            passes.advance(size, 0, given, self._is_live)
        time = passes.frame / settings.rate if passes.program.buffers else self._time
        return passes.view(size, time, given)

    def reads(self, name: str) -> bool:
        """True if the compiled shader reads a built-in uniform, or the keyboard, so that a window need set it."""
        program = self._shared.passes.program if self._shared.passes else None
        return program is not None and (program.reads_keyboard if name == "keyboard" else program.uses(name))

    def report(self) -> dict[str, object]:
        """The frame of the buffers."""
        passes = self._shared.passes
        return {"frame": passes.frame} if passes is not None and passes.program.buffers else {}

    def _input(self, settings: Settings, program: Program) -> Input:
        values = tuple((uniform.name, getattr(settings, uniform.key)) for uniform in program.uniforms)
        return Input(settings.mouse, settings.keys, settings.toggled, settings.date, settings.rate, values)

    def _program(self, settings: Settings) -> Program:
        """The program of the settings, which need not be compiled: a window asks for it between its frames."""
        shared = self._shared
        source = tuple(getattr(settings, key) for key in TAB_KEYS.values()), settings.channels
        if shared.program is None or shared.source != source:
            shared.before = shared.passes or shared.before
            shared.program, shared.source, shared.passes = program_of(settings), source, None
        return shared.program

    def _load(self, settings: Settings) -> ToyPasses:
        """The compiled passes of the settings."""
        program, shared = self._program(settings), self._shared
        if shared.passes is None:
            if self._is_live and not (is_bundled(settings.image) and Path(settings.image) not in drafts.texts):
                _try_program(settings)
            passes, before = ToyPasses(self.gl, program), shared.before
            if before is not None and self._is_live:
                passes.adopt(before, max(0, int(self._time * settings.rate + ROUNDING)))
            shared.passes, shared.before = passes, None
        return shared.passes


class _Shared:
    """Resources that the clones of a picture share."""

    program: Program | None = None
    passes: ToyPasses | None = None
    before: ToyPasses | None = None  # of the program before an edit, whose buffers the next passes take
    source: object = None  # the files and channels of the program


def _try_program(settings: Settings) -> None:
    """Compiles and draws a shader in a child process; InputError if it ends or does not answer.

    A driver that a shader hangs or ends would take the window with it. The window goes on meanwhile.
    """
    table = to_table(settings) | {"channels": {tab: list(row) for tab, row in settings.channels.items()}}
    texts = {str(path): text for path, text in drafts.texts.items()}
    with temporary_directory("toy") as folder:
        job = Path(folder, "job.json")
        job.write_text(json.dumps({"settings": table, "texts": texts}), encoding="utf-8")
        run = partial(run_trial, "renderer.pictures.toy:draw_trial", str(job), seconds=TRIAL_SECONDS)
        trial = result(start_thread(run), Path(settings.image).name)
    if trial.answer is None and trial.reason.startswith("it "):  # other reasons: errors that this process finds too
        raise InputError(f"{settings.image}: is not drawn: a trial in another process failed: {trial.reason}")


def draw_trial(job: str) -> bool:
    """Draws two frames of a small picture, in the child process; `job` is a file with the settings."""
    table = parse_json(Path(job).read_text(encoding="utf-8"))
    drafts.texts.update({Path(path): text for path, text in table["texts"].items()})
    with trusting():
        settings = Picture.read_settings(table["settings"], "trial", Path())
    Picture(open_context()).draw(settings, TRIAL_SIZE, 1 / settings.rate).read()
    return True
