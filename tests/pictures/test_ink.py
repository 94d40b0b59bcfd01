"""The picture "ink": its matrix against finite differences, its steps against SciPy's sparse LU, its promises."""

import platform
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import diags, lil_matrix
from scipy.sparse.linalg import spsolve

from renderer.formats.images import linear_to_srgb
from renderer.gpu import DeviceContext
from renderer.paths import SCENES
from renderer.pictures import load
from renderer.pictures.ink import (
    Picture,
    Settings,
    SourceAndWind,
    assemble_matrix,
    flow_grid,
    initial_condition,
    velocity_field,
)
from tests import emulated
from tests.emulated import compiler

SCENE = SCENES / "ink.toml"
SMALL = Settings(grid=24, time_step=0.05, diffusion=1e-3, source_radius=0.1)


@pytest.fixture(scope="session")
def picture(device):
    class One(DeviceContext):
        devices = [device]

    return Picture(One())


def sparse_of(cells, settings):
    """The step's matrix written cell by cell, in picture coordinates."""
    u, v = velocity_field(cells, settings)
    n, h, dt, kappa = cells.major * cells.minor, cells.spacing, settings.time_step, settings.diffusion
    a = lil_matrix((n, n))
    for p in range(cells.major):
        for q in range(cells.minor):
            k = p * cells.minor + q
            a[k, k] += 1
            # neighbors: to the right, left, up, down on the picture, with the speed towards each
            ways = [((1, 0), u[p, q]), ((-1, 0), -u[p, q]), ((0, 1), v[p, q]), ((0, -1), -v[p, q])]
            for (dx, dy), speed in ways:
                step = (dx, -dy) if cells.wide else (-dy, dx)
                r, s = p + step[0], q + step[1]
                if settings.scheme == "central":
                    own, other = kappa / h**2, speed / (2 * h) - kappa / h**2
                else:
                    own, other = kappa / h**2 + max(-speed, 0) / h, min(speed, 0) / h - kappa / h**2
                a[k, k] += dt * own
                if 0 <= r < cells.major and 0 <= s < cells.minor:
                    a[k, r * cells.minor + s] += dt * other
                elif speed >= 0:  # the wind leaves here: the cell beyond is like this one
                    a[k, k] += dt * other
    return a.tocsc()


def sparse_of_band(ab, m):
    offsets = [m - d for d in range(2 * m + 1)]
    return diags([ab[d, max(o, 0) : ab.shape[1] + min(o, 0)] for d, o in enumerate(offsets)], offsets).tocsc()


@pytest.mark.parametrize("scheme", ["central", "upwind"])
@pytest.mark.parametrize("size", [(48, 32), (32, 48), (32, 32)])
def test_matrix_is_the_difference_scheme(size, scheme):
    settings = replace(SMALL, scheme=scheme, grid=16, view=SourceAndWind(wind=(0.4, -0.2)))
    cells = flow_grid(size, 16)
    difference = sparse_of_band(assemble_matrix(cells, settings), cells.minor) - sparse_of(cells, settings)
    assert abs(difference).max() < 2e-6 * abs(sparse_of(cells, settings)).max()


@pytest.mark.parametrize("size", [(36, 24), (24, 36)])
def test_steps_equal_a_sparse_solver(picture, size):
    cells = flow_grid(size, SMALL.grid)
    a, density = sparse_of(cells, SMALL), initial_condition(cells, SMALL).reshape(3, -1)
    x, y = (c.ravel() for c in cells.centers)
    blob = np.exp(-((x - SMALL.view.source[0]) ** 2 + (y - SMALL.view.source[1]) ** 2) / SMALL.source_radius**2)
    ink = -np.log(SMALL.source_color)[:, None]
    for _ in range(4):
        frame = picture.draw(SMALL, size, 0.0)
        density = spsolve(a, (density + SMALL.source_rate * SMALL.time_step * blob * ink).T).T
    ours = picture._density.read()[:, : density.shape[1]]
    assert np.abs(ours - density).max() < 2e-5 * np.abs(density).max()
    shown = frame.read()
    assert shown.shape == (size[1], size[0], 4)
    grid = density.reshape(3, cells.major, cells.minor).transpose((2, 1, 0) if cells.wide else (1, 2, 0))
    wanted = np.array(SMALL.paper_color) * np.exp(-np.maximum(grid, 0))  # pixels and cells coincide at this size
    assert np.abs(shown[..., :3] - wanted).max() < 1e-4


def test_dragging_solves_and_panning_refactors(picture, monkeypatch):
    size = (24, 24)
    picture.draw(SMALL, size, 0.0)
    lu, factored = picture._lu, []
    monkeypatch.setattr(lu, "refactor", lambda ab, keep=lu.refactor: factored.append(1) or keep(ab))
    steps = picture.report()["steps"]
    picture.draw(replace(SMALL, view=SMALL.view.drag(0.1, 0.1)), size, 0.0)
    assert not factored and picture._lu is lu
    picture.draw(replace(SMALL, view=SMALL.view.pan(0.1, 0.0)), size, 0.0)
    assert len(factored) == 1 and picture._lu is lu and picture.report()["steps"] == steps + 2
    picture.draw(replace(SMALL, source_rate=1.0), size, 0.0)
    assert len(factored) == 2 and picture.report()["steps"] == 1  # another picture: it starts anew
    assert SMALL.view.drag(0.1, 0.2).source == pytest.approx((-0.25, -0.1)) and SMALL.view.scroll(1).wind[0] > 0.45


def test_a_restarted_picture_is_a_fresh_one(picture):
    """Frames of a film may differ by the pen alone, which does not start the picture anew; a farm deals them out."""
    size, moved = (30, 24), replace(SMALL, view=SourceAndWind(source=(0.1, -0.2), wind=(-0.3, 0.2)))
    fresh = Picture(SimpleNamespace(device=picture.device))
    wanted = [fresh.draw(moved, size, 0.0).read() for _ in range(3)]
    picture.draw(SMALL, size, 0.0)
    carried_on = picture.draw(moved, size, 0.0).read()
    picture.restart()
    for step, frame in enumerate(wanted):
        assert np.array_equal(picture.draw(moved, size, 0.0).read(), frame), step
    assert picture.report()["steps"] == 3 and not np.array_equal(carried_on, wanted[0])


def test_tiles_are_parts_of_the_whole(picture):
    size = (40, 30)
    whole = [picture.draw(SMALL, size, 0.0).read() for _ in range(3)][-1]
    part = [picture.draw(SMALL, size, 0.0, (10, 6, 20, 13)).read() for _ in range(3)][-1]
    assert np.array_equal(part, whole[6:19, 10:30])


def test_overlay_shows_the_exchanges(picture):
    windy = replace(SMALL, time_step=2.0, diffusion=1e-6, overlay=True)
    plain = picture.draw(replace(windy, overlay=False), (60, 60), 0.0).read()
    bars = picture.draw(windy, (60, 60), 0.0).read()
    told = picture.report()
    assert told["interchanged rows"] > 0 and told["growth"] >= 1 and picture.report()["steps"] == 2
    assert np.abs(bars[52:, :, :3] - plain[52:, :, :3]).max() > 0.2 and (bars[50:54, :, 0] == np.float32(0.9)).any()


def test_the_scene_reads_and_an_image_can_be_the_beginning(tmp_path):
    scene = load(SCENE)
    assert scene.picture == "ink" and scene.settings.grid == 256
    from renderer.formats.images import write_png

    pixels = np.full((20, 30, 3), 200, np.uint8)
    pixels[:10, :15] = (90, 20, 10)
    write_png(tmp_path / "start.png", pixels)
    settings = replace(SMALL, image=str(tmp_path / "start.png"))
    cells = flow_grid((36, 24), 24)
    density = initial_condition(cells, settings)
    x, y = cells.centers
    assert density[:, (x < -0.01) & (y > 0.01)].min() > density[:, (x > 0.01) & (y < -0.01)].max()


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64") or not shutil.which(compiler.COMPILER),
    reason="no C++ compiler for x86-64 Linux here",
)
def test_devices_agree_to_one_step_of_eight_bits(picture):
    """LAPACK on the host and CUDA's kernels add in different orders: `verify` on another device may say "1 of 255".

    Ten time steps: the linear pictures differ by 1e-6 at most, where an 8-bit step of sRGB is 3e-4 or more.
    """
    gpu, pictures = DeviceContext(), []
    gpu.devices = [emulated.cuda_machine(1, seed=3).CudaDevice(0)]
    for each in (picture, Picture(gpu)):
        each.restart()
        for _ in range(10):
            frame = each.draw(SMALL, (64, 48), 0.0)
        pictures.append(np.array(frame.read()))
    assert "CUDA" in each.report()["factored on"]
    assert pictures[0].std() > 0.1 and np.abs(pictures[0] - pictures[1]).max() < 1e-6
    eight = [np.rint(255 * linear_to_srgb(linear[..., :3])) for linear in pictures]
    assert np.abs(eight[0] - eight[1]).max() <= 1 and (eight[0] != eight[1]).mean() < 1e-3
