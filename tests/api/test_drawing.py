"""Drawing by `import renderer` alone: arrays equal to what `rayfold export` writes, and mistakes in sentences."""

import pydoc
import re
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image as PillowImage

import rayfold
import renderer
from renderer import cli
from renderer.formats.images import read_pixels
from renderer.gpu import list_devices


def test_render_gives_the_pixels_that_export_writes(tmp_path):
    image = renderer.render("cornell", size=(24, 18), samples=2, device="cpu")
    assert image.shape == (18, 24, 4) and image.dtype == np.float32 and image.samples == 2
    words = ["--size", "24x18", "--samples", "2", "--device", "cpu"]
    assert cli.main(["export", "cornell", "-o", str(tmp_path / "a.png"), *words]) == 0
    image.save(tmp_path / "b.png")
    assert np.array_equal(read_pixels(tmp_path / "a.png"), read_pixels(tmp_path / "b.png"))
    assert np.array_equal(image.displayed()[..., :3], read_pixels(tmp_path / "b.png")[..., :3])
    assert np.array_equal(renderer.render(tmp_path / "b.png", device="cpu"), image)


def test_settings_are_keywords_and_mistakes_are_sentences():
    one = renderer.render("cornell", size=(16, 12), samples=1, max_depth=1)
    assert not np.array_equal(one, renderer.render("cornell", size=(16, 12), samples=1, max_depth=3))
    with pytest.raises(renderer.UserError, match="unknown key 'max_dept'.*did you mean max_depth"):
        renderer.render("cornell", max_dept=3)
    with pytest.raises(renderer.UserError, match="size is .0, 5.; it must be"):
        renderer.render("cornell", size=(0, 5))
    with pytest.raises(renderer.UserError, match="samples is 0"):
        renderer.render("cornell", samples=0)
    with pytest.raises(renderer.InputError, match="no_such_scene: No such file"):
        renderer.render("no_such_scene")
    with pytest.raises(renderer.UserError, match="unknown suffix .jpg"):
        renderer.render("mandelbrot", size=(4, 4), samples=1).save("x.jpg")


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"max_depth": -1}, "^max_depth is -1; it must be 1 to 128"),
        ({"spp": 3}, "did you mean samples"),
        ({"fov": 3}, "did you mean camera.fov_degrees"),
        ({"camera": {"fov": 30}}, "did you mean fov_degrees"),
        ({"width": 3}, "did you mean size"),
        ({"depth": 3}, "did you mean max_depth or rr_depth"),
        ({"max_depth": None}, "^max_depth is None"),
        ({"variance": 1}, "^variance is 1; it must be True or False"),
        ({"progress": 5}, "^progress is 5; it must be a function"),
        ({"materials.9.color": (1, 0, 0)}, "^materials.9.color: no item '9'; there are 4"),
        ({"materials.0.colr": (1, 0, 0)}, "did you mean color"),
        ({"materials": [{"name": "a"}]}, "^materials: .*material is 'floor'|^materials: .*allowed are a"),
        ({"tone": "acs"}, "^tone.curve is 'acs'; allowed are none"),
        ({"tone": {"evv": 1}}, "did you mean ev"),
        ({"tone": 3}, "^tone is 3; it must be a table"),
        ({"size": 64}, "^size is 64; it must be .width, height."),
        ({"size": (8.5, 8)}, "^size is"),
        ({"samples": True}, "^samples is True"),
        ({"samples": 2.5}, "^samples is 2.5"),
        ({"time": "now"}, "^time is 'now'"),
        ({"time": float("nan")}, "^time is nan"),
        ({"device": 3}, "^device is 3; it must be a text"),
        ({"device": "gpu"}, "^device gpu: unknown; allowed are auto"),
        ({"device": "opencl:9:9"}, "^device opencl:9:9: not on this machine"),
    ],
)
def test_a_wrong_keyword_is_a_sentence_that_names_it(keywords, sentence):
    with pytest.raises(renderer.UserError, match=sentence):
        renderer.render("cornell", **{"size": (4, 4), "samples": 1, **keywords})


def test_a_wrong_source_is_a_sentence():
    for source, sentence in ((5, "not int"), (None, "not NoneType"), ("cornel", "did you mean cornell")):
        with pytest.raises(renderer.UserError, match=sentence):
            renderer.render(source)
    with pytest.raises(renderer.UserError, match="load takes a path"):
        renderer.load(5)


def test_keywords_are_checked_together_in_any_order():
    together = {
        "materials": [{"name": "x", "color": (0.2, 0.4, 0.8)}],
        "spheres": [{"material": "x", "center": np.zeros(3)}],
        "quads": (),
        "procedural": [],
        "meshes": [],
        "zenith": np.ones(3, "f4"),
    }
    pictures = [
        renderer.render("cornell", size=(8, 6), samples=1, device="cpu", **{key: together[key] for key in order})
        for order in ([*together], [*together][::-1])
    ]
    assert np.array_equal(*pictures) and pictures[0].any()


def test_dotted_keywords_tone_and_camera():
    draw = {"size": (np.int64(12), np.int32(9)), "samples": np.int64(1), "device": "cpu"}
    scene = renderer.load("cornell")
    plain = renderer.render(scene, **draw)
    red = renderer.render(scene, **draw, **{"materials.0.color": np.array([1, 0, 0])})
    assert red.scene.settings.materials[0].color == (1.0, 0.0, 0.0) and not np.array_equal(red, plain)
    brighter = renderer.render(scene, tone={"ev": 1.0}, **draw)
    assert np.array_equal(brighter, plain) and brighter.displayed().mean() > plain.displayed().mean()
    assert renderer.render(scene, tone="aces", **draw).scene.tone.curve == "aces"
    assert renderer.render(scene, **draw, **{"tone.ev": 2}).scene.tone.ev == 2.0
    # What image.scene returns is taken back.
    again = renderer.render(scene, **draw, camera=plain.scene.settings.view, materials=plain.scene.settings.materials)
    assert np.array_equal(again, plain)


def test_an_open_scene_draws_what_render_draws():
    with renderer.open("cornell", device="cpu") as opened:
        for depth in (1, 3, 1):
            warm = opened.render(size=(12, 9), samples=2, max_depth=depth)
            assert np.array_equal(
                warm, renderer.render("cornell", size=(12, 9), samples=2, max_depth=depth, device="cpu")
            )
        last = list(opened.refine(size=(12, 9), samples=2, max_depth=1))[-1]
        assert np.array_equal(last, warm)
    with pytest.raises(renderer.UserError, match="is closed"):
        opened.render(size=(12, 9))


def test_progress_is_called_and_can_cancel():
    calls = []
    image = renderer.render("cornell", size=(8, 6), samples=4, device="cpu", progress=lambda *step: calls.append(step))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)] and image.samples == 4
    image = renderer.render("cornell", size=(8, 6), samples=9, device="cpu", progress=lambda done, _: done < 3)
    assert image.samples == 3
    assert np.array_equal(image, renderer.render("cornell", size=(8, 6), samples=3, device="cpu"))


def test_frames_of_a_picture_are_arrays():
    scene = renderer.load("cornell")
    frame = renderer.open_picture(scene, "cpu").draw(scene.settings, (8, 6), 0.0)
    image = renderer.render(scene, size=(8, 6), samples=1, device="cpu")
    shared = np.from_dlpack(frame)
    assert np.array_equal(np.asarray(frame), image) and np.array_equal(shared, image)
    assert np.asarray(frame, "f8").dtype == np.float64
    fractal = renderer.load("julia")
    drawn = np.asarray(renderer.open_picture(fractal).draw(fractal.settings, (8, 6), 0.0))
    assert np.array_equal(drawn, renderer.render(fractal, size=(8, 6), samples=1))


def test_opengl_says_which_thread_and_device_it_takes():
    renderer.render("mandelbrot", size=(4, 4), samples=1)
    with ThreadPoolExecutor(1) as pool, pytest.raises(renderer.UnavailableError, match="draws on one thread"):
        pool.submit(renderer.render, "mandelbrot", size=(4, 4), samples=1).result()
    with ThreadPoolExecutor(1) as pool:  # kernels have no such limit
        pool.submit(renderer.render, "cornell", size=(4, 4), samples=1, device="cpu").result()
    device_id = next((d.device_id for d in list_devices()[0]), None)
    if device_id:
        with pytest.warns(UserWarning, match=f"drawn by OpenGL on .*, not on the device {device_id}"):
            renderer.render("mandelbrot", size=(4, 4), samples=1, device=device_id)


def test_a_film_and_its_frames(tmp_path, monkeypatch):
    done = []
    path = renderer.film(
        "julia", tmp_path / "j_##.png", frames=(1, 3), size=(8, 6), samples=1, progress=lambda *step: done.append(step)
    )
    assert path.name == "j_##.png" and done == [(1, 3), (2, 3), (3, 3)]
    assert sorted(p.name for p in tmp_path.glob("*.png")) == ["j_01.png", "j_02.png", "j_03.png"]
    third = renderer.render("julia", size=(8, 6), samples=1, time=2 / 24)
    assert np.array_equal(read_pixels(tmp_path / "j_03.png")[..., :3], third.displayed()[..., :3])
    monkeypatch.setitem(sys.modules, "av", None)  # which the wheel does not bring
    renderer.film("julia", tmp_path / "j.gif", frames=(1, 2), size=(8, 6), samples=1)
    with PillowImage.open(tmp_path / "j.gif") as gif:
        assert gif.n_frames == 2 and [(gif.seek(n), gif.info["duration"])[1] for n in (0, 1)] == [40, 40]
    with pytest.raises(renderer.UnavailableError, match="^videos, but .gif, need PyAV: "):
        renderer.film("julia", tmp_path / "j.mp4", frames=(1, 2), size=(8, 6), samples=1)
    for output, more, sentence in (
        ("x.png", {}, "is no film"),
        ("x.gif", {}, "needs frames="),
        ("x.gif", {"frames": 3}, "first and the last frame"),
        ("x.gif", {"frames": (1, 2), "iterations": 3}, "did you mean max_iterations"),
    ):
        with pytest.raises(renderer.UserError, match=sentence):
            renderer.film("mandelbrot", tmp_path / output, **more)


def test_refine_ends_with_the_picture_of_render():
    images = list(renderer.refine("cornell", size=(16, 12), samples=5))
    assert [image.samples for image in images] == [1, 2, 4, 5]
    assert np.array_equal(images[-1], renderer.render("cornell", size=(16, 12), samples=5))


def test_a_notebook_shows_the_picture_while_it_is_drawn(monkeypatch):
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["image/png"])

    def display(data, raw, display_id=False):
        shown.append(data["image/png"])
        return Handle()

    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    fake.display = types.ModuleType("IPython.display")
    fake.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", fake.display)
    image = renderer.render("mandelbrot", size=(16, 12), samples=2)
    assert len(shown) >= 1 and all(data.startswith(b"\x89PNG") for data in shown)
    count = len(shown)
    image._ipython_display_()  # the cell's last value: it stands there already
    assert len(shown) == count
    image._ipython_display_()
    assert len(shown) == count + 1


@pytest.mark.parametrize("package", [renderer, renderer.flames, renderer.cdollar, renderer.gpu, rayfold])
def test_names_are_there_and_no_others(package):
    listed = {name for name in dir(package) if not name.startswith("_")}
    assert listed and not {"Any", "TYPE_CHECKING", "import_module"} & listed
    for name in getattr(package, "__all__", listed):
        value = getattr(package, name)
        assert value.__doc__ or isinstance(value, (str, int, tuple)), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("package", [renderer, rayfold])
def test_help_is_a_page_that_names_what_there_is(package):
    text = pydoc.plain(pydoc.render_doc(package))
    assert len(text.splitlines()) < 90
    for name in dir(renderer):
        assert name.startswith("_") or re.search(rf"\b{name}\b", text), name
    with pytest.raises(AttributeError, match="did you mean render"):
        renderer.rendr  # noqa: B018
    assert rayfold.render is renderer.render


@pytest.mark.parametrize("answer", [False, 0, np.False_])
def test_a_cancelled_film_says_what_is_kept_and_goes_on(tmp_path, answer):
    draw = {"frames": (1, 3), "size": (8, 6), "samples": 1}
    with pytest.raises(
        renderer.IncompleteError, match=r"f_#.png: cancelled; 1 of 3 frames are kept in .*the same call"
    ):
        renderer.film("julia", tmp_path / "f_#.png", **draw, progress=lambda done, _: answer)
    assert [p.name for p in tmp_path.glob("*.png")] == ["f_1.png"]
    done = []
    renderer.film("julia", tmp_path / "f_#.png", **draw, progress=lambda *step: done.append(step))
    assert done == [(2, 3), (3, 3)]
    assert renderer.render("cornell", size=(8, 6), samples=9, progress=lambda *_: answer).samples == 1


def test_errors_of_films_name_keywords(tmp_path):
    draw = {"frames": (1, 1), "size": (8, 6), "samples": 1}
    renderer.film("julia", tmp_path / "f_#.png", **draw)
    with pytest.raises(renderer.UserError, match="force=True replaces them"):
        renderer.film("mandelbrot", tmp_path / "f_#.png", **draw)
    renderer.film("mandelbrot", tmp_path / "f_#.png", **draw, force=True)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"fps": 0}, "^fps is 0; it must be a whole number of at least 1"),
        ({"fps": "8"}, "^fps is '8'"),
        ({"fps": -1}, "^fps is -1"),
        ({"fps": float("nan")}, "^fps is nan"),
        ({"samples": 1.5}, "^samples is 1.5"),
        ({"time": "now"}, "^time is 'now'"),
        ({"frames": (3, 1)}, r"^frames is \(3, 1\); it must be the numbers"),
        ({"frames": (0, 9_999_999)}, "^frames 0-9999999: names more"),
        ({"frames": None}, r"^/.*f.gif: a video needs frames=\(A, B\), or a scene"),
    ],
)
def test_a_wrong_keyword_of_a_film_is_a_sentence(tmp_path, keywords, sentence):
    with pytest.raises(renderer.UserError, match=sentence):
        renderer.film("mandelbrot", tmp_path / "f.gif", **{"frames": (1, 2), "size": (8, 6), **keywords})


def test_a_partial_camera_changes_only_its_keys():
    draw = {"size": (16, 12), "samples": 2, "device": "cpu"}
    whole = {"position": [278.0, 273.0, -800.0], "target": [278.0, 273.0, 0.0], "fov_degrees": 30.0}
    partial = renderer.render("cornell", camera={"fov_degrees": 30}, **draw)
    assert np.array_equal(partial, renderer.render("cornell", camera=whole, **draw)) and partial[..., :3].max() > 0.1
    by_dots = renderer.render("cornell", **draw, **{"camera.fov_degrees": 30})
    assert np.array_equal(by_dots, partial)
    assert renderer.Scene(camera={"fov_degrees": 30}, zenith=(1, 1, 1)).settings.view.fov_degrees == 30
    keyframes = [{"time": 1.0, "set": {"view.position": [0, 1, 5], "view.fov_degrees": 50}}]
    moving = renderer.Scene(animation={"duration": 1.0, "keyframes": keyframes}, environment={"preset": "studio"})
    tracks = renderer.render(moving, camera={"fov_degrees": 30}, **draw).scene.animation.tracks
    assert [track.path for track in tracks] == ["view.position"]
    for wrong, sentence in (
        ((1, 2, 3), r"^camera is \[1, 2, 3\]; it must be a table"),
        ({"eye": 1}, "^camera: unknown"),
    ):
        with pytest.raises(renderer.UserError, match=sentence):
            renderer.render("cornell", camera=wrong, **draw)
    with pytest.raises(renderer.UserError, match="unknown key 'camera'"):
        renderer.render("laplacian", camera={"height": 1}, **draw)
