"""The chaos game: samples a second in frame, sums included; a whole 4K picture; flam3-render beside
it.
"""

import math
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from functools import cache

import numpy as np

from renderer.bench.cases import Case
from renderer.flames import evolve
from renderer.flames.camera import plane_to_buckets
from renderer.flames.chaos_game import ChaosGame
from renderer.flames.interpolation import KeyFrame
from renderer.flames.postprocess import BucketGrid, Postprocess
from renderer.flames.sample_schedule import SampleSchedule
from renderer.flames.settings import Settings
from renderer.flames.temporal import Pass
from renderer.flames.xml.write import to_xml
from renderer.paths import ROOT
from renderer.pictures import load
from renderer.pictures.flame import Picture

SIZE, CPU_SIZE = (1920, 1080), (512, 512)
FLAMES = {"affine 3 maps": "sierpinski.toml", "affine 4 maps": "fern.toml", "5 maps, 7 variations": "lantern.flame"}
CPU_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cases(gpu):
    settings = {
        name: replace(load(ROOT / "scenes" / file).settings, estimator_radius=0.0) for name, file in FLAMES.items()
    }
    out = [samples(gpu, name, each) for name, each in settings.items()]
    out += [poster(gpu, name, settings[name]) for name in ("affine 4 maps", "5 maps, 7 variations")]
    return [*out, first_picture(gpu)]


def started(device, settings, size, chains: int, seed=1) -> tuple[ChaosGame, BucketGrid]:
    """The game of a flame over a picture of `size`, not yet played."""
    grid = BucketGrid.for_tile(settings, size, (0, 0, *size))
    camera = plane_to_buckets(settings.view, settings.y_axis, size, settings.supersample, grid.gutter)
    game = ChaosGame(device)
    game.restart([settings], [camera], [1.0], grid.rect, chains, seed)
    return game, grid


def in_frame(game: ChaosGame) -> float:
    return float(game.sums.read()[:, 3].sum()) / 255 / game.samples


def samples(gpu, name: str, settings) -> Case:
    """Samples in frame, added up exactly, a second; how many are in frame is found by the check."""
    device = gpu.device
    chains, total = (1 << 20, 1 << 30) if device.simd_width == 1 else (1 << 15, 1 << 25)
    size = SIZE if device.simd_width == 1 else CPU_SIZE
    opened = cache(lambda: started(device, settings, size, chains)[0])

    def check() -> bytes:
        game = opened()
        for _ in range(4):
            game.advance((1 << 24) // chains or 1)
        case.facts["in_frame"] = share = in_frame(game)
        case.work = total * share / 1e9
        one, two = (started(device, settings, (480, 270), 4096)[0] for _ in range(2))
        one.advance(512)
        for part in (1, 30, 481):
            two.advance(part)
        sums = one.sums.read()
        assert np.array_equal(sums, two.sums.read())
        assert sums[:, 3].sum() <= 255 * one.samples and (sums[:, :3] <= sums[:, 3:]).all()
        return sums.tobytes()

    case = Case(
        f"samples {name}", "Gsamples/s", total / 1e9, lambda: opened().advance(total // chains), check, device,
        facts=dict(size=size, chains=chains),
    )  # fmt: skip
    if device.simd_width > 1 and shutil.which("flam3-render"):
        case.peer, case.peer_name = (lambda: flam3(settings, case.work * 1e9)), f"flam3-render, {CPU_CORES} threads"
    return case


def poster(gpu, name: str, settings) -> Case:
    """A whole picture of 3840 x 2160 at 1024 samples a pixel, from its seed to its pixels (a sixteenth of that on
    CPUs).
    """
    device, size = gpu.device, (3840, 2160)
    quality = 1024.0 if device.simd_width == 1 else 1.0
    wanted = replace(settings, quality=quality)
    schedule = SampleSchedule(quality, size, 1)
    whole = Pass([], np.ones(1), np.ones(1), wanted, 1.0)
    opened = cache(lambda: (*started(device, wanted, size, schedule.chains), Postprocess(device)))
    seeds = iter(range(1, 1 << 30))

    def run():
        game, grid, postprocess = opened()
        camera = plane_to_buckets(wanted.view, wanted.y_axis, size, wanted.supersample, grid.gutter)
        game.restart([wanted], [camera], [1.0], grid.rect, schedule.chains, next(seeds))
        game.advance(min(schedule.steps_per_chain, 16))
        for _ in range(4):
            game.advance((schedule.steps_per_chain - 16) // 4)
        return postprocess(game, whole, grid, size, wanted, size[1] / wanted.view.height)

    def check() -> None:
        small = (480, 270)
        picture = Picture(gpu)
        pixels = picture.draw(replace(wanted, quality=4.0), small, 0.0).read()
        assert np.isfinite(pixels).all() and 0.01 < (pixels[..., :3].max(2) > 0).mean() < 1
        shown = run().read()
        assert np.isfinite(shown).all() and (shown[..., :3].max(2) > 0).mean() > 0.01

    facts = dict(size=size, quality=quality, samples=schedule.samples)
    return Case(f"4K quality {quality:g} {name}", "pictures/s", 1.0, run, check, device, facts=facts)


def first_picture(gpu) -> Case:
    """The first picture of flames whose specialization was never seen, each run another: from settings to pixels."""
    device = gpu.device
    size = SIZE if device.simd_width == 1 else CPU_SIZE
    rng, opened = np.random.default_rng(4), cache(lambda: Picture(gpu))

    def unseen() -> Settings:
        flame = evolve.random_flame(rng)
        return Settings(xforms=flame.xforms, final_xform=flame.final_xform, palette=flame.palette, quality=50.0)

    def check() -> None:
        picture = opened()
        picture.never_block()
        picture.draw(Settings(), size, 0.0)
        picture.wait_ready()
        settings, patient = unseen(), Picture(gpu)
        assert np.array_equal(picture.draw(settings, size, 0.0).read(), patient.draw(settings, size, 0.0).read())

    facts = dict(size=size)
    return Case(
        "first picture of an unseen structure", "pictures/s", 1.0, lambda: opened().draw(unseen(), size, 0.0), check,
        device, facts=facts,
    )  # fmt: skip


def flam3(settings, total: float) -> float:
    """Seconds that flam3-render takes for so many iterations of the flame: the difference of two qualities, so that
    its start and its tone mapping do not count.
    """
    size = CPU_SIZE
    key = KeyFrame(settings, size=size, center=(settings.view.center[0], -settings.view.center[1]))
    key = replace(key, scale=size[1] / settings.view.height, rotate=settings.view.rotation_degrees)

    def seconds(quality: float) -> float:
        flame = replace(settings, quality=quality, temporal_samples=1)
        text = to_xml([replace(key, flame=flame)])
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, out=f"{folder}/a.png", bits="64", nthreads=str(CPU_CORES), verbose="0")
            start = time.perf_counter()
            subprocess.run(["flam3-render"], input=text.encode(), env=environment, capture_output=True, check=True)
            return time.perf_counter() - start

    low, high = 20.0, 120.0
    rate = (high - low) * math.prod(size) / (seconds(high) - seconds(low))
    return total / rate
