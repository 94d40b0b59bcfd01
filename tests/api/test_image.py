"""Images: crops, arithmetic, copies, pickles, layers and files; each compared with the picture that it came from."""

import copy
import pickle

import numpy as np
import pytest

import renderer
from renderer import cli
from renderer.formats.images import read_exr, read_pixels, read_recipe


@pytest.fixture(scope="module")
def image():
    return renderer.render("cornell", size=(16, 12), samples=2, device="cpu")


def test_pictures_of_a_picture_are_images_and_others_are_plain(image):
    for part in (image[:5], image[2:4, 3:9], image[::-1], image * 2, np.add(image, image), -image, np.flipud(image)):
        assert isinstance(part, renderer.Image) and part.samples == 2 and part.scene.title == image.scene.title
    for part in (image[..., :3], image[0], image[image > 0], image > 0, image.sum(axis=2), np.asarray(image)):
        assert type(part) is np.ndarray
    assert isinstance(image.mean(), np.float32) and isinstance(image[0, 0, 0], np.float32)
    assert np.array_equal((image * 2)[1:3], np.asarray(image)[1:3] * 2)


def test_a_png_of_numbers_that_are_not_finite_is_said(image, tmp_path):
    wrong = image.copy()
    wrong[2, 3], wrong[4, 5, 0] = np.nan, np.inf
    with pytest.warns(UserWarning, match="n.png: 2 pixels are NaN or infinite, which .exr keeps and .png cannot"):
        wrong.save(tmp_path / "n.png")
    wrong.save(tmp_path / "n.exr")
    assert np.array_equal(read_exr(tmp_path / "n.exr"), wrong, equal_nan=True)


def test_a_mask_of_no_object_is_a_sentence_and_draws_nothing(image, monkeypatch):
    monkeypatch.setattr(renderer.api.image, "render", None)
    for name, sentence in (
        ("quads[44]", r"^mask 'quads\[44\]': the scene has no such object \(did you mean .*; allowed are quads\[0\]"),
        (3, "^mask 3: the scene has no such object; allowed are"),
    ):
        with pytest.raises(renderer.UserError, match=sentence):
            image.mask(name)
    with pytest.raises(renderer.UserError, match="has no masks; the whole picture has"):
        image[:4].mask("quads[0]")
    fractal = renderer.render("julia", size=(8, 6), samples=1)
    with pytest.raises(renderer.UserError, match="^mask: a fractal picture has no objects"):
        fractal.mask("set")


@pytest.mark.slow  # another program
def test_masks_tell_instances_apart(image):
    moved = np.eye(4)[None].repeat(3, 0)
    moved[:, 0, 3] = -2.5, 0, 2.5
    scene = renderer.Scene(
        materials=[{"name": "gray"}], spheres=[{"material": "gray", "name": "ball"}], zenith=(1, 1, 1),
        instances=renderer.instances("ball", moved), view={"position": [0, 0, 9], "fov_degrees": 40},
    )  # fmt: skip
    drawn = renderer.render(scene, size=(48, 16), samples=16, device="cpu")
    masks = [drawn.mask(f"instances[{k}]") for k in range(3)]
    columns = np.arange(48) - 23.5
    assert [np.sign(round((mask * columns).sum() / mask.sum())) for mask in masks] == [-1, 0, 1]
    assert all(mask.dtype == np.float32 and mask.shape == (16, 48) and mask.max() == 1 for mask in masks)
    assert np.allclose(sum(masks), drawn.mask("gray"), atol=1e-6)
    assert np.abs((sum(masks) > 0.5) ^ (drawn.layers["id"] > 0)).mean() < 0.1 and not drawn.scene.settings.cryptomatte
    distance, radius = 9.0, 1.0  # of the middle one: a disc of tan(asin(r / d)), of a picture 2 tan(20 degrees) high
    area = np.pi * (np.tan(np.arcsin(radius / distance)) / (2 * np.tan(np.radians(20))) * 16) ** 2
    assert abs(masks[1].sum() / area - 1) < 0.05


def test_a_crop_is_shown_as_bright_as_in_the_whole(image, tmp_path):
    crop = image[3:9, 2:11]
    assert np.array_equal(crop.displayed(), image.displayed()[3:9, 2:11])
    assert crop._repr_png_().startswith(b"\x89PNG")
    crop.save(tmp_path / "crop.png")
    assert np.array_equal(read_pixels(tmp_path / "crop.png"), crop.displayed())
    with pytest.raises(renderer.InputError, match="recipe"):  # no recipe draws it again
        read_recipe(tmp_path / "crop.png")
    crop.save(tmp_path / "crop.exr")
    assert np.array_equal(read_exr(tmp_path / "crop.exr"), crop)
    with pytest.raises(renderer.UserError, match="no layers"):
        crop.layers  # noqa: B018
    with pytest.raises(renderer.UserError, match="is no picture"):
        image.transpose().save(tmp_path / "x.png")


@pytest.mark.parametrize("clone", [np.copy, copy.copy, copy.deepcopy, lambda image: pickle.loads(pickle.dumps(image))])
def test_copies_know_what_the_picture_knows(image, clone):
    other = clone(image) if clone is not np.copy else image.copy()
    assert isinstance(other, renderer.Image) and np.array_equal(other, image)
    assert (other.samples, other.device, other.scene.settings) == (image.samples, image.device, image.scene.settings)
    assert np.array_equal(other.displayed(), image.displayed())
    crop = pickle.loads(pickle.dumps(image[:4]))
    assert np.array_equal(crop.displayed(), image.displayed()[:4])


def test_a_saved_copy_is_verified_and_an_edited_picture_has_no_recipe(image, tmp_path):
    pickle.loads(pickle.dumps(image)).save(tmp_path / "a.png", bits=16)
    answer = renderer.verify(tmp_path / "a.png", device="cpu")
    assert answer["same"] is True and answer["intact"] is True and answer["max"] == 65535
    for name, edit in (("set", lambda i: i.__setitem__((0, 0), 0)), ("scaled", lambda i: np.multiply(i, 2, out=i))):
        edited = image.copy()
        edit(edited)
        edited.save(tmp_path / f"{name}.png")
        with pytest.raises(renderer.InputError):
            read_recipe(tmp_path / f"{name}.png")


def test_layers_are_those_that_export_writes(image, tmp_path):
    from OpenEXR import File

    words = ["export", "cornell", "-o", str(tmp_path / "e.exr"), "--size", "16x12", "--samples", "2", "--device", "cpu"]
    assert cli.main(words) == 0
    image.save(tmp_path / "a.exr")
    at_once = renderer.render("cornell", size=(16, 12), samples=2, device="cpu", layers=True)
    with File(str(tmp_path / "e.exr")) as exported, File(str(tmp_path / "a.exr")) as saved:
        wanted = {name: channel.pixels.copy() for name, channel in exported.channels().items()}
        found = {name: channel.pixels.copy() for name, channel in saved.channels().items()}
    assert {"RGBA", "albedo", "normal", "depth", "id"} <= set(wanted) and set(found) == set(wanted)
    for name, layer in wanted.items():
        assert np.array_equal(found[name], layer), name
    for name, layer in at_once.layers.items():
        assert np.array_equal(layer, image.layers[name]), name
    assert renderer.render("mandelbrot", size=(4, 4), samples=1).layers == {}


def test_bits_dtype_and_suffix_are_checked(image, tmp_path):
    for bits in (7, 32, True, None):
        with pytest.raises(renderer.UserError, match="bits is .*; allowed are 8, 16"):
            image.save(tmp_path / "x.png", bits=bits)
    with pytest.raises(renderer.UserError, match="allowed are .png, .exr"):
        image.save(tmp_path / "x.jpg")
    with pytest.raises(renderer.UserError, match="allowed are u1, u2"):
        image.displayed("f4")
    with pytest.raises(renderer.UserError, match="was not drawn"):
        np.zeros((2, 2, 4), "f4").view(renderer.Image).save(tmp_path / "x.png")
    assert not list(tmp_path.iterdir())
