"""Exports: tiles, frames, films, resumes, farms and their mistakes, on a GLSL scene that all GL machines draw."""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from renderer.gpu import Gpu
from renderer.image import read_bytes, read_exr, read_recipe, srgb_of_linear
from renderer.pictures import open_picture, scene_of_table

ROOT = Path(__file__).resolve().parents[1]
SCENE = """title = "Julia in motion"
picture = "fractal"
size = [70, 46]
[settings]
kind = "julia"
samples = 2
iterations = 60
[animation]
seconds = 0.25
[[animation.keys]]
time = 0.0
set = { "phase" = 0.0 }
[[animation.keys]]
time = 1.0
set = { "phase" = 1.0 }
"""
pytestmark = pytest.mark.usefixtures("shared_gl")


def export(*words, code=0, **more):
    command = [sys.executable, str(ROOT / "main.py"), "export", *map(str, words)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, **more)
    assert answer.returncode == code, answer
    assert "Traceback" not in answer.stderr
    return answer


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "julia.toml"
    path.write_text(SCENE)
    return path


def test_tiles_of_any_size_give_identical_bits(scene, tmp_path):
    export(scene, "-o", tmp_path / "whole.png")
    export(scene, "-o", tmp_path / "whole.exr")
    for tile in (7, 32, 64):
        export(scene, "-o", tmp_path / "tiles.png", "--tile", tile)
        export(scene, "-o", tmp_path / "tiles.exr", "--tile", tile)
        assert np.array_equal(read_bytes(tmp_path / "tiles.png"), read_bytes(tmp_path / "whole.png")), tile
        assert np.array_equal(read_exr(tmp_path / "tiles.exr"), read_exr(tmp_path / "whole.exr")), tile


def test_png_of_the_exr_is_the_png(scene, tmp_path):
    export(scene, "-o", tmp_path / "a.png")
    export(scene, "-o", tmp_path / "a.exr")
    linear, shown = read_exr(tmp_path / "a.exr"), read_bytes(tmp_path / "a.png")
    assert np.abs(srgb_of_linear(linear[..., :3]).astype(int) - shown[..., :3]).max() <= 1


def test_frames_follow_the_animation_and_resume(scene, tmp_path):
    words = [scene, "-o", tmp_path / "f_###.png", "--frames", "3-5", "--rate", "10"]
    answer = export(*words, "--json")
    facts = json.loads(answer.stdout)
    assert [Path(path).name for path in facts["output"]] == ["f_003.png", "f_004.png", "f_005.png"]
    frames = [read_bytes(tmp_path / f"f_00{n}.png") for n in (3, 4, 5)]
    assert not np.array_equal(frames[0], frames[1]) and not np.array_equal(frames[1], frames[2])
    export(scene, "-o", tmp_path / "still.png", "--time", "0.1")
    assert np.array_equal(read_bytes(tmp_path / "still.png"), frames[1])
    (tmp_path / "f_004.png").write_bytes(b"torn")
    kept = (tmp_path / "f_003.png").stat().st_mtime_ns
    export(*words)
    assert np.array_equal(read_bytes(tmp_path / "f_004.png"), frames[1])
    assert (tmp_path / "f_003.png").stat().st_mtime_ns == kept, "a frame that is done is not drawn again"
    export(*words, "--overwrite")
    assert (tmp_path / "f_003.png").stat().st_mtime_ns != kept
    lines = (tmp_path / "f.frames.jsonl").read_text().splitlines()
    assert [json.loads(line)["frame"] for line in lines] == [3, 4, 5]


def squares(pixels):
    """Means of 2 x 2 pixels, which is what a film keeps of the colours."""
    return pixels.reshape(pixels.shape[0] // 2, 2, pixels.shape[1] // 2, 2, 3).mean((1, 3))


@pytest.mark.parametrize("suffix", [".mp4", ".webm", ".gif", ".mkv"])
def test_films_hold_every_frame(scene, tmp_path, suffix):
    av = pytest.importorskip("av", reason="films need PyAV")
    export(scene, "-o", tmp_path / f"film{suffix}", "--frames", "1-6", "--size", "64x46")
    export(scene, "-o", tmp_path / "f_#.png", "--frames", "1-6", "--size", "64x46")
    with av.open(str(tmp_path / f"film{suffix}")) as film:
        frames = [frame.to_ndarray(format="rgb24").astype(int) for frame in film.decode(video=0)]
    assert len(frames) == 6 and not list(tmp_path.glob("*.frames"))
    for number, frame in enumerate(frames, 1):
        error = squares(frame) - squares(read_bytes(tmp_path / f"f_{number}.png")[..., :3])
        assert np.abs(error).mean() < 4 and np.abs(error.mean((0, 1))).max() < 3, number


def test_a_film_without_numbers_is_as_long_as_its_animation(scene, tmp_path):
    av = pytest.importorskip("av", reason="films need PyAV")
    export(scene, "-o", tmp_path / "film.mp4", "--rate", "24")
    with av.open(str(tmp_path / "film.mp4")) as film:
        assert sum(1 for _ in film.decode(video=0)) == 6


def test_sixteen_bits_and_recipe(scene, tmp_path):
    export(scene, "-o", tmp_path / "deep.png", "--bits", 16, "--set", "phase=0.25", "--set", "tone.ev=-1")
    recipe = read_recipe(tmp_path / "deep.png")
    assert recipe["scene"]["settings"]["phase"] == 0.25 and recipe["scene"]["tone"]["ev"] == -1
    assert recipe["samples"] == 2 and recipe["size"] == [70, 46]
    export(scene, "-o", tmp_path / "deep.exr", "--bits", 16, code=2)


def test_time_limit_leaves_a_whole_picture_and_says_so(scene, tmp_path):
    words = [scene, "-o", tmp_path / "a.png", "--samples", 10**6, "--time-limit", "1", "--json"]
    facts = json.loads(export(*words, code=3).stdout)
    assert facts["seconds"] < 20 and read_bytes(tmp_path / "a.png").shape == (46, 70, 4)


def test_dry_run_writes_nothing(scene, tmp_path):
    answer = export(scene, "-o", tmp_path / "a.png", "--size", "20000x20000", "--dry-run", "--json")
    facts = json.loads(answer.stdout)
    assert facts["tiles"] == 100 and facts["disk_bytes"] == 16 * 20000**2 and not (tmp_path / "a.png").exists()


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_killed_run_resumes(scene, tmp_path):
    words = ["export", scene, "-o", tmp_path / "f_####.png", "--frames", "1-2000"]
    process = subprocess.Popen([sys.executable, str(ROOT / "main.py"), *map(str, words)], stderr=subprocess.DEVNULL)
    while not (tmp_path / "f_0005.png").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("f_0*.png")}
    assert 4 <= len(done) < 2000
    export(scene, "-o", tmp_path / "f_####.png", "--frames", f"1-{len(done) + 2}")
    same = [name for name, moment in done.items() if (tmp_path / name).stat().st_mtime_ns == moment]
    assert len(same) >= len(done) - 1 and len(list(tmp_path.glob("f_0*.png"))) == len(done) + 2


def children_marked(folder: Path) -> list[int]:
    """The worker processes of a farm that was started with the folder as its mark, oldest first."""
    listed = subprocess.run(["pgrep", "-f", "multiprocessing.spawn"], capture_output=True, text=True).stdout.split()
    found = []
    for pid in map(int, listed):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if str(folder).encode() in file.read():
                    found.append(pid)
        except OSError:  # it ended
            continue
    return sorted(found)


def test_farm_of_two_workers_one_killed_gives_the_same_film(scene, tmp_path):
    pytest.importorskip("distributed", reason="farms need distributed")
    (tmp_path / "here").mkdir()
    (tmp_path / "farm").mkdir()
    words = ["--frames", "1-16", "--samples", "40", "--size", "320x200"]
    export(scene, "-o", tmp_path / "here" / "f_##.png", *words)
    killed = []

    def kill_one():
        while not list((tmp_path / "farm").glob("f_*.png")):
            time.sleep(0.05)
        for pid in children_marked(tmp_path)[-1:]:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    marked = dict(os.environ, RAYFOLD_TEST_MARK=str(tmp_path))
    export(scene, "-o", tmp_path / "farm" / "f_##.png", *words, "--farm", "local:2", env=marked)
    assert killed, "no worker was found to kill"
    for number in range(1, 17):
        here, farm = ((tmp_path / where / f"f_{number:02}.png").read_bytes() for where in ("here", "farm"))
        assert here == farm, number


def test_farm_tiles_equal_the_whole(scene, tmp_path):
    pytest.importorskip("distributed", reason="farms need distributed")
    export(scene, "-o", tmp_path / "here.png")
    export(scene, "-o", tmp_path / "farm.png", "--farm", "local:2", "--tile", "32")
    assert np.array_equal(read_bytes(tmp_path / "here.png"), read_bytes(tmp_path / "farm.png"))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_straggler_is_drawn_by_another(scene, tmp_path):
    """A worker that hangs, and does not die, delays a film by some times the others' time, not for ever."""
    pytest.importorskip("distributed", reason="farms need distributed")
    (tmp_path / "here").mkdir()
    (tmp_path / "farm").mkdir()
    words = ["--frames", "1-16", "--samples", "60", "--size", "320x200"]
    export(scene, "-o", tmp_path / "here" / "f_##.png", *words)
    stopped = []

    def stop_one():
        while len(list((tmp_path / "farm").glob("f_*.png"))) < 5:
            time.sleep(0.02)
        for pid in children_marked(tmp_path)[-1:]:
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)

    stopper = threading.Thread(target=stop_one, daemon=True)
    stopper.start()
    marked = dict(os.environ, RAYFOLD_TEST_MARK=str(tmp_path))
    began = time.monotonic()
    try:
        export(scene, "-o", tmp_path / "farm" / "f_##.png", *words, "--farm", "local:2", env=marked)
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert stopped and time.monotonic() - began < 60
    for number in range(1, 17):
        here, farm = ((tmp_path / where / f"f_{number:02}.png").read_bytes() for where in ("here", "farm"))
        assert here == farm, number


FLAME = """title = "Gasket"
picture = "flame"
size = [90, 60]
[settings]
quality = 40.0
seed = 5
estimator_radius = 3.0
maps = [
    { affine = [0.5, 0.0, 0.0, 0.0, 0.5, 0.0], color = 0.0, variations = { BLEND = 1.0 } },
    { affine = [0.5, 0.0, 0.5, 0.0, 0.5, 0.1], color = 0.5, variations = { linear = 1.0 } },
    { affine = [0.4, 0.1, 0.2, -0.2, 0.5, 0.5], color = 1.0, variations = { linear = 0.9, spherical = 0.1 } },
]
"""


def test_farm_of_a_flame_s_samples_equals_the_whole(tmp_path, gpu):
    pytest.importorskip("distributed", reason="farms need distributed")
    path = tmp_path / "gasket.toml"
    path.write_text(FLAME.replace("BLEND", "exponential"))
    export(path, "-o", tmp_path / "here.png")
    facts = json.loads(
        export(path, "-o", tmp_path / "farm.png", "--farm", "local:2", "--split", "samples", "--json").stdout
    )
    assert np.array_equal(read_bytes(tmp_path / "here.png"), read_bytes(tmp_path / "farm.png"))
    assert facts["samples"] == read_recipe(tmp_path / "here.png")["samples"]


@pytest.mark.parametrize("expo", [0.0, 0.6])
def test_parts_of_a_flame_merge_to_its_bits_whatever_their_number(device, expo):
    """Also where points are bad and steps are made once more for them."""
    text = tomllib.loads(FLAME.replace("BLEND", "linear"))
    if expo:
        text["settings"]["maps"][0]["affine"] = [1e18, 0.0, 0.0, 0.0, 1e18, 0.0]  # which runs away to infinity
        text["settings"]["maps"][0]["weight"] = 0.02
    scene = scene_of_table(text, Path("gasket.toml"))
    own = Gpu()
    own.devices = [device]
    size, whole = (90, 60), open_picture(scene, own)
    for _ in range(whole.draws(scene.settings, size)):
        frame = whole.draw(scene.settings, size, 0.0)
    wanted, rounds = frame.read(), []
    for count in (1, 3, 16):
        picture, more = open_picture(scene, own), ()
        assert count <= picture.parts(scene.settings, size)
        while True:
            picture.begin_merge(scene.settings, size, 0.0)
            for k in reversed(range(count)):
                picture.merge(open_picture(scene, own).draw_part(scene.settings, size, 0.0, (k, count), more))
            missing = picture.missing(more)
            if not missing:
                break
            more = (*more, missing)
        assert np.array_equal(picture.merged(more).read(), wanted), count
        rounds.append(len(more))
    assert len(set(rounds)) == 1 and bool(rounds[0]) == bool(expo), rounds


def test_farm_of_views_equals_the_whole_and_both_resume(tmp_path, gpu):
    pytest.importorskip("distributed", reason="farms need distributed")
    words = [ROOT / "scenes/mirrors.toml", "--grid", "3x2", "--size", "48x40", "--samples", 2]
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


def test_farm_by_tls(scene, tmp_path):
    """A scheduler that offers TLS: with its certificates the picture comes, without them a sentence."""
    pytest.importorskip("distributed", reason="farms need distributed")
    if not shutil.which("openssl"):
        pytest.skip("needs openssl to make certificates")
    names = {name: str(tmp_path / f"{name}.pem") for name in ("key", "cert")}
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=farm"]
    subprocess.run([*command, "-keyout", names["key"], "-out", names["cert"]], check=True, capture_output=True)
    tls = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": names["cert"], "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        tls |= {f"DASK_DISTRIBUTED__COMM__TLS__{role}__{k.upper()}": path for k, path in names.items()}
    with_tls = {**os.environ, **tls, "PYTHONPATH": str(ROOT)}
    address = tmp_path / "address.json"
    shell = [sys.executable, "-m", "distributed.cli"]
    scheduler = ["dask_scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    started = []
    try:
        for words in (
            ["-c", "from distributed.cli.dask_scheduler import main; main()", *scheduler[1:]],
            ["-c", "from distributed.cli.dask_worker import main; main()", "--nthreads", "2", "--no-dashboard"],
        ):
            command = [shell[0], *words, "--scheduler-file", str(address)]
            started.append(subprocess.Popen(command, env=with_tls, cwd=tmp_path, stderr=subprocess.DEVNULL))
            end = time.monotonic() + 30
            while not address.exists():
                assert time.monotonic() < end and started[0].poll() is None
                time.sleep(0.1)
        where = json.loads(address.read_text())["address"]
        assert where.startswith("tls://")
        told = export(scene, "-o", tmp_path / "no.png", "--farm", where, code=4).stderr
        assert where in told and "no certificates" in told
        export(scene, "-o", tmp_path / "farm.png", "--farm", where, "--tile", "32", env=with_tls)
    finally:
        for process in started:
            process.kill()
            process.wait()
    export(scene, "-o", tmp_path / "here.png")
    assert np.array_equal(read_bytes(tmp_path / "here.png"), read_bytes(tmp_path / "farm.png"))


def test_mistakes(scene, tmp_path):
    assert "local:N" in export(scene, "-o", tmp_path / "a.png", "--farm", "everywhere", code=2).stderr
    assert "no random numbers" in export(scene, "-o", tmp_path / "a.png", "--seed", 3, code=2).stderr
    assert "did you mean" in export(scene, "-o", tmp_path / "a.png", "--set", "fase=3", code=2).stderr
    assert "needs --farm" in export(scene, "-o", tmp_path / "a.png", "--split", "samples", code=2).stderr
    split = export(scene, "-o", tmp_path / "a.png", "--farm", "local:1", "--split", "samples", code=2).stderr
    assert "fractal picture is split into tiles" in split
    assert not (tmp_path / "a.png").exists()


def test_a_picture_that_comes_whole_says_so(tmp_path):
    words = [ROOT / "scenes/reduction.toml", "-o", tmp_path / "a.png", "--size", "64x64", "--tile", 32]
    assert "is drawn whole" in export(*words, code=4).stderr


def test_exr_of_the_ray_tracer_holds_its_layers_in_any_tiles(tmp_path):
    OpenEXR = pytest.importorskip("OpenEXR", reason="EXR files need openexr")
    scene = ROOT / "scenes/cornell.toml"
    words = ["--size", "48x40", "--samples", 2]
    export(scene, "-o", tmp_path / "whole.exr", *words)
    export(scene, "-o", tmp_path / "tiles.exr", *words, "--tile", 17)
    found = []
    for name in ("whole.exr", "tiles.exr"):
        with OpenEXR.File(str(tmp_path / name)) as file:
            found.append({key: np.array(channel.pixels) for key, channel in file.channels().items()})
    assert {"RGBA", "albedo", "normal", "depth", "id"} <= found[0].keys()
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


def test_frames_of_a_still_scene_are_equal_and_by_any_workers(tmp_path, gpu):
    """A picture that does not move must not go on refining from frame to frame."""
    words = [ROOT / "scenes/cornell.toml", "--size", "40x30", "--samples", 2, "--frames", "1-3"]
    export(*words, "-o", tmp_path / "f_#.png")
    frames = [read_bytes(tmp_path / f"f_{n}.png") for n in (1, 2, 3)]
    assert np.array_equal(frames[0], frames[1]) and np.array_equal(frames[0], frames[2])
    export(*words[:-2], "-o", tmp_path / "still.png")
    assert np.array_equal(read_bytes(tmp_path / "still.png"), frames[0])


def test_a_full_disk_in_the_middle_of_a_film_tears_nothing(scene, tmp_path, monkeypatch, capsys):
    """Frames that were complete are kept, no temporary file is left, and the run resumes."""
    import main

    written = 0

    def full(descriptor):
        nonlocal written
        written += 1
        if written == 6:  # a frame, its manifest, a frame, ...
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    words = ["export", str(scene), "-o", str(tmp_path / "f_#.png"), "--frames", "1-4"]
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        assert main.main(words) == 3
    told = capsys.readouterr().err
    assert "No space left" in told or "disk is full" in told
    left = sorted(path.name for path in tmp_path.iterdir())
    frames = [name for name in left if name.startswith("f_")]
    assert 2 <= len(frames) < 4 and left == sorted([*frames, "f.frames.jsonl", scene.name])
    kept = {name: (tmp_path / name).stat().st_mtime_ns for name in frames[:2]}
    assert main.main(words) == 0 and len(list(tmp_path.glob("f_*.png"))) == 4
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in kept} == kept
    assert all(read_bytes(path).shape == (46, 70, 4) for path in tmp_path.glob("f_*.png"))
