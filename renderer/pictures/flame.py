"""The picture `flame`: fractal flames by the chaos game with exact sums, exposed and filtered as in flam3.

One draw is one batch of steps of every chain. The first batch has about a million samples; each next batch has 41 % of
all samples before it, up to a limit. The picture depends only on settings, size, time and the number of draws.
"""

import math
import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from renderer.errors import InputError, UnavailableError, UserError
from renderer.flames.animation import turning
from renderer.flames.camera import bucket_transform, pixels_per_unit
from renderer.flames.chaos_game import MAX_PRIVATE_BYTES, ChaosGame, SampledSums
from renderer.flames.genome import Flame, read_only
from renderer.flames.interpolation import KeyFrame
from renderer.flames.kernel_cache import BLOCK
from renderer.flames.postprocess import BucketGrid, Postprocess
from renderer.flames.sample_schedule import SampleSchedule
from renderer.flames.settings import Settings, settings_from_keyframe, to_keyframe
from renderer.flames.temporal import Pass, make_passes, make_schedule, make_temporal_samples, middle_sample
from renderer.flames.xml.read import FLAM3_DEFAULTS, FileEntry, read_library
from renderer.formats.images import linear_to_srgb
from renderer.gpu import DeviceContext
from renderer.pictures.picture import AccumulatingPicture, Chunk, ChunkResults, ExtraSteps, Frame, Size, Tile
from renderer.plain import format_value, parse_whole
from renderer.records import dataclass, replace
from renderer.scene.scene import Scene, ToneMapping
from renderer.system.trust import check_memory

KEY_SPACING = 100.0  # frames between key frames without times: the length that flam3-genome gives an edge
MANY_TEMPORAL_SAMPLES = FLAM3_DEFAULTS["temporal_samples"]  # a film with so many has a note on their cost
DEVELOPED_SIDE = 2048  # a larger picture is exposed and filtered in tiles of half this side
MAX_REPLACEMENT_ROUNDS = 3  # rounds of steps that replace bad values


# ---- .flame files


def open_file(path: Path, flame: str = "", film: bool = False) -> Scene:
    """The Scene of a .flame file: the flame of that number or name, or with `film` all flames as key frames.

    Without either it is the first flame that can be read. Raises UserError for a flame that the file does not have.
    """
    entries, warnings = read_library(path)
    print_problems(path, entries, warnings)
    if film:
        return _open_film(path, [entry for entry in entries if entry.keyframe])
    entry = find_entry(path, entries, flame) if flame else next(entry for entry in entries if entry.keyframe)
    if len(entries) > 1 and not flame:
        title = f"flame {entry.index} {entry.name!r}" if entry.name else f"flame {entry.index}"
        others = "--flame N|NAME|all, --sheet and --film draw others"
        print(f"rayfold: {path}: has {len(entries)} flames; {title} is drawn ({others})", file=sys.stderr)
    return scene_of_entry(path, entry)


def flame_count(path: Path) -> int:
    """The number of flames in a file, including flames that cannot be read."""
    return len(read_library(path)[0])


def print_problems(path: Path, entries: Sequence[FileEntry], warnings: Sequence[str]) -> None:
    """Print on stderr a file's warnings and the flames that cannot be read, each sentence once."""
    sentences = [f"{path}: warning: {sentence}" for sentence in warnings]
    sentences += [f"left out: {entry.error}" for entry in entries if not entry.keyframe]
    for sentence in sentences:
        _print_once(sentence)


@lru_cache(maxsize=1024)
def _print_once(sentence: str) -> None:
    """Print a sentence on stderr, once in this process, because batches open a file many times."""
    print(f"rayfold: {sentence}", file=sys.stderr)


def find_entry(path: Path, entries: Sequence[FileEntry], flame: str) -> FileEntry:
    """The flame of that number, counted from 0, or else the first of that name."""
    number = parse_whole(flame, 0, len(entries) - 1)
    entry = entries[number] if number is not None else next((each for each in entries if each.name == flame), None)
    if entry is None:
        names = ", ".join(format_value(each.name) for each in entries[:8] if each.name)
        listed = f", and names {names}{' and more' if len(entries) > 8 else ''}" if names else ""
        raise UserError(f"--flame {flame}: {path} has no such flame; allowed are 0 to {len(entries) - 1}{listed}")
    if not entry.keyframe:
        raise InputError(entry.error)
    return entry


def scene_of_entry(path: Path, entry: FileEntry) -> Scene:
    """The Scene of one flame of a file; raises InputError."""
    assert entry.keyframe
    try:
        settings = replace(settings_from_keyframe(entry.keyframe), ignored=read_only(entry.ignored))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    title, part = entry.name or Path(path).stem, str(entry.index)
    return Scene(Path(path), title, "flame", settings, Picture.tone, entry.keyframe.size, part=part)


def scene_of_keyframe(key: KeyFrame) -> Scene:
    """The Scene of a flame that is in no file; it is called "flame"."""
    return Scene(Path("flame"), "flame", "flame", settings_from_keyframe(key), Picture.tone, key.size)


def _open_film(path: Path, entries: list[FileEntry]) -> Scene:
    """The scene of all flames of a file as key frames; InputError if their times do not increase."""
    keyframes = [entry.keyframe for entry in entries if entry.keyframe]
    if len(keyframes) > 1 and len({key.time for key in keyframes}) == 1:  # as programs other than flam3 write them
        keyframes = [replace(key, time=KEY_SPACING * k) for k, key in enumerate(keyframes)]
        _print_once(f"{path}: its flames have no times; they are key frames {KEY_SPACING:g} frames apart")
    if any(two.time <= one.time for one, two in pairwise(keyframes)):
        times = ", ".join(f"{key.time:g}" for key in keyframes[:8])
        raise InputError(f"{path}: a film needs flames whose times increase; the times are {times}")
    ignored: Counter[str] = Counter()
    for entry in entries:
        ignored.update(entry.ignored)
    settings = settings_from_keyframe(keyframes[0], tuple(keyframes) if len(keyframes) > 1 else ())
    title = entries[0].name or Path(path).stem
    settings = replace(settings, ignored=read_only(dict(ignored)))
    most = max(key.flame.temporal_samples for key in keyframes)
    notes: tuple[str, ...] = ()
    if len(keyframes) > 1 and most >= MANY_TEMPORAL_SAMPLES:
        cost = f"a frame interpolates the flames {most} times for its motion blur"
        notes = (f'{cost}; temporal_samples="60" in <flame> costs less, and without it flam3 takes {most}',)
    return Scene(Path(path), title, "flame", settings, Picture.tone, keyframes[0].size, part="film", notes=notes)


# ---- the picture


@dataclass(frozen=True)
class _Plan:
    """The passes of a picture, and the buckets of one of its tiles."""

    settings: Settings
    size: Size
    tile: Tile
    passes: list[Pass]
    schedule: SampleSchedule
    flame: Flame  # the first pass's flame, with the largest density estimation radius of all passes
    grid: BucketGrid

    def pixels_per_unit(self, index: int) -> float:
        """Pixels per unit of the plane in pass `index`, the geometric mean of both axes."""
        view = self.passes[index].temporal_samples[-1].view
        return pixels_per_unit(view, self.size) / math.sqrt(self.settings.pixel_aspect)


def _make_plan(settings: Settings, size: Size, time: float, tile: Tile) -> _Plan:
    samples, weights = make_temporal_samples(settings, time)
    passes = make_passes(samples, weights)
    flame = replace(passes[0].flame, estimator_radius=max(each.flame.estimator_radius for each in passes))
    grid = BucketGrid.for_tile(flame, size, tile)
    return _Plan(settings, size, tile, passes, make_schedule(samples, size), flame, grid)


def _first_time(settings: Settings) -> float:
    """The time of the first key frame; plans that need no time use it, because all frames have as many samples."""
    return settings.keyframes[0].time if settings.keyframes else 0.0


def _whole_grid(settings: Settings, size: Size) -> BucketGrid:
    return BucketGrid.for_tile(settings, size, (0, 0, *size))


def _game_bytes(settings: Settings, size: Size) -> tuple[int, int]:
    """Bytes of the chaos game of a whole picture, and of its sums alone; hits that are counted double them."""
    # A bucket has four uint32 in each copy of the histogram (a copy for each core, up to MAX_PRIVATE_BYTES), and four
    # uint64 in the sums.
    buckets = _whole_grid(settings, size).rect.buckets
    copies = 16 * buckets * max(1, min(os.cpu_count() or 1, MAX_PRIVATE_BYTES // (16 * buckets)))
    samples, weights = make_temporal_samples(settings, _first_time(settings))
    games = 1 + any(each.needs_hit_counts for each in make_passes(samples, weights))
    return games * (copies + 32 * buckets), games * 32 * buckets


def _is_developed_in_tiles(settings: Settings, size: Size) -> bool:
    """True for a picture whose sums are one pass's, and so large that it is developed in tiles."""
    passes = max([settings.passes, *(key.flame.passes for key in settings.keyframes)])
    return size[0] * size[1] > DEVELOPED_SIDE**2 and passes == 1 and not settings.solid


class Picture(AccumulatingPicture[Settings]):
    """Draws flames; a draw is a batch of the sample schedule."""

    settings_type: ClassVar[type] = Settings
    layer_names = ("density", "color_sum")
    tone = ToneMapping("manual")

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self._game = ChaosGame(gpu.device)  # the chains of the present pass, and their histogram
        self._postprocess = Postprocess(gpu.device)
        self._plan: _Plan  # the plan of the last picture
        self._pass = self._batch = 0  # the present pass, and the number of its batches that are drawn
        self._past_passes: list[tuple[int, int, np.ndarray]] = []  # by earlier pass: samples, bad values, sums
        self._earlier: SampledSums | None = None  # the first half of the samples, for noise()
        self._part: SampledSums | None = None  # the sums of the tile that developed() made last
        self._noise_postprocess: Postprocess | None = None
        self._chunk_key: object = None  # the chunk whose chains are on the device
        self._chunk_extra_steps: ExtraSteps = ()
        self._merged: list[dict[str, Any]] = []  # merged results of chunks, by pass

    @staticmethod
    def with_loop(scene: Scene, frames: int) -> Scene:
        """The scene with key frames in which the xforms turn once around; UserError for what is no flame."""
        if scene.settings.keyframes:
            raise UserError(f"--loop {frames}: {scene.path} has key frames; --flame N|NAME selects one of a file")
        keys = turning(to_keyframe(scene.settings, scene.size or (1280, 720)), float(frames))
        return replace(scene, settings=replace(scene.settings, keyframes=tuple(keys)))

    @classmethod
    def ignored(cls, settings: Settings) -> dict[str, int]:
        """Counts of the attributes in the flame's file that are not drawn."""
        return dict(settings.ignored)

    @classmethod
    def device_bytes(cls, settings: Settings, size: Size) -> int:
        """Bytes of the histograms (on CPUs one for each core), the sums, the log-densities and the pixels at the peak.

        Large pictures are developed in tiles, after the histograms are freed (keeps_samples).
        """
        game, sums = _game_bytes(settings, size)
        parts = size if not _is_developed_in_tiles(settings, size) else (DEVELOPED_SIDE // 2,) * 2
        buckets = BucketGrid.for_tile(settings, size, (0, 0, *parts)).rect.buckets
        develops = buckets * (36 if settings.estimator_radius > 0 else 16) + 16 * parts[0] * parts[1]
        if parts == size:
            return game + develops
        return max(game, sums + develops + buckets * sums // _whole_grid(settings, size).rect.buckets)

    @classmethod
    def fits_whole(cls, settings: Settings, size: Size) -> bool:
        """True for large flames of one pass whose sums have room in memory."""
        if _is_developed_in_tiles(settings, size):
            with suppress(InputError, UnavailableError):
                check_memory(cls.device_bytes(settings, size), "settings: size")
                return True
        return False

    def keeps_samples(self, settings: Settings, size: Size) -> bool:
        """fits_whole(), and the device has room too."""
        device, (game, sums) = self.gpu.device.properties, _game_bytes(settings, size)
        has_room = max(sums, game - sums) <= device.max_buffer_bytes and game <= 0.8 * device.memory_bytes
        return has_room and self.fits_whole(settings, size)

    def developed(self, tile: Tile) -> Frame:
        """The frame of a tile of the picture drawn at once; after the last tile, at its end, the sums are freed."""
        self._game.end()
        self._part = None  # frees the last tile's
        grid = BucketGrid.for_tile(self._plan.flame, self._plan.size, tile)
        self._plan, self._part = replace(self._plan, tile=tile, grid=grid), self._game.cropped(grid.rect)
        if (tile[0] + tile[2], tile[1] + tile[3]) == self._plan.size:
            self._game.end(frees_sums=True)
        return self._frame()

    def never_block(self) -> None:
        """From now on the generic kernel draws flames whose specialized kernel is not compiled."""
        self._game.kernels.never_block()

    def prefer_generic(self, flames: int) -> None:
        """From now on the generic kernel draws most flames, because this picture draws `flames` flames once each."""
        self._game.kernels.prefer_generic(flames)

    def wait_ready(self) -> None:
        """After never_block(), wait until the generic kernel is compiled."""
        self._game.kernels.wait_ready()

    def begin(self, settings: Settings, size: Size, time: float, tile: Tile) -> None:
        """Start the chains of the first pass."""
        self._start(_make_plan(settings, size, time, tile))

    def _start(self, plan: _Plan, chunk: tuple[int, int] = (0, 1)) -> None:
        self._plan, self._batch, self._past_passes, self._part = plan, 0, [], None
        self._chunk_key, self._chunk_extra_steps = None, ()
        self._start_pass(0, chunk)

    def _start_pass(self, index: int, chunk: tuple[int, int] = (0, 1)) -> None:
        """Start a pass, which has its own temporal samples and chains."""
        plan, settings = self._plan, self._plan.settings
        started: Pass = plan.passes[index]
        fixed = settings.y_axis, plan.size, plan.flame.supersample, plan.grid.gutter, settings.pixel_aspect
        cameras = [bucket_transform(sample.view, sample.flame, *fixed) for sample in started.temporal_samples]
        self._pass, self._earlier = index, None
        self._game.restart(
            [sample.flame for sample in started.temporal_samples], cameras, started.temporal_weights, plan.grid.rect,
            plan.schedule.chains, settings.seed + (index << 64), chunk,  # each pass has other random numbers
            started.sample_weights if started.needs_hit_counts else None,
        )  # fmt: skip

    def add_sample(self, settings: Settings, size: Size, time: float, tile: Tile) -> Frame:
        """Draw the next batch."""
        schedule: SampleSchedule = self._plan.schedule
        if self._batch == schedule.batches and self._pass + 1 < len(self._plan.passes):
            self._next_pass()
        self._game.advance(schedule.batch_steps(self._batch))
        self._batch += 1
        if self._batch == schedule.batches:
            self._replace_bad_values()
        return self._frame() if self.shows_each else self._game.sums

    def current_frame(self, frame: Frame) -> Frame:
        """The picture of all samples; draw() returns only their sums if `shows_each` is False."""
        return self._frame()

    def _frame(self) -> Frame:
        """The picture of all samples so far."""
        plan, index, pass_ = self._plan, self._pass, self._plan.passes[self._pass]
        scale = plan.pixels_per_unit(index)
        game: Any = self._part or self._game
        return self._postprocess(game, pass_, plan.grid, plan.tile[2:], plan.settings, scale, index)

    def _next_pass(self) -> None:
        """Keep the log-density of the present pass and start the chains of the next pass."""
        self._frame()
        self._postprocess.end_pass(self._pass)
        game = self._game
        self._past_passes.append((game.samples, game.bad_values(), game.sums.read()))
        self._batch = 0
        self._start_pass(self._pass + 1)

    def _replace_bad_values(self) -> None:
        """Make further steps for the samples that ended in bad values, so that a finished picture has all samples."""
        game = self._game
        for _ in range(MAX_REPLACEMENT_ROUNDS):
            steps = self._plan.schedule.replacement_steps(game.samples, game.bad_values())
            if not steps:
                break
            game.advance(steps)

    def sample_count(self, settings: Settings, size: Size) -> int:
        """Batches of all passes."""
        return self.planned_samples(settings, size)

    @classmethod
    def planned_samples(cls, settings: Settings, size: Size) -> int:
        """Batches of all passes."""
        samples, _ = make_temporal_samples(settings, _first_time(settings))
        return middle_sample(samples).flame.passes * make_schedule(samples, size).batches

    def fraction_done(self, drawn: int, total: int) -> float:
        """Fraction of the steps of `total` batches that are done; the first batches are smaller than the later ones."""
        schedule, earlier = self._plan.schedule, len(self._plan.passes) - 1
        steps = self._pass * schedule.steps_per_chain + max(self._game.steps - self._game.fuse, 0)
        last = schedule.steps_after(total - earlier * schedule.batches)
        return min(steps / max(earlier * schedule.steps_per_chain + last, 1), 1.0)

    def depends_on_time(self, settings: Settings) -> bool:
        """True if there are key frames to interpolate."""
        return len(settings.keyframes) > 1

    # Chunks are ranges of chains, whose sums are integers.

    def chunks(self, settings: Settings, size: Size, samples: int, max_count: int) -> list[Chunk]:
        """At most `max_count` chunks (k, n); [] for unfinished pictures, whose bad values are not replaced."""
        if samples != self.sample_count(settings, size):
            return []
        temporal, _ = make_temporal_samples(settings, _first_time(settings))
        count = min(max_count, make_schedule(temporal, size).chains // BLOCK)
        return [(k, count) for k in range(count)]

    def draw_chunk(
        self, settings: Settings, size: Size, time: float, chunk: Chunk, extra_steps: ExtraSteps
    ) -> ChunkResults:
        """The partial results of chunk k of n, by pass: sums (buckets, 4) uint64, bad values, hits if counted.

        `extra_steps` are the steps of each pass that missing_steps() returned. A chunk that the device still holds is
        continued.
        """
        chains = chunk[0], chunk[1]
        key = (settings, size, chains, time if self.depends_on_time(settings) else 0.0)
        resumes = key == self._chunk_key and len(self._plan.passes) == 1
        resumes = resumes and extra_steps[: len(self._chunk_extra_steps)] == self._chunk_extra_steps
        self.restart()
        if not resumes:
            self._start(_make_plan(settings, size, time, (0, 0, *size)), chains)
        results = []
        for index in range(len(self._plan.passes)):
            if index:
                self._start_pass(index, chains)
            steps = sum(steps[index] for steps in extra_steps[len(self._chunk_extra_steps) :])
            self._game.advance(steps if resumes else self._plan.schedule.steps_per_chain + steps)
            results.append(self._game.partial_result())
        self._chunk_key, self._chunk_extra_steps = key, extra_steps
        return {"passes": results}

    def start_merge(self, settings: Settings, size: Size, time: float) -> None:
        """Start a picture whose sums merge() fills."""
        self.restart()
        self._merged = []
        self._start(_make_plan(settings, size, time, (0, 0, *size)))

    def merge(self, drawn: ChunkResults) -> None:
        """Add the partial results of one chunk."""
        if self._merged:
            pairs = zip(self._merged, drawn["passes"], strict=True)
            # Sums, bad values and hits add up; the key of a solid flame's nearest point is the largest.
            merge = {"nearest": np.maximum}
            self._merged = [{n: merge.get(n, np.add)(ours[n], theirs[n]) for n in ours} for ours, theirs in pairs]
        else:
            self._merged = drawn["passes"]

    def missing_steps(self, extra_steps: ExtraSteps) -> tuple[int, ...]:
        """Steps of each pass that every chunk must make to replace bad values; () for none."""
        if len(extra_steps) == MAX_REPLACEMENT_ROUNDS:
            return ()
        replace_steps = self._plan.schedule.replacement_steps
        steps = [replace_steps(self._pass_samples(k, extra_steps), one["bad"]) for k, one in enumerate(self._merged)]
        return tuple(steps) if any(steps) else ()

    def _pass_samples(self, index: int, extra_steps: ExtraSteps) -> int:
        """Samples of a pass, bad values among them, with the extra steps."""
        schedule = self._plan.schedule
        return (schedule.steps_per_chain + sum(steps[index] for steps in extra_steps)) * schedule.chains

    def merged_frame(self, extra_steps: ExtraSteps) -> Frame:
        """The finished picture of the merged chunks."""
        for index, merged in enumerate(self._merged):
            if index:
                self._next_pass()
            self._game.load_result(merged, self._pass_samples(index, extra_steps))
        return self._frame()

    # Results of the last draw.

    def layers(self, settings: Settings, size: Size, tile: Tile | None = None) -> dict[str, np.ndarray]:
        """The histogram per pixel, linear in the samples, before exposure and filters.

        `density` (height, width): hits. `color_sum` (height, width, 3): sum of their palette colors, 0 to 1 each.
        """
        plan = self._plan
        assert (plan.settings, plan.size, plan.tile) == (settings, size, tile or (0, 0, *size)), "not the last draw"
        rect, n = plan.grid.rect, plan.flame.supersample
        sums = sum((past for _, _, past in self._past_passes), (self._part or self._game).sums.read())
        left, top, width, height = plan.tile
        first_row = plan.grid.gutter + top * n - rect.top
        first_column = plan.grid.gutter + left * n - rect.left
        buckets = sums.reshape(rect.rows, rect.columns, 4)
        buckets = buckets[first_row : first_row + height * n, first_column : first_column + width * n].astype("f8")
        pixels = buckets.reshape(height, n, width, n, 4).sum((1, 3)) / 255
        return {"density": pixels[..., 3].astype("f4"), "color_sum": pixels[..., :3].astype("f4")}

    def noise(self) -> float | None:
        """The root mean square error of the displayed picture, from the difference of two halves of its samples.

        Each half is exposed and filtered by itself. They have nA and nB samples and independent noise, so the error of
        the picture is sqrt(nA nB) / (nA + nB) times their difference. None until the second half has at least half the
        samples of the first.
        """
        plan, game = self._plan, self._game
        if len(plan.passes) > 1 or plan.flame.solid:
            return float("inf")
        samples, earlier = game.samples, self._earlier
        if earlier is not None and samples - earlier.samples < earlier.samples / 2:
            return None
        now = SampledSums(game.rect, samples, game.bad_values(), game.sums.read(), game.hit_sums.read())
        if earlier is None:
            self._earlier = now
            return None
        later = now - earlier
        if later.samples >= earlier.samples:
            self._earlier = now
        first_half, second_half = (self._displayed(sums) for sums in (earlier, later))
        factor = math.sqrt(earlier.samples * later.samples) / samples
        return float(np.sqrt(np.mean((first_half - second_half) ** 2)) * factor)

    def _displayed(self, sums: SampledSums) -> np.ndarray:
        """The picture of a subset of the samples: (height, width, 3) sRGB values, 0 to 1."""
        plan, pass_, scale = self._plan, self._plan.passes[self._pass], self._plan.pixels_per_unit(self._pass)
        device_sums: Any = sums.on_device(self.gpu.device)  # in place of a ChaosGame
        self._noise_postprocess = self._noise_postprocess or Postprocess(self.gpu.device)
        frame = self._noise_postprocess(device_sums, pass_, plan.grid, plan.tile[2:], plan.settings, scale)
        return linear_to_srgb(frame.read()[..., :3]) / 255.0

    def report(self) -> dict[str, object]:
        """Samples, bad values, and the fraction of the samples inside of the frame; reads the histogram."""
        game, plan = self._game, self._plan
        alpha, bad, samples = game.sum_of_alpha(), game.bad_values(), game.samples
        for past_samples, past_bad, past_sums in self._past_passes:
            alpha, bad, samples = alpha + int(past_sums[:, 3].sum()), bad + past_bad, samples + past_samples
        steps = plan.schedule.batch_steps(max(self._batch - 1, 0))
        weight = float(np.mean([one.temporal_weights for one in plan.passes[: self._pass + 1]]))
        return {
            "samples": samples - bad,
            "last_batch": f"{plan.schedule.chains} chains x {steps} steps",
            "bad_values": bad,
            "in_frame": float(alpha / 255 / weight / max(samples - bad, 1)),
            "chains": game.chains,
            "temporal_samples": len(plan.passes[self._pass].temporal_samples),
            "passes": plan.flame.passes,
        }
