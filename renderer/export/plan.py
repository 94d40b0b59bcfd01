"""The plan of an export: make_plan() checks options, scene and output before anything is drawn.

run.py, flames.py, gallery.py and verify.py make plans; run.carry_out() and farm.py draw them.
"""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from renderer.errors import UserError
from renderer.export import video
from renderer.export.frames import FRAME_PLACEHOLDER, MAX_FRAMES, VIDEO_SUFFIXES, Manifest, frame_numbers
from renderer.export.options import ExportOptions
from renderer.export.render import MAX_UNTILED_PIXELS, RenderJob
from renderer.export.video import FILM_SUFFIXES, MIN_AV1_SIDE
from renderer.images import denoise
from renderer.pictures import load, make_recipe, picture_class
from renderer.plain import Json, format_value
from renderer.raytracing.lights.environment_presets import PRESETS
from renderer.records import dataclass, field, fields, replace
from renderer.scene.animation import without_tracks
from renderer.scene.scene import Scene
from renderer.scene.schema import set_all_from_texts, set_from_text
from renderer.system.files import resolve
from renderer.system.outputs import check_output, check_own, check_suffix, writing

MAX_NAME_BYTES = 230  # file systems allow 255: names of manifests and folders of frames are longer than OUT
DENOISED = ("raytrace", "flame", "flame3d", "focus")  # pictures of random samples; focus has no guides
MAX_DENOISED_PIXELS = 25_000_000  # the gallery's square posters; the filter, its guides and the picture take 6 GB there
DEFAULT_SIZE = (1280, 720)


@dataclass(frozen=True)
class ExportPlan:
    """The plan of an export. `numbers` are the frames, None for a still; the first frame shows `time` in seconds.

    `written` is where a still went: beside `output` if it is unfinished and `output` is there and not to be replaced.
    `report` is called with the frames done and all frames after each; if it returns False, no more are drawn.
    """

    options: ExportOptions
    scene: Scene
    output: Path
    size: tuple[int, int]
    numbers: list[int] | None
    time: float
    samples: int | None  # None: as many as the picture's settings ask for
    report: Callable[[int, int], object] | None = None
    written: list[Path] = field(default_factory=list)  # the still, once it is there

    @property
    def pattern(self) -> Path:
        """Path of the frames, with # for the digits of their numbers.

        The frames of a video lie in a temporary folder OUT.frames beside it.
        """
        return self.output.with_name(f"{self.output.name}.frames") / "######.png" if self.is_video else self.output

    @property
    def is_video(self) -> bool:
        """True if the frames become a video."""
        return self.numbers is not None and self.output.suffix.lower() in VIDEO_SUFFIXES

    @property
    def layers(self) -> bool:
        """True if the picture's layers are written too."""
        return self.output.suffix.lower() == ".exr"

    @property
    def frame_depth(self) -> int:
        """Bits per channel of the PNGs that are written, a video's frames too."""
        return 8 if self.options.bit_depth == 8 else 16

    @property
    def title(self) -> str:
        """The scene's title and the size, for progress bars."""
        return f"{self.scene.title}, {self.size[0]} x {self.size[1]}"

    def job(self, samples: int = 1, time: float | None = None, deadline: float = math.inf) -> RenderJob:
        """The job of drawing the still, or the frame at scene time `time`, until `deadline` (of time.monotonic())."""
        options, scene_time = self.options, self.time if time is None else time
        job = RenderJob(self.scene, self.size, samples, scene_time, options.tile, deadline, self.layers)
        return replace(job, denoise=options.denoise, transfer=options.transfer)

    def time_of(self, number: int) -> float:
        """Scene time of a frame in seconds."""
        assert self.numbers is not None
        if self.options.film:
            return float(number)
        return self.time + (number - self.numbers[0]) / self.options.fps


class Drawn(NamedTuple):
    """What was drawn of a plan."""

    samples: int  # of each picture
    device: str
    is_complete: bool  # all samples of all pictures were drawn and written
    report: Json  # Picture.report() and hints, with --json


def make_plan(options: ExportOptions, scene: Scene | None = None) -> ExportPlan:
    """Makes the plan of a still, of frames or of a video, of the options' input or of a `scene`.

    Raises UserError or InputError.
    """
    output = options.output
    numbers = _frame_numbers(options)
    _check_encoding(options)
    check_target(output, options.force)
    scene = scene or load_scene(options)
    options = replace(options, film=options.film or options.loop is not None)
    if options.film and numbers is None and (_placeholders(output) or output.suffix.lower() in VIDEO_SUFFIXES):
        numbers = _film_numbers(scene)
    _check_film(options, scene, numbers)
    if numbers is None and output.suffix.lower() in VIDEO_SUFFIXES:
        duration = scene.animation.duration if scene.animation else 0
        if not duration:
            raise UserError(
                f"-o {output}: a video needs --frames A-B, or a scene with an [animation] that has a duration"
            )
        if duration * options.fps > MAX_FRAMES:
            allowed = f"{MAX_FRAMES} are allowed; --frames A-B takes some of them"
            raise UserError(f"-o {output}: {duration:g} s at {options.fps} frames a second are too many; {allowed}")
        numbers = list(range(1, max(1, round(duration * options.fps)) + 1))
    size = options.size or scene.size or DEFAULT_SIZE
    if options.bit_depth == 10 and min(size) < MIN_AV1_SIDE:
        raise UserError(f"--bit-depth 10: {size[0]} x {size[1]} pixels; films of it have {MIN_AV1_SIDE} or more a side")
    if options.denoise:
        _check_denoise(options, scene, size)
    if options.noise is not None:
        scene = _with_noise(options, scene, size, numbers)
    samples = options.samples or scene.samples
    plan = ExportPlan(options, scene, output, size, numbers, time_of(options, scene), samples)
    _ = plan.job().tiles  # UnavailableError if the picture is too large and its kind cannot be drawn in tiles
    return plan


def _check_encoding(options: ExportOptions) -> None:
    """Raise UserError for a bit depth that the output's format lacks, and for high dynamic range in 8 bits."""
    depth, suffix = options.bit_depth, options.output.suffix.lower()
    formats = {8: None, 10: FILM_SUFFIXES, 16: (".png",)}[depth]
    if formats and suffix not in formats:
        raise UserError(f"--bit-depth {depth}: only {', '.join(formats)} files have it, not {suffix}")
    if options.transfer == "pq" and suffix == ".exr":
        raise UserError("--transfer pq: .exr holds linear radiance, all of it, and takes no transfer; leave it out")
    if options.transfer == "pq" and depth == 8:
        allowed = f"--bit-depth 16 of .png and 10 of {', '.join(FILM_SUFFIXES)}"
        raise UserError(f"--transfer pq: {suffix} with 8 bits per channel; allowed are {allowed}")


def _with_noise(options: ExportOptions, scene: Scene, size: tuple[int, int], numbers: list[int] | None) -> Scene:
    """The scene with --noise as its stopping criterion; raises UserError if its noise cannot be estimated."""
    if scene.picture not in ("flame", "flame3d", "raytrace"):
        allowed = "flame, flame3d, raytrace"
        raise UserError(f"--noise: the noise of a {scene.picture} picture is not estimated; allowed are {allowed}")
    if scene.picture != "raytrace" and scene.settings.passes > 1:
        raise UserError(f"--noise: the flame has {scene.settings.passes} passes; allowed are flames of one pass")
    for name, value in (("--farm", options.farm), ("--tile", options.tile), ("--frames or a film", numbers)):
        if value:
            raise UserError(f"--noise: not together with {name}")
    if size[0] * size[1] > MAX_UNTILED_PIXELS:
        raise UserError(f"--noise: {size[0]} x {size[1]} pixels are more than the {MAX_UNTILED_PIXELS} of one part")
    if scene.picture != "raytrace":
        return scene
    return replace(scene, settings=replace(scene.settings, noise_threshold=options.noise))


def _check_denoise(options: ExportOptions, scene: Scene, size: tuple[int, int]) -> None:
    """Raise UserError or UnavailableError if the picture cannot be denoised."""
    if options.farm:
        raise UserError("--denoise: not together with --farm, whose workers draw only parts")
    if scene.picture not in DENOISED:
        raise UserError(f"--denoise: a {scene.picture} picture has no random noise; allowed are {', '.join(DENOISED)}")
    if size[0] * size[1] > MAX_DENOISED_PIXELS:
        raise UserError(f"--denoise: {size[0]} x {size[1]} pixels are more than {MAX_DENOISED_PIXELS}")
    denoise.check_installed()


def time_of(options: ExportOptions, scene: Scene) -> float:
    """Returns the scene time in seconds: --time, else the time in the recipe of a PNG input, else 0."""
    return scene.time if options.time is None else options.time


def _frame_numbers(options: ExportOptions) -> list[int] | None:
    """The frames of --frames; None for a still, or for a video or film as long as its scene."""
    output = options.output
    placeholders = _placeholders(output)
    if options.frames is None:
        if placeholders and not options.film and options.loop is None:  # else as many frames as the film has
            raise UserError(f"-o {output}: numbered frames need --frames A-B")
        return None
    numbers = frame_numbers(options.frames)
    if output.suffix.lower() not in VIDEO_SUFFIXES and len(placeholders) != 1:
        raise UserError(f"-o {output}: frames need one run of # in the name, such as out_####.png")
    return numbers


def _placeholders(output: Path) -> list[str]:
    """Returns the runs of # in the name, which frame numbers replace."""
    return FRAME_PLACEHOLDER.findall(output.name)


def _film_numbers(scene: Scene) -> list[int]:
    """The frames of --film, whose key frames are the flames of a file.

    Frame N shows time N: from the first key frame's time to one frame before the last key frame's, as in flam3-animate.
    """
    times = [key.time for key in scene.settings.keyframes] or [0.0]
    if times[-1] - times[0] >= MAX_FRAMES:
        raise UserError(f"--film: the times {times[0]:g} to {times[-1]:g} are more than {MAX_FRAMES} frames")
    first = int(times[0])
    return list(range(first, max(int(times[-1]) - 1, first) + 1))


def _check_film(options: ExportOptions, scene: Scene, numbers: list[int] | None) -> None:
    """Raise UserError for frames of one flame without --film, and for frames before time 0.

    Without --film, `scene.part` is the number of the flame if the scene comes from a file of flames, else empty.
    """
    if not options.film and scene.part and (numbers or options.output.suffix.lower() in VIDEO_SUFFIXES):
        raise UserError(f"-o {options.output}: frames of {scene.path} need --film, or a scene with an [animation]")
    if options.film and numbers and numbers[0] < 0:
        raise UserError(f"--film: the first key frame has time {numbers[0]}; frame numbers must be at least 0")


def check_target(output: Path, force: bool) -> None:
    """Raise UserError if the output cannot be written or only by `force`, UnavailableError for a video without PyAV."""
    if check_suffix("-o", output, ".png", ".exr", *VIDEO_SUFFIXES, "and frames as out_####.png") in FILM_SUFFIXES:
        video.import_av()
    length = len(os.fsencode(output.name))
    if length > MAX_NAME_BYTES:
        raise UserError(f"-o {output}: a name of {length} bytes; at most {MAX_NAME_BYTES} are allowed")
    check_output(output)
    if not force and not _placeholders(output):
        check_own(output, "-o ")


def load_scene(options: ExportOptions) -> Scene:
    """The input's scene with --set and --seed applied; keys that begin with `tone.` change its tone mapping."""
    scene = load(options.input, options.flame, options.film, options.sheet)
    if options.animation is not None:
        scene = picture_class(scene.picture).with_animation(scene, options.animation)
    if options.variant is not None:
        scene = picture_class(scene.picture).with_variant(scene, options.variant)
    if options.loop is not None:
        scene = picture_class(scene.picture).with_loop(scene, options.loop)
    settings, tone = scene.settings, scene.tone
    if options.environment is not None:
        settings = with_environment(scene, options.environment)
    assignments: list[tuple[str, str]] = []  # applied together, because some settings are only valid together
    for assignment in options.set:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UserError(f"--set {assignment}: must be KEY=VALUE")
        if key.startswith("tone."):
            tone = set_from_text(tone, key[5:], text, "--set", "tone.")
        else:
            assignments.append((key, text))
            scene = without_tracks(scene, key)  # key frames would replace the value
    settings = set_all_from_texts(settings, assignments)
    if options.quality is not None:
        settings = _with_quality(options, scene, settings)
    if options.seed is not None:
        if "seed" not in [f.name for f in fields(settings)]:
            raise UserError(f"--seed {options.seed}: a {scene.picture} picture has no random numbers")
        settings = set_from_text(settings, "seed", str(options.seed), "--seed")
    return replace(scene, settings=settings, tone=tone)


def _with_quality(options: ExportOptions, scene: Scene, settings: Any) -> Any:
    """The settings of a flame, and of its key frames, with the samples per pixel of --quality. Raises UserError."""
    if scene.picture not in ("flame", "flame3d"):
        allowed = "flame, flame3d; others take --samples N"
        raise UserError(f"--quality {options.quality}: a {scene.picture} picture has none; allowed are {allowed}")
    if options.samples is not None:
        raise UserError(f"--quality {options.quality}: not together with --samples, the batches to draw of it")
    settings = set_from_text(settings, "quality", str(options.quality), "--quality")
    keys = []
    for key in settings.keyframes:
        quality = max(settings.quality / math.pow(4.0, key.zoom), 1e-3)  # KeyFrame.quality multiplies by 4^zoom again
        keys.append(replace(key, flame=replace(key.flame, quality=quality)))
    return replace(settings, keyframes=tuple(keys))


def with_environment(scene: Scene, name: str) -> Any:
    """The scene's settings in the environment of --environment: a preset, none, or a file. Raises UserError."""
    if scene.picture != "raytrace":
        raise UserError(f"--environment {name}: a {scene.picture} picture has no environment; allowed is raytrace")
    is_file = Path(name).suffix.lower() in (".exr", ".hdr")
    if not is_file and name not in (*PRESETS, "none"):
        allowed = f"{', '.join(PRESETS)}, none, and .exr and .hdr files"
        raise UserError(f"--environment {format_value(name)}: allowed are {allowed}")
    plain = replace(scene.settings.environment, preset="none", file="")
    settings = replace(scene.settings, environment=plain)
    if name == "none":
        return settings
    key = "environment.file" if is_file else "environment.preset"
    return set_from_text(settings, key, json.dumps(name, ensure_ascii=False), "--environment")


class FrameManifest(Manifest):
    """The manifest of a plan whose pictures are frames, each with a time."""

    def __init__(self, plan: ExportPlan):
        """Opens the manifest; makes its folder if needed. UserError where no folder can be made."""
        self._plan, options = plan, plan.options
        with writing(plan.pattern.parent):
            plan.pattern.parent.mkdir(exist_ok=True)
        facts: Json = dict(size=plan.size, samples=plan.samples, bit_depth=plan.frame_depth, film=options.film)
        facts |= options.picture_facts()
        super().__init__(plan.pattern, make_recipe(plan.scene, resolve(plan.pattern).parent, **facts), options.force)

    def facts(self, number: int) -> Json:
        """The scene time of the frame, which depends on the first number of --frames."""
        return {"time": self._plan.time_of(number)}
