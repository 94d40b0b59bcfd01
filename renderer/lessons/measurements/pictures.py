"""Measurements of lessons on pictures: frame rate and noise over a setting's values, and active rays at each bounce.

Each class is a kind of [steps.measure] (see the package); base.py has the interface.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from renderer.errors import InputError
from renderer.formats.images import linear_to_srgb
from renderer.lessons.measurements.base import Bench, Finding, PanelMeasurement, Timed, curves, vary
from renderer.pictures import picture_class
from renderer.pictures.picture import Frame
from renderer.plain import Json, is_finite_number
from renderer.records import dataclass, fields, replace
from renderer.scene.scene import Scene
from renderer.scene.schema import EMPTY, setting

Value = int | float | str  # of a setting, on the axis of a figure
MAX_VARIANTS, MAX_VALUES = 8, 16


@dataclass(frozen=True)
class _Sweep(PanelMeasurement):
    """The base of measurements that draw a panel for each of `values` of the setting `key`.

    `variants` maps names to further settings; each variant is a series of the figure.
    """

    key: str
    values: tuple[Any, ...]
    variants: dict[str, Json] = setting(EMPTY)
    size: tuple[int, int] = setting((480, 270), 16, 2048)
    gpu_size: tuple[int, int] | None = setting(
        None, 16, 4096, "where the device is a GPU, which smaller ones leave idle"
    )

    def __post_init__(self) -> None:
        if not 1 <= len(self.values) <= MAX_VALUES:
            raise ValueError(f"values must be 1 to {MAX_VALUES}")
        if not all(is_finite_number(v) or isinstance(v, str) for v in self.values):
            raise ValueError("values must be numbers or texts")
        if len(self.variants) > MAX_VARIANTS:
            raise ValueError(f"variants must be at most {MAX_VARIANTS}")

    def check(self, context: str, scenes: Mapping[str, Scene]) -> None:
        """Raises InputError for settings that the panel's picture does not have."""
        super().check(context, scenes)
        for values in self.named_variants().values():
            scene = vary(scenes[self.panel], values, f"{context}: variants")
            for value in self.values:
                vary(scene, {self.key: value}, f"{context}: values")

    def named_variants(self) -> Mapping[str, Json]:
        """Returns the variants, or one without changes, named as the panel, if there are none."""
        return self.variants or {self.panel: {}}

    def size_on(self, bench: Bench) -> tuple[int, int]:
        """Returns the size (width, height) of the pictures on this bench's device."""
        is_gpu = not bench.gpu.device.properties.scalar_threads
        return bench.size(self.gpu_size if is_gpu and self.gpu_size else self.size)

    def runs(self, bench: Bench) -> dict[tuple[str, Value], tuple[Scene, Callable[[], Frame]]]:
        """Returns, by (variant, value), the scene and a function that draws one sample of it."""
        size = self.size_on(bench)
        out: dict[tuple[str, Value], tuple[Scene, Callable[[], Frame]]] = {}
        for value in self.values:
            for name, values in self.named_variants().items():
                scene = vary(vary(bench.scenes[self.panel], values), {self.key: value})
                out[name, value] = scene, partial(bench.picture(scene).draw, scene.settings, size, 0.0)
        return out

    @property
    def x_name(self) -> str:
        """Returns the label of the axis of the values."""
        return self.key.replace("_", " ")


@dataclass(frozen=True)
class FrameRate(_Sweep):
    """Frames a second, each a sample of every pixel, over the values of a setting."""

    def find(self, bench: Bench) -> Finding:
        """Times the first sample of each picture, which is restarted before every draw."""
        runs = self.runs(bench)
        devices: list[str] = []

        def pair(scene: Scene, draw: Callable[[], Frame]) -> Timed:
            """Two functions for one picture: the first draws it, the second waits for the device."""
            last: list[Frame] = []

            def run() -> None:
                bench.picture(scene).restart()
                last[:] = [draw()]

            def finish() -> None:
                frame = last[0]
                frame.device.finish()
                devices[:] = [frame.device.name]

            return run, finish

        rates = bench.rates({key: pair(*each) for key, each in runs.items()}, lambda _: 1)
        device = devices[0] if devices else ""
        log_x = all(is_finite_number(v) and v > 0 for v in self.values) and max(self.values) >= 32 * min(self.values)
        width, height = self.size_on(bench)
        series, notes = curves(rates, self.values), (f"pictures of {width} x {height}",)
        return Finding(self.values, series, self.x_name, "frames/s", log_x=log_x, device=device, notes=notes)


@dataclass(frozen=True)
class Noise(_Sweep):
    """The noise of displayed pictures over a setting: the RMS difference from a reference picture in percent of white.

    In the reference picture the setting has the value `reference` and the seed differs. Pictures have all samples.
    """

    reference: Any = 1024
    size: tuple[int, int] = setting((96, 96), 16, 512)

    def check(self, context: str, scenes: Mapping[str, Scene]) -> None:
        """Raises InputError for a picture without a seed."""
        super().check(context, scenes)
        if not any(field.name == "seed" for field in fields(scenes[self.panel].settings)):
            raise InputError(f"{context}: panel: a {scenes[self.panel].picture} picture has no seed, and no noise")
        vary(scenes[self.panel], {self.key: self.reference}, f"{context}: reference")

    def find(self, bench: Bench) -> Finding:
        """Draws the reference and the pictures, and measures their differences."""
        first_variant = next(iter(self.named_variants().values()))
        base = vary(vary(bench.scenes[self.panel], first_variant), {self.key: self.reference})
        # the reference has as much time again: its draws are not counted in bench.spent
        reference, device, drawn = self._draw(bench, vary(base, {"seed": 77}), bench.seconds)
        noise: dict[tuple[str, Value], float | None] = {}
        for key, (scene, _) in self.runs(bench).items():
            if bench.spent < bench.seconds:
                start = time.perf_counter()
                pixels, _, fraction = self._draw(bench, scene, bench.seconds - bench.spent)
                bench.spent += time.perf_counter() - start
                if fraction == 1:
                    noise[key] = 100 * float(np.sqrt(np.mean((pixels - reference) ** 2)))
        numbers = all(map(is_finite_number, self.values))
        shortfall = "" if drawn == 1 else f", of which {drawn:.0%} were drawn in time"
        notes = (f"the reference has {self.x_name} {self.reference}{shortfall}",)
        found = Finding(self.values, curves(noise, self.values), self.x_name, "noise, % of white")
        return replace(found, log_x=numbers, log_y=True, device=device, notes=notes)

    def _draw(self, bench: Bench, scene: Scene, limit: float) -> tuple[np.ndarray, str, float]:
        """Draws a picture for at most `limit` seconds after its first sample, which may wait for a compiler.

        Returns the displayed picture (height, width, 3), 0 to 1, the device's name, and the fraction of samples drawn.
        """
        picture, size = bench.picture(scene), self.size_on(bench)
        picture.restart()
        count, end, drawn = picture.sample_count(scene.settings, size), np.inf, 0
        while drawn < count and time.perf_counter() < end:
            frame = picture.draw(scene.settings, size, 0.0)
            frame.device.finish()
            drawn, end = drawn + 1, end if drawn else time.perf_counter() + limit
        linear = np.clip(np.nan_to_num(frame.read()[..., :3]), 0, 1)
        return linear_to_srgb(linear).astype("f4") / 255, frame.device.name, drawn / count


@dataclass(frozen=True)
class LiveRays(PanelMeasurement):
    """The rays that are active as each bounce begins, and the warps with an active ray, in percent.

    A warp is a word of the stencil: 32 rays.
    """

    size: tuple[int, int] = setting((480, 272), 16, 2048)

    def check(self, context: str, scenes: Mapping[str, Scene]) -> None:
        """Raises InputError for a picture without a stencil."""
        super().check(context, scenes)
        kind = scenes[self.panel].picture
        if "stencil" not in picture_class(kind).algorithm_names:
            raise InputError(f"{context}: panel: a {kind} picture has no stencil")

    def find(self, bench: Bench) -> Finding:
        """Traces one sample and reads its stencil at each bounce."""
        scene, size = bench.scenes[self.panel], bench.size(self.size)
        picture: Any = bench.picture(scene)
        trace = picture.trace_stages(scene.settings, size)  # one sample with its state at each bounce (stage_trace.py)
        live = [np.asarray(trace.live_rays(depth)) for depth in range(trace.depths)]
        words = [np.asarray(trace.occupancy(depth)) for depth in range(trace.depths)]
        series = {
            "rays alive": tuple(100 * float(each.mean()) for each in live),
            "warps at work": tuple(100 * float((each > 0).mean()) for each in words),
        }
        return Finding(tuple(range(trace.depths)), series, "bounce", "%", device=picture.device.name)
