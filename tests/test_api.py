"""The public API: `import renderer` alone, its arrays equal to what `rayfold export` writes."""

import sys
import types

import numpy as np
import pytest

import renderer
from renderer import cli
from renderer.formats.images import read_pixels


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


def test_parts_of_a_picture_and_arithmetic_are_plain_arrays():
    image = renderer.render("mandelbrot", size=(8, 6), samples=1, device="cpu")
    for array in (image[:2], image * 2, np.add(image, image), image[image > 0], -image):
        assert type(array) is np.ndarray
    assert isinstance(image.mean(), np.float32) and isinstance(image[0, 0, 0], np.float32)
    assert np.array_equal((image * 2)[1:3], np.asarray(image)[1:3] * 2) and image.samples == 1


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


def test_names_are_there_and_no_others():
    assert set(renderer.__all__) <= set(dir(renderer)) | set(renderer.__all__)
    for name in renderer.__all__:
        assert getattr(renderer, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        renderer.nothing  # noqa: B018
