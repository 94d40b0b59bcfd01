"""Refocusing light fields at full aperture: shift and add over every view, bilinear in linear light."""

import tempfile
import time
from pathlib import Path

import numpy as np

from renderer.bench.cases import Case
from renderer.formats.images import srgb_to_linear
from renderer.pictures.lightfield import Picture, Settings

DISPARITY = 0.73  # every view but the middle ones lies between pixels
LINEAR = srgb_to_linear(np.arange(256, dtype="u1"))


def cases(gpu) -> list[Case]:
    """9 x 9 views of 512 x 512 on CPUs; also 17 x 17 of 1024 x 1024, 867 MiB, on GPUs."""
    small = refocus_case(gpu, 9, 512)
    return [small] if gpu.device.properties.scalar_threads else [small, refocus_case(gpu, 17, 1024)]


def refocus_case(gpu, cameras: int, side: int) -> Case:
    folder = tempfile.TemporaryDirectory()  # lives as long as the case
    path = Path(folder.name) / "field.npy"
    picture, settings = Picture(gpu), Settings(str(path), aperture_shape="all", disparity=DISPARITY)
    shape = (cameras, cameras, side, side, 3)

    def run(_kept=folder):
        if not path.exists():
            make_field(path, shape)
        return picture.draw(settings, (side, side), 0.0)

    def check() -> None:
        frame, views = run().read(), np.load(path, mmap_mode="r")
        if cameras * side < 5000:
            np.testing.assert_allclose(frame[..., :3], by_numpy(views), atol=2e-6)
        rng = np.random.default_rng(5)
        for y, x in rng.integers(0, side, (64, 2)):
            np.testing.assert_allclose(frame[y, x, :3], one_pixel(views, x, y), atol=2e-6)

    def peer() -> float:
        views = np.load(path)
        start = time.perf_counter()
        by_numpy(views)
        return time.perf_counter() - start

    facts = {"views": cameras * cameras, "side": side, "bytes": int(np.prod(shape)), "disparity": DISPARITY}
    name = f"{cameras}x{cameras}-{side}"
    by_peer = (peer, "NumPy, slices of a table look-up") if cameras * side < 5000 else (None, "")
    return Case(name, "frames/s", 1.0, run, check, gpu.device, *by_peer, facts=facts)


def make_field(path: Path, shape) -> None:
    """Random bytes, one view at a time; no view's bytes can be told from another's."""
    field = np.lib.format.open_memmap(path, "w+", np.uint8, shape)
    rng = np.random.default_rng(3)
    for row, column in np.ndindex(shape[:2]):
        field[row, column] = rng.integers(0, 256, shape[2:], dtype="u1")
    field.flush()


def shifts(cameras: int) -> np.ndarray:
    return -DISPARITY * (np.arange(cameras) - (cameras - 1) / 2)


def by_numpy(views) -> np.ndarray:
    """(side, side, 3) float32: the fastest plain NumPy: whole views, a table look-up, four slices, the weight image."""
    cameras, side = len(views), views.shape[2]
    total, weight = np.zeros((side, side, 3), "f4"), np.zeros((side, side, 1), "f4")
    for row, dy in enumerate(shifts(cameras)):
        iy, fy = int(np.floor(dy)), np.float32(dy - np.floor(dy))
        top, bottom = max(0, -iy), min(side, side - iy - (fy > 0))
        for column, dx in enumerate(shifts(cameras)):
            ix, fx = int(np.floor(dx)), np.float32(dx - np.floor(dx))
            left, right = max(0, -ix), min(side, side - ix - (fx > 0))
            part = views[row, column, top + iy : bottom + iy + 1, left + ix : right + ix + 1]
            light = np.take(LINEAR, part)
            across = light[:, : right - left] * (1 - fx)
            if fx:
                across += light[:, 1 : right - left + 1] * fx
            down = across[: bottom - top] * (1 - fy)
            if fy:
                down += across[1 : bottom - top + 1] * fy
            total[top:bottom, left:right] += down
            weight[top:bottom, left:right] += 1
    return total / np.maximum(weight, 1)


def one_pixel(views, x: int, y: int) -> np.ndarray:
    """The refocused pixel (x, y), in float64, view by view."""
    cameras, side = len(views), views.shape[2]
    total, weight = np.zeros(3), 0.0
    for row, dy in enumerate(shifts(cameras)):
        for column, dx in enumerate(shifts(cameras)):
            px, py = x + dx, y + dy
            if 0 <= px <= side - 1 and 0 <= py <= side - 1:
                ix, iy = min(int(px), side - 2), min(int(py), side - 2)
                corner = LINEAR[views[row, column, iy : iy + 2, ix : ix + 2]].astype("f8")
                across = corner[:, 0] * (1 - (px - ix)) + corner[:, 1] * (px - ix)
                total += across[0] * (1 - (py - iy)) + across[1] * (py - iy)
                weight += 1
    return total / weight
