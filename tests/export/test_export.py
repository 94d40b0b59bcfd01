"""Exports: tiles, frames, films, resumes and their mistakes, on a GLSL scene that all GL machines draw."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, square
from renderer.cli import main
from renderer.errors import UserError
from renderer.export import render as render_module
from renderer.export.options import ExportOptions
from renderer.export.plan import load_scene
from renderer.formats.images import linear_to_srgb, read_exr, read_pixels, read_recipe
from renderer.paths import ROOT
from renderer.pictures import load
from renderer.pictures.fractal import Picture as FractalPicture
from renderer.pictures.picture import Picture
from renderer.system.progress import Progress
from tests.export.export_helpers import SCENE, export

FLAME = 'size="40 30" scale="9" temporal_samples="1"><xform weight="1" linear="1" coefs=".5 0 0 .5 .2 .1"/>'
pytestmark = pytest.mark.usefixtures("shared_gl")


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
        assert np.array_equal(read_pixels(tmp_path / "tiles.png"), read_pixels(tmp_path / "whole.png")), tile
        assert np.array_equal(read_exr(tmp_path / "tiles.exr"), read_exr(tmp_path / "whole.exr")), tile


def test_a_picture_wider_than_a_texture_is_drawn_in_tiles(scene, tmp_path):
    """It was drawn for a minute, and then refused because its rows made no texture."""
    export(scene, "-o", tmp_path / "wide.png", "--size", "16600x3", "--samples", 1)
    export(scene, "-o", tmp_path / "tiles.png", "--size", "16600x3", "--samples", 1, "--tile", 700)
    wide = read_pixels(tmp_path / "wide.png")
    assert wide.shape == (3, 16600, 4) and np.array_equal(wide, read_pixels(tmp_path / "tiles.png"))
    assert len(np.unique(wide[:, 16384:].reshape(-1, 4), axis=0)) and wide[..., 3].all()


@pytest.mark.parametrize("size", ["16600x3", "3x16600"])
def test_shaders_longer_than_a_texture(tmp_path, size, capsys):
    """A longer shader ended when its texture was made, a tall fractal when it was developed, after it was drawn."""
    shader, still = tmp_path / "a.glsl", tmp_path / "a.png"
    main_image = "void mainImage(out vec4 c, in vec2 p) "
    shader.write_text(main_image + "{ c = vec4(fract(p / 97.0), fract(p.x * p.y / 911.0), 1); }")
    shown = []
    for words in ([str(shader)], [str(shader), "--tile", "700"], ["julia", "--samples", "1"]):
        assert main(["export", *words, "-o", str(still), "--size", size]) == 0
        shown.append(read_pixels(still))
    assert np.array_equal(shown[0], shown[1]) and f"{shown[2].shape[1]}x{shown[2].shape[0]}" == size
    x, y = np.meshgrid(np.arange(shown[0].shape[1]), np.arange(shown[0].shape[0])[::-1])
    expected = np.stack([(x + 0.5) / 97 % 1, (y + 0.5) / 97 % 1], -1)
    assert np.abs(shown[0][..., :2] / 255 - expected).max() < 0.003
    tabs = (f"// Buffer A\n{main_image} {{ c = vec4(1); }}", "// Image", "// iChannel0: Buffer A")
    shader.write_text("\n".join((*tabs, main_image + "{ c = texelFetch(iChannel0, ivec2(p), 0); }")))
    still.unlink()
    for more in ([], ["--dry-run"], ["--frames", "1-2"]):
        capsys.readouterr()
        name = "f_#.png" if "--frames" in more else still.name
        assert main(["export", str(shader), "-o", str(tmp_path / name), "--size", size, *more]) == 4
        limit = "the buffers of a shader are drawn whole; at most 16384 a side are allowed"
        assert capsys.readouterr().err == f"rayfold: {shader}: {size.replace('x', ' x ')} pixels: {limit}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.glsl"]


def test_png_of_the_exr_is_the_png(scene, tmp_path):
    export(scene, "-o", tmp_path / "a.png")
    export(scene, "-o", tmp_path / "a.exr")
    linear, shown = read_exr(tmp_path / "a.exr"), read_pixels(tmp_path / "a.png")
    assert np.abs(linear_to_srgb(linear[..., :3]).astype(int) - shown[..., :3]).max() <= 1


def test_frames_follow_the_animation_and_resume(scene, tmp_path):
    words = [scene, "-o", tmp_path / "f_###.png", "--frames", "3-5", "--fps", "10"]
    answer = export(*words, "--json")
    facts = json.loads(answer.stdout)
    assert [Path(path).name for path in facts["output"]] == ["f_003.png", "f_004.png", "f_005.png"]
    frames = [read_pixels(tmp_path / f"f_00{n}.png") for n in (3, 4, 5)]
    assert not np.array_equal(frames[0], frames[1]) and not np.array_equal(frames[1], frames[2])
    export(scene, "-o", tmp_path / "still.png", "--time", "0.1")
    assert np.array_equal(read_pixels(tmp_path / "still.png"), frames[1])
    (tmp_path / "f_004.png").write_bytes(b"torn")
    kept = (tmp_path / "f_003.png").stat().st_mtime_ns
    export(*words)
    assert np.array_equal(read_pixels(tmp_path / "f_004.png"), frames[1])
    assert (tmp_path / "f_003.png").stat().st_mtime_ns == kept, "a frame that is done is not drawn again"
    export(*words, "--overwrite")
    assert (tmp_path / "f_003.png").stat().st_mtime_ns != kept
    lines = (tmp_path / "f.frames.jsonl").read_text().splitlines()
    assert [json.loads(line)["frame"] for line in lines] == [3, 4, 5]


def squares(pixels):
    """Means of 2 x 2 pixels, which is what a film keeps of the colors."""
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
        error = squares(frame) - squares(read_pixels(tmp_path / f"f_{number}.png")[..., :3])
        assert np.abs(error).mean() < 4 and np.abs(error.mean((0, 1))).max() < 3, number


def test_a_film_without_numbers_is_as_long_as_its_animation(scene, tmp_path):
    av = pytest.importorskip("av", reason="films need PyAV")
    export(scene, "-o", tmp_path / "film.mp4", "--fps", "24")
    with av.open(str(tmp_path / "film.mp4")) as film:
        assert sum(1 for _ in film.decode(video=0)) == 6


def test_sixteen_bits_and_recipe(scene, tmp_path):
    export(scene, "-o", tmp_path / "deep.png", "--bit-depth", 16, "--set", "color_offset=0.25", "--set", "tone.ev=-1")
    recipe = read_recipe(tmp_path / "deep.png")
    assert recipe["scene"]["settings"]["color_offset"] == 0.25 and recipe["scene"]["tone"]["ev"] == -1
    assert recipe["samples"] == 2 and recipe["size"] == [70, 46]
    export(scene, "-o", tmp_path / "deep.exr", "--bit-depth", 16, code=2)


def test_time_limit_leaves_a_whole_picture_and_says_so(scene, tmp_path):
    words = [scene, "-o", tmp_path / "a.png", "--samples", 10**6, "--time-limit", "1", "--json"]
    facts = json.loads(export(*words, code=3).stdout)
    assert facts["seconds"] < 20 and read_pixels(tmp_path / "a.png").shape == (46, 70, 4)


@pytest.mark.parametrize("name", ["f_#####.png", "film.mp4"])
def test_a_film_that_a_time_limit_ends_tells_what_is_done_and_goes_on(scene, tmp_path, name):
    """A frame takes longer than the limit on any machine; what was there before stays."""
    pytest.importorskip("av", reason="films need PyAV")
    words = [scene, "-o", tmp_path / name, "--samples", 10**5]
    export(scene, "-o", tmp_path / name, "--frames", "1-3", "--samples", 1)
    answer = export(*words, "--frames", "1-3", "--time-limit", "0.5", "--overwrite", "--json", code=3)
    facts = json.loads(answer.stdout)
    assert "0 of 3 frames are done; the same command resumes" in answer.stderr
    assert (facts["frames"], facts["output"]) == (0, []), "what an earlier run left is not what this one asks for"
    if name.endswith("mp4"):
        assert (tmp_path / name).stat().st_size > 0, "the film that was there before stays"


def test_a_time_limit_ends_films_of_one_sample_and_pictures_of_many_tiles(scene, tmp_path, monkeypatch, capsys):
    """A frame of one sample was never cut short, so all of them were drawn; so were all tiles of a picture."""
    words = [scene, "-o", tmp_path / "f_#######.png", "--frames", "1-1000000", "--samples", 1, "--time-limit", 0.5]
    answer = export(*words, code=3)
    assert " of 1000000 frames are done; the same command resumes" in answer.stderr
    assert 1 <= len(list(tmp_path.glob("f_0*.png"))) < 1000
    monkeypatch.setattr(render_module, "GRACE_SECONDS", 0.0)
    size = ["--size", "90000x90000", "--tile", "256", "--time-limit", "0.2"]
    assert main(["export", str(scene), "-o", str(tmp_path / "a.png"), *size]) == 3
    assert " tiles are drawn at --time-limit; nothing is written of a part\n" in capsys.readouterr().err
    assert not (tmp_path / "a.png").exists()


def test_no_sample_begins_that_would_end_after_the_grace(scene, monkeypatch):
    """It was ended from outside, and with it what was drawn: a poster of 5 samples of 16 s, 10 s late at most."""
    now, frame = [0.0], SimpleNamespace(device=SimpleNamespace(finish=lambda: None))
    monkeypatch.setattr(render_module.time, "monotonic", lambda: now[0])

    class Slow(Picture):
        draw = staticmethod(lambda *_: now.__setitem__(0, now[0] + 16) or frame)

    job = render_module.RenderJob(load(scene), (4, 4), 9, deadline=60.0)
    assert render_module.draw(Slow(None), job, None, Progress(0, ""))[1] == 4  # at 64 s: within the grace
    job, now[0] = replace(job, deadline=55.0), 0.0
    assert render_module.draw(Slow(None), job, None, Progress(0, ""))[1] == 3  # at 48 s, not at 64 s


def test_a_picture_of_one_sample_tells_its_progress_in_parts(scene, gpu, monkeypatch):
    """It was one step: 304 s of a deep zoom without a line. Its bits are those of the picture drawn at once."""
    job, steps = render_module.RenderJob(load(scene), (70, 46), 1), Progress(1, "")
    whole, seen, advance = render_module.render(FractalPicture(gpu), job, steps), [], steps.advance
    assert steps.done == 1
    monkeypatch.setattr(render_module, "PART", 32)
    monkeypatch.setattr(steps, "advance", lambda *_: advance() or seen.append(steps.done))
    parts = render_module.render(FractalPicture(gpu), job, steps)
    assert seen == [1, 1, 1, 1, 1, 2] and np.array_equal(parts.linear, whole.linear)


def test_a_picture_of_one_sample_keeps_its_parts_at_the_time_limit(scene, tmp_path, monkeypatch, capsys):
    """More than 5 s after --time-limit all was lost. Its parts are those of the whole, and a whole run replaces it."""
    monkeypatch.setattr(render_module, "PART", 32)
    words = ["export", str(scene), "--size", "64x40", "--samples", "1", "-o"]
    assert main([*words, str(tmp_path / "whole.png")]) == 0
    now, real, part = [0.0], time.monotonic, FractalPicture.draw
    monkeypatch.setattr(render_module, "time", SimpleNamespace(monotonic=lambda: real() + now[0]))
    monkeypatch.setattr(FractalPicture, "draw", lambda *args: now.__setitem__(0, now[0] + 40) or part(*args))
    capsys.readouterr()
    assert main([*words, str(tmp_path / "a.png"), "--time-limit", "60"]) == 3
    assert "2 of its 4 parts are drawn at --time-limit; the others are transparent" in capsys.readouterr().err
    kept, whole = read_pixels(tmp_path / "a.png"), read_pixels(tmp_path / "whole.png")
    assert np.array_equal(kept[:32], whole[:32]) and not kept[32:].any() and whole[..., 3].all()
    assert read_recipe(tmp_path / "a.png")["samples"] is None
    monkeypatch.undo()
    assert main(["verify", str(tmp_path / "a.png")]) == 1
    assert main([*words, str(tmp_path / "a.png")]) == 0
    assert np.array_equal(read_pixels(tmp_path / "a.png"), whole)


def test_dry_run_writes_nothing(scene, tmp_path):
    answer = export(scene, "-o", tmp_path / "a.png", "--size", "20000x20000", "--dry-run", "--json")
    facts = json.loads(answer.stdout)
    assert facts["tiles"] == 100 and facts["disk_bytes"] == 16 * 20000**2 and not (tmp_path / "a.png").exists()


def test_a_dry_run_counts_the_memory_of_geometry(tmp_path, capsys):
    """It promised 14 MB of a run that took 2.4 GiB."""
    path, said = tmp_path / "a.toml", []
    for level in (3, 6):
        table = f'kind = "sphereflake"\nmaterial = "a"\nlevel = {level}\n[[settings.materials]]\nname = "a"\n'
        path.write_text(f'picture = "raytrace"\n[[settings.procedural]]\n{table}')
        words = ["export", str(path), "-o", str(tmp_path / "a.png"), "--size", "8x8", "--dry-run", "--json"]
        assert main(words) == 0
        said.append(json.loads(capsys.readouterr().out)["host_bytes"])
    spheres = [sum(9**depth for depth in range(level + 1)) for level in (3, 6)]
    assert said[1] - said[0] >= 256 * (spheres[1] - spheres[0]) * 0.99


def test_quality_is_the_samples_per_pixel_of_a_flame(scene, tmp_path, capsys):
    """--samples 200 was 40 times the work of quality 200, and --quality an unknown option."""
    text = f"""<flames><flame name="a" time="0" zoom="1" quality="7" {FLAME}</flame>
        <flame name="b" time="2" quality="9" {FLAME}</flame></flames>"""
    path = tmp_path / "two.flame"
    path.write_text(text)
    one, film, wrong = (
        ExportOptions(path, tmp_path / "a.png", quality=q, film=f) for q, f in (("20", 0), ("20", 1), ("0", 0))
    )
    assert load_scene(one).settings.quality == 20
    assert [key.quality for key in load_scene(film).settings.keyframes] == [20, 20]
    with pytest.raises(UserError, match="--quality quality is 0.0; it must be 0.001 to"):
        load_scene(wrong)
    counts = []
    for quality in (1, 200):
        words = [path, "-o", tmp_path / "a.png", "--flame", "b", "--size", "640x480", "--quality", quality, "--dry-run"]
        assert main(["export", *map(str, words), "--json"]) == 0
        counts.append(json.loads(capsys.readouterr().out)["samples"])
    assert counts[0] == 1 and 11 <= counts[1] <= 14  # 0.3 million points; 61 in batches of 1, 0.4, 0.6 to 16 million
    for words, said in (
        ([scene], "a fractal picture has none; allowed are flame"),
        ([path, "--samples", 3], "together"),
    ):
        assert main(["export", *map(str, words), "-o", str(tmp_path / "b.png"), "--quality", "20"]) == 2
        assert said in capsys.readouterr().err


def test_a_film_says_what_flam3_s_temporal_samples_cost_and_names_the_frame(tmp_path, monkeypatch):
    """A .flame without the attribute takes 1000 of them, and each frame took long without a word."""
    path, flame = tmp_path / "two.flame", FLAME.replace(' temporal_samples="1"', "")
    notes, titles = [], []
    for body in (flame, FLAME):
        path.write_text(f'<flames><flame time="0" {body}</flame><flame time="2" {body}</flame></flames>')
        notes += [load(path, film=True).notes, load(path).notes]
    assert "interpolates the flames 1000 times" in notes[0][0] and notes[1:] == [(), (), ()]
    advance = Progress.advance
    monkeypatch.setattr(Progress, "advance", lambda self, *n: titles.append(self.title) or advance(self, *n))
    words = ["--film", "--size", "16x12", "--quality", "1", "-o", str(tmp_path / "f_##.png"), "--frames", "0-1"]
    assert main(["export", str(path), *words]) == 0
    assert [title.partition(", ")[2] for title in dict.fromkeys(titles)] == ["16 x 12, frame 0", "16 x 12, frame 1"]


def test_a_dry_run_tells_what_a_file_lacks_and_offers(tmp_path, capsys):
    maker = Maker()
    maker.tree |= {"extensionsUsed": ["ACME_glow"], "extensions": {"ACME_glow": {"a": 1}}}
    maker.node(mesh=square(maker))
    path = tmp_path / "avatar.vrm"  # a .glb by another name
    path.write_bytes(maker.glb())
    assert main(["export", str(path), "-o", str(tmp_path / "a.png"), "--dry-run", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert any("ACME_glow" in phrase for phrase in facts["ignored"])
    assert facts["notes"] == [] and facts["variants"] == [] and facts["animations"] == []


@pytest.mark.parametrize("suffix, words", [(".fbx", "Blender"), (".3mf", "trimesh"),
                                           (".spz", "Gaussian splats")])  # fmt: skip
def test_files_of_other_programs_name_a_converter(tmp_path, capsys, suffix, words):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"x")
    assert main(["export", str(path), "-o", str(tmp_path / "a.png")]) == 5
    assert words in capsys.readouterr().err


def test_a_plan_counts_the_buckets_of_a_flame(tmp_path):
    """Each bucket has 16 bytes of a histogram, 32 of sums and 16 of log-density, with density estimation 20 more."""
    words = ("-o", tmp_path / "a.png", "--size", "640x480", "--set", "supersample=2", "--dry-run", "--json")
    plain, estimated = (
        json.loads(export("anemone", *words, "--set", f"estimator_radius={radius}").stdout)["device_bytes_per_frame"]
        for radius in (0, 9)
    )
    buckets = 4 * 640 * 480
    assert 64 * buckets < plain < estimated - 20 * buckets and not (tmp_path / "a.png").exists()


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


def test_mistakes(scene, tmp_path):
    assert "local:N" in export(scene, "-o", tmp_path / "a.png", "--farm", "everywhere", code=2).stderr
    assert "no random numbers" in export(scene, "-o", tmp_path / "a.png", "--seed", 3, code=2).stderr
    assert "'' names no file" in export(scene, "-o", "", code=2).stderr
    assert "did you mean" in export(scene, "-o", tmp_path / "a.png", "--set", "knd=3", code=2).stderr
    assert "needs --farm" in export(scene, "-o", tmp_path / "a.png", "--split", "samples", code=2).stderr
    if find_spec("distributed"):
        split = export(scene, "-o", tmp_path / "a.png", "--farm", "local:1", "--split", "samples", code=2).stderr
        assert "fractal picture is split into tiles" in split
    assert not (tmp_path / "a.png").exists()


def test_a_picture_that_comes_whole_says_so(tmp_path):
    words = [ROOT / "scenes/reduction.toml", "-o", tmp_path / "a.png", "--size", "64x64", "--tile", 32]
    assert "is drawn whole" in export(*words, code=4).stderr


@pytest.mark.parametrize(
    ("scene", "code"), [("laplacian", 4), ("reduction", 4), ("demo", 4), ("laplacian_rays", 0), ("mandelbrot", 0)]
)
def test_a_side_longer_than_a_texture_is_refused_before_the_first_draw(tmp_path, capsys, scene, code):
    """By the dry run, too; a laplacian of rays without GL has no such limit, and a fractal is drawn in tiles."""
    words = ["export", scene, "-o", str(tmp_path / "a.png"), "--size", "16x16385", "--dry-run"]
    assert main(words) == code
    if code:
        assert capsys.readouterr().err.endswith("at most 4096 x 4096 pixels and here 16384 a side\n")


def test_tiles_without_bound_are_refused_and_a_job_lists_its_tiles_once(tmp_path, capsys):
    """One pixel a tile of 8192 x 8192 took 13 GB; each draw listed them all again."""
    assert main(["export", "mandelbrot", "-o", str(tmp_path / "a.png"), "--size", "8192x8192", "--tile", "1"]) == 2
    wanted = "rayfold: --tile 1: 67108864 tiles of 8192 x 8192 pixels; at most 262144 are allowed\n"
    assert capsys.readouterr().err == wanted
    job = render_module.RenderJob(load(ROOT / "scenes/mandelbrot.toml"), (9, 5), 1, tile=4)
    assert job.tiles is job.tiles and len(job.tiles) == 6 and sum(w * h for _, _, w, h in job.tiles) == 45


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
    said = export(*words, "-o", tmp_path / "f_#.png").stderr
    assert "cornell.toml: nothing moves, so all frames are alike" in said
    frames = [read_pixels(tmp_path / f"f_{n}.png") for n in (1, 2, 3)]
    assert np.array_equal(frames[0], frames[1]) and np.array_equal(frames[0], frames[2])
    assert "nothing moves" not in export(*words[:-2], "-o", tmp_path / "still.png").stderr
    assert np.array_equal(read_pixels(tmp_path / "still.png"), frames[0])


def test_a_full_disk_in_the_middle_of_a_film_tears_nothing(scene, tmp_path, monkeypatch, capsys):
    """Frames that were complete are kept, no temporary file is left, and the run resumes."""
    from renderer import cli

    written = 0

    def full(descriptor):
        nonlocal written
        written += 1
        if written == 6:  # a frame, its manifest, a frame, ...
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    words = ["export", str(scene), "-o", str(tmp_path / "f_#.png"), "--frames", "1-4"]
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        assert cli.main(words) == 3
    told = capsys.readouterr().err
    assert "No space left" in told or "disk is full" in told
    left = sorted(path.name for path in tmp_path.iterdir())
    frames = [name for name in left if name.startswith("f_")]
    assert 2 <= len(frames) < 4 and left == sorted([*frames, "f.frames.jsonl", scene.name])
    kept = {name: (tmp_path / name).stat().st_mtime_ns for name in frames[:2]}
    assert cli.main(words) == 0 and len(list(tmp_path.glob("f_*.png"))) == 4
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in kept} == kept
    assert all(read_pixels(path).shape == (46, 70, 4) for path in tmp_path.glob("f_*.png"))
