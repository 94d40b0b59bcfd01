"""Farms: tiles, frames, views and samples drawn by several processes have the bits of one, whoever dies or hangs."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from renderer import cli
from renderer.bvh.build import build_bvh
from renderer.errors import UserError
from renderer.export import farm, farm_worker, run
from renderer.formats.images import read_pixels, read_recipe
from renderer.gpu import DeviceContext, DeviceProperties
from renderer.paths import ROOT
from renderer.pictures import load, open_picture, scene_of_table
from renderer.raytracing import geometry
from renderer.system import farm as farms
from tests.export.export_helpers import SCENE, cluster, export, stopped
from tests.window.helpers import wait_for
from tests.window.noop_device import NoopDevice

pytest.importorskip("distributed", reason="farms need distributed")
pytestmark = pytest.mark.usefixtures("shared_gl")


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "julia.toml"
    path.write_text(SCENE)
    return path


@pytest.fixture
def signalled(monkeypatch):
    """Sends a signal to one of a farm's workers that is at work, once so many answers came; lists whom."""
    hit, results = [], farm.results

    def of(number: int, after: int = 1):
        def counted(client, base, tasks):
            pids = client.run(os.getpid)
            for count, answer in enumerate(results(client, base, tasks), 1):
                yield answer
                if count == after and not hit:
                    busy = [address for address, keys in client.processing().items() if keys]
                    hit.append(pids[(busy or list(pids))[0]])
                    os.kill(hit[0], number)

        monkeypatch.setattr(farm, "results", counted)
        return hit

    return of


def exported(*words) -> int:
    """The exit code of the command, in this process."""
    return cli.main(["export", *map(str, words)])


def same_frames(folder: Path, count: int) -> None:
    for number in range(1, count + 1):
        here, there = ((folder / where / f"f_{number:02}.png").read_bytes() for where in ("here", "farm"))
        assert here == there, number


def is_quiet(errors: str) -> bool:
    """True if only progress was said, and on a loaded machine that the parent of a command killed it."""
    said = [line for line in errors.splitlines() if " left" not in line and "may compile first" not in line]
    return bool(said) and all(line.startswith("rayfold: interrupted") for line in said)


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "farm").mkdir()
    return tmp_path


def test_farm_of_two_workers_one_killed_gives_the_same_film(scene, folders, signalled):
    words = ["--frames", "1-12", "--samples", "20", "--size", "160x100"]
    export(scene, "-o", folders / "here" / "f_##.png", *words)
    killed = signalled(signal.SIGKILL)
    assert exported(scene, "-o", folders / "farm" / "f_##.png", *words, "--farm", "local:2") == 0
    assert killed, "no worker was killed"
    same_frames(folders, 12)


@pytest.mark.slow
def test_a_pack_of_flames_on_a_farm_is_that_of_one_machine(folders, capsys):
    """One flame a task, the bad one left out; the files have the same bytes."""
    one = (
        '<flame name="{0}" size="40 30" scale="12" quality="3"><xform weight="1" linear="0.5" '
        'coefs="0.6 0.2 -0.2 0.6 0.{1} 0"/><color index="0" rgb="200 90 9"/></flame>'
    )
    bad = '<flame name="bad"><xform weight="1" coefs="1 2 3"/></flame>'
    pack = folders / "pack.flame"
    pack.write_text(f"<flames>{one.format('a', 3)}{bad}{one.format('c', 5)}{one.format('d', 4)}</flames>")
    words = [pack, "--flame", "all", "--device", "cpu"]
    assert exported(*words, "-o", folders / "here" / "f.png") == 3
    assert exported(*words, "-o", folders / "farm" / "f.png", "--farm", "local:2", "--json") == 3
    out, err = capsys.readouterr()
    rows = json.loads(out[out.index("{") :])["flames"]
    assert [(row["flame"], row["name"]) for row in rows] == [(0, "a"), (2, "c"), (3, "d")]
    assert err.count("left out") == 1
    names = sorted(path.name for path in (folders / "here").iterdir())
    assert names == ["f00000.png", "f00002.png", "f00003.png"]
    for name in names:
        assert (folders / "here" / name).read_bytes() == (folders / "farm" / name).read_bytes()
    assert exported(*words, "-o", folders / "x.png", "--farm", "local:2", "--split", "samples") == 2
    assert "--split: not together with --flame all --farm" in capsys.readouterr()[1]


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_ends_a_farm_without_a_word_of_its_workers(scene, tmp_path):
    """The terminal's Ctrl-C reaches all processes; frames that were complete are kept."""
    words = ["export", scene, "-o", tmp_path / "f_####.png", "--frames", "1-5000", "--farm", "local:2"]
    command = [sys.executable, str(ROOT / "main.py"), *map(str, words)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(lambda: len(list(tmp_path.glob("f_0*.png"))) > 2, process)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and is_quiet(err) and not out
    assert 2 < len(list(tmp_path.glob("f_0*.png"))) < 5000


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_signal_while_a_farm_starts_is_one_sentence(number, scene, tmp_path):
    """All processes get it, as from a terminal that is closed; none of dask's tracebacks is shown."""
    words = ["export", scene, "-o", tmp_path / "f_####.png", "--frames", "1-5000", "--farm", "local:2"]
    command = [sys.executable, str(ROOT / "main.py"), *map(str, words)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )

    def starts():
        return (
            "multiprocessing.spawn"
            in subprocess.run(["pgrep", "-ag", str(process.pid)], capture_output=True, text=True).stdout
        )

    wait_for(starts, process)
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and is_quiet(err) and not out


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_film_goes_on_without_a_worker_that_is_stopped_and_ends_without_the_scheduler(
    scene, folders, monkeypatch, capsys
):
    """A stopped process keeps its connections, so that dask waits for it for ever."""
    words = ["--frames", "1-12", "--samples", "20", "--size", "160x100"]
    export(scene, "-o", folders / "here" / "f_##.png", *words)
    results, halt = farm.results, contextlib.ExitStack()
    film = [scene, "-o", folders / "farm" / "f_##.png", *words]
    with cluster(folders, workers=2) as (address, scheduler, workers), halt:

        def stopping(process):
            def counted(*arguments):
                for count, answer in enumerate(results(*arguments), 1):
                    yield answer
                    if count == 3:
                        halt.enter_context(stopped(process))
                        monkeypatch.setattr(farms, "SILENT_POLLS", 8)
                        monkeypatch.setattr(farms, "LOST_POLLS", 8 if process is scheduler else 600)

            return counted

        monkeypatch.setattr(farms, "POLL_SECONDS", 0.25)
        monkeypatch.setattr(farm, "results", stopping(workers[0]))
        assert exported(*film, "--farm", address, "--insecure") == 0
        same_frames(folders, 12)
        capsys.readouterr()
        monkeypatch.setattr(farm, "results", stopping(scheduler))
        assert exported(*film, "--farm", address, "--insecure", "--overwrite") == 3
        out, err = capsys.readouterr()
    assert err.count("\n") == 1 and "the scheduler has not answered for " in err and "resumes" in err and not out
    same_frames(folders, 12)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_film_whose_only_worker_is_stopped_ends_and_so_does_ctrl_c(scene, tmp_path):
    words = ["export", scene, "-o", tmp_path / "f_####.png", "--frames", "1-5000", "--insecure", "--farm"]
    with cluster(tmp_path) as (address, scheduler, workers):
        for halted, number in ((scheduler, signal.SIGINT), (workers[0], signal.SIGTERM), (workers[0], None)):
            command = [sys.executable, str(ROOT / "main.py"), *map(str, words), address]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            done = len(list(tmp_path.glob("f_0*.png")))
            wait_for(lambda done=done: len(list(tmp_path.glob("f_0*.png"))) > done + 2, process)
            with stopped(halted):
                if number:
                    time.sleep(1)
                    process.send_signal(number)
                _, err = process.communicate(timeout=120)
            if number:
                assert process.returncode == 130 and is_quiet(err), err
            else:
                assert process.returncode == 3 and "no worker has been heard of for 45 seconds; what was" in err, err


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_straggler_is_drawn_by_another(scene, folders, signalled):
    """A worker that hangs, and does not die, delays a film by some times the others' time, not for ever."""
    words = ["--frames", "1-16", "--samples", "60", "--size", "320x200"]
    export(scene, "-o", folders / "here" / "f_##.png", *words)
    stopped = signalled(signal.SIGSTOP, after=5)
    waker = threading.Timer(150, lambda: [os.kill(pid, signal.SIGCONT) for pid in stopped])
    waker.start()
    began = time.monotonic()
    try:
        assert exported(scene, "-o", folders / "farm" / "f_##.png", *words, "--farm", "local:2") == 0
        assert time.monotonic() - began < 120
    finally:
        waker.cancel()
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert stopped
    same_frames(folders, 16)


CORNELL = [ROOT / "scenes/cornell.toml", "--size", "40x30", "--samples", 150, "--set", "max_depth=3"]


@pytest.mark.slow
def test_samples_of_a_traced_picture_on_a_farm_with_one_worker_killed(folders, gpu, signalled):
    """The picture of the samples that two workers share is the file of one machine, layers and variance too."""
    OpenEXR = pytest.importorskip("OpenEXR", reason="EXR files need openexr")
    assert exported(*CORNELL, "-o", folders / "here" / "a.exr") == 0
    killed = signalled(signal.SIGKILL)
    words = ["--farm", "local:2", "--split", "samples"]
    assert exported(*CORNELL, "-o", folders / "farm" / "a.exr", *words) == 0
    assert killed
    here, there = (OpenEXR.File(str(folders / where / "a.exr")).channels() for where in ("here", "farm"))
    assert {"RGBA", "albedo", "depth", "variance", "samples"} <= here.keys() == there.keys()
    assert all(np.array_equal(here[name].pixels, there[name].pixels) for name in here)


@pytest.mark.parametrize("changes", [pytest.param({}, marks=pytest.mark.slow), {"variance": True}])
def test_ranges_of_samples_merge_to_the_picture_s_bits(gpu, rng, changes):
    """Whatever the parts, their order and the tile; mean and variance are those of the samples one by one."""
    scene = load(CORNELL[0])
    settings = replace(scene.settings, max_depth=3, seed=int(rng.integers(0, 1 << 30)), **changes)
    size, samples, whole = (23, 17), 150, open_picture(scene, gpu)
    for _ in range(samples):
        frame = whole.draw(settings, size, 0.0)
    wanted, layers = frame.read(), whole.layers(settings, size)
    for count in (2, 9):
        picture = open_picture(scene, gpu)
        parts = picture.chunks(settings, size, samples, count)
        assert len(parts) == min(count, 3)
        picture.start_merge(settings, size, 0.0)
        for k in rng.permutation(len(parts)):
            picture.merge(open_picture(scene, gpu).draw_chunk(settings, size, 0.0, parts[k], ()))
        assert not picture.missing_steps(()) and np.array_equal(picture.merged_frame(()).read(), wanted)
        found = picture.layers(settings, size)
        assert all(np.array_equal(found[name], layers[name]) for name in layers)
    tile = (5, 4, 9, 8)
    for _ in range(samples):
        part = picture.draw(settings, size, 0.0, tile)
    assert np.array_equal(part.read(), wanted[4:12, 5:14])
    picture.start_merge(settings, size, 0.0)
    singles = []
    for sample in range(samples):
        picture._draw_sample(sample, sample)
        singles.append(picture._film.read_range()[0].astype("f8"))
    assert np.allclose(np.mean(singles, 0), wanted[..., :3], rtol=1e-4, atol=1e-5)
    if changes:
        assert np.allclose(np.var(singles, 0, ddof=1), layers["variance"], rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_farms_of_one_and_two_workers_draw_the_same_files_of_a_compute_device():
    """tests/fps/farm_scaling.py compares the files of all its runs, and fails where one has other bytes."""
    words = ["1", "2", "--", str(ROOT / "scenes/mirrors.toml"), "--frames", "1-4", "--size", "48x40", "--samples", "2"]
    command = [sys.executable, str(ROOT / "tests/fps/farm_scaling.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and [row["workers"] for row in rows] == [1, 2], done
    assert all(row["same_bits"] and row["frames"] == 4 for row in rows)


def test_pixels_that_stop_by_their_own_noise_are_not_dealt(gpu):
    scene = load(CORNELL[0])
    settings = replace(scene.settings, noise_threshold=0.1)
    assert open_picture(scene, gpu).chunks(settings, (40, 30), 1000, 4) == []


@pytest.mark.slow
def test_layers_of_a_traced_picture_come_from_a_farm_s_tiles_too(folders, gpu):
    OpenEXR = pytest.importorskip("OpenEXR", reason="EXR files need openexr")
    words = [*CORNELL[:3], "--samples", 2, "--set", "max_depth=3"]
    assert exported(*words, "-o", folders / "here" / "a.exr") == 0
    assert exported(*words, "-o", folders / "farm" / "a.exr", "--farm", "local:2", "--tile", "17") == 0
    here, there = (OpenEXR.File(str(folders / where / "a.exr")).channels() for where in ("here", "farm"))
    assert "albedo" in here and here.keys() == there.keys()
    assert all(np.array_equal(here[name].pixels, there[name].pixels) for name in here)


def test_farm_tiles_equal_the_whole(scene, tmp_path):
    export(scene, "-o", tmp_path / "here.png")
    export(scene, "-o", tmp_path / "farm.png", "--farm", "local:2", "--tile", "32")
    assert (tmp_path / "here.png").read_bytes() == (tmp_path / "farm.png").read_bytes()


FLAME = """title = "Gasket"
picture = "flame"
size = [90, 60]
[settings]
quality = 40.0
seed = 5
estimator_radius = 3.0
xforms = [
    { affine = [0.5, 0.0, 0.0, 0.0, 0.5, 0.0], color = 0.0, variations = { BLEND = 1.0 } },
    { affine = [0.5, 0.0, 0.5, 0.0, 0.5, 0.1], color = 0.5, variations = { linear = 1.0 } },
    { affine = [0.4, 0.1, 0.2, -0.2, 0.5, 0.5], color = 1.0, variations = { linear = 0.9, spherical = 0.1 } },
]
"""


@pytest.mark.slow
def test_farm_of_a_flame_s_samples_equals_the_whole(tmp_path, gpu):
    path = tmp_path / "gasket.toml"
    path.write_text(FLAME.replace("BLEND", "exponential"))
    export(path, "-o", tmp_path / "here.png")
    facts = json.loads(
        export(path, "-o", tmp_path / "farm.png", "--farm", "local:2", "--split", "samples", "--json").stdout
    )
    assert np.array_equal(read_pixels(tmp_path / "here.png"), read_pixels(tmp_path / "farm.png"))
    assert facts["samples"] == read_recipe(tmp_path / "here.png")["samples"]


@pytest.mark.parametrize(("bad", "passes"), [(False, 1), (True, 1), pytest.param(True, 3, marks=pytest.mark.slow)])
def test_parts_of_a_flame_merge_to_its_bits_whatever_their_number(device, bad, passes):
    """Also where points are bad and steps are made once more for them, and where hits are counted besides, by pass."""
    text = tomllib.loads(FLAME.replace("BLEND", "linear"))
    if passes > 1:
        alphas = [k / 255 for k in range(256)]
        text["settings"] |= {"passes": passes, "alphas": alphas, "temporal_filter_type": "gaussian"}
    if bad:
        text["settings"]["xforms"][0]["affine"] = [1e18, 0.0, 0.0, 0.0, 1e18, 0.0]  # which runs away to infinity
        text["settings"]["xforms"][0]["weight"] = 0.1
    scene = scene_of_table(text, Path("gasket.toml"))
    own = DeviceContext()
    own.devices = [device]
    size, whole = (90, 60), open_picture(scene, own)
    for _ in range(whole.sample_count(scene.settings, size)):
        frame = whole.draw(scene.settings, size, 0.0)
    wanted, rounds = frame.read(), []
    for count in (1, 3, 16):
        picture, more = open_picture(scene, own), ()
        parts = picture.chunks(scene.settings, size, picture.sample_count(scene.settings, size), count)
        assert len(parts) == count
        while True:
            picture.start_merge(scene.settings, size, 0.0)
            for part in reversed(parts):
                picture.merge(open_picture(scene, own).draw_chunk(scene.settings, size, 0.0, part, more))
            missing = picture.missing_steps(more)
            if not missing:
                break
            more = (*more, missing)
        assert np.array_equal(picture.merged_frame(more).read(), wanted), count
        layers = [each.layers(scene.settings, size)["density"] for each in (picture, whole)]
        assert np.array_equal(*layers) and picture.report()["samples"] == whole.report()["samples"]
        rounds.append(len(more))
    assert len(set(rounds)) == 1 and bool(rounds[0]) == bad, rounds


def test_a_farm_refuses_a_time_limit_before_it_is_asked():
    plan = SimpleNamespace(options=SimpleNamespace(time_limit=5.0))
    with pytest.raises(UserError, match="--time-limit: not together with --farm"):
        farm.render_on_farm(None, plan)


def test_views_of_a_light_field_come_from_a_farm_center_first(tmp_path, monkeypatch):
    """Tasks in this process on a device without kernels, the last of a round first; a missing view is drawn again."""
    rounds, context = [], DeviceContext()
    context.devices = [NoopDevice(DeviceProperties(2, 1, 4 << 30, 1 << 30, True))]
    monkeypatch.setattr(geometry, "build_bvh", lambda device, rows, *_: build_bvh(device, rows, "host_sah"))

    def run_tasks(client, run, common, tasks):
        rounds.append([task["number"] for task in tasks])
        for index in reversed(range(len(tasks))):
            yield index, farm_worker._run_task(common | {"number": 0}, tasks[index])

    monkeypatch.setattr(farm, "run_tasks", run_tasks)
    monkeypatch.setattr(farm, "open_client", lambda _: contextlib.nullcontext())
    for module in (farm_worker, run):
        monkeypatch.setattr(module, "open_context", lambda *_: context)
    path = tmp_path / "ball.toml"
    path.write_text('title = "ball"\npicture = "raytrace"\ntone = { exposure = "auto" }\n')
    words = [path, "--light-field", "1x3", "--size", "12x8", "--samples", 2]
    assert exported(*words, "-o", tmp_path / "here") == 0 and not rounds
    assert exported(*words, "-o", tmp_path / "farm", "--farm", "local:2") == 0
    names = sorted(each.name for each in (tmp_path / "here").glob("*.png"))
    center = rounds[0][0]
    assert [len(each) for each in rounds] == [1, 2] and sorted([center, *rounds[1]]) == [0, 1, 2]
    (tmp_path / "farm" / names[0]).unlink()
    assert exported(*words, "-o", tmp_path / "farm", "--farm", "local:2") == 0
    assert len(names) == 3 and len(rounds) == 3 and len(rounds[2]) == 1 and center not in rounds[2]
    for name in names:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "farm" / name).read_bytes(), name


@pytest.mark.slow
def test_farm_of_views_equals_the_whole_and_both_resume(tmp_path, gpu):
    words = [ROOT / "scenes/mirrors.toml", "--light-field", "3x2", "--size", "48x40", "--samples", 2]
    export(*words, "-o", tmp_path / "here")
    views = sorted(path.name for path in (tmp_path / "here").glob("*.png"))
    assert len(views) == 6
    export(*words, "-o", tmp_path / "farm", "--farm", "local:2")
    (tmp_path / "here" / views[0]).unlink()
    (tmp_path / "farm" / views[5]).write_bytes(b"torn")
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.png")}
    export(*words, "-o", tmp_path / "farm")  # one goes on where the other stopped
    export(*words, "-o", tmp_path / "here", "--farm", "local:2")
    for name in views:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "farm" / name).read_bytes(), name
    again = [path.name for path, moment in kept.items() if path.stat().st_mtime_ns != moment]
    assert again == [views[5]]
