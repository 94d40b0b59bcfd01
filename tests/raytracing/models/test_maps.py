"""Textures of materials: maps of scene files, several sets of coordinates, transforms; against NumPy and algebra."""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.formats import gltf, texture_maps
from renderer.formats.gltf import textures as gltf_textures
from renderer.formats.images import srgb_to_linear, write_exr, write_png
from renderer.formats.texture_maps import normals_from_heights
from renderer.pictures.raytrace import Picture
from renderer.raytracing.instances import Instance
from renderer.raytracing.material_maps import TextureFile, projected_texcoords, texture_slots
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.raytracing.settings import Material, MeshShape, Quad, Settings, Sphere
from renderer.raytracing.textures import TextureArrays
from renderer.scene.cameras import Camera
from tests.raytracing.models.layers_picture import LayersPicture

SIZE = (60, 60)
WHITE = (1.0, 1.0, 1.0)
SQUARE = Quad("mapped", ((-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, 0.0), (-1.0, 1.0, 0.0)))
BALL = Sphere("mapped", radius=1.0)
TILTED = ((-1.5, -1.5, 1.0), (1.5, -1.5, 1.0), (1.5, 1.5, -1.0), (-1.5, 1.5, -1.0))


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def facing(material, textures, **changes):
    """Seen from +z so that the square from -1 to 1 just fills the picture."""
    fov = float(np.degrees(2 * np.arctan(0.01)))
    view = Camera((0.0, 0.0, 100.0), fov_degrees=fov)
    keys = dict(view=view, samples=1, horizon=WHITE, zenith=WHITE, max_depth=3, quads=(SQUARE,))
    return Settings(**(keys | {"materials": (material,), "textures": tuple(textures)} | changes))


def texture(tmp_path, name, pixels, **more):
    write_png(tmp_path / f"{name}.png", np.asarray(pixels, "u1"))
    return TextureFile(name, str(tmp_path / f"{name}.png"), **more)


def pixel_centers():
    """x to the right and y up, from -1 to 1, of the middles of the pixels."""
    places = (np.arange(60) + 0.5) / 30 - 1
    return np.meshgrid(places, -places)


def nearest(pixels, u, v):
    height, width = pixels.shape[:2]
    rows, columns = np.floor(v * height).astype(int) % height, np.floor(u * width).astype(int) % width
    return srgb_to_linear(pixels)[rows, columns]


def assert_mostly_equal(found, wanted, inside):
    """Pixels that cross a texel's edge differ: the albedo is a mean over the pixel."""
    apart = np.abs(found - wanted).max(2)[inside]
    assert np.median(apart) < 1e-5 and (apart < 1e-3).mean() > 0.7, (np.median(apart), (apart < 1e-3).mean())


@pytest.mark.slow
def test_color_maps_of_quads_spheres_and_boxes(picture, tmp_path, rng):
    """The picture upright on a quad, repeated and moved; as a globe on a sphere; by box projection on a bare mesh."""
    pixels = rng.integers(0, 256, (5, 7, 3), dtype="u1")
    mapped = Material("mapped", color=WHITE, color_texture="a")
    chart = texture(tmp_path, "a", pixels, filter="nearest", repeat=(1.5, 2.0), offset=(0.25, 0.5))
    x, y = pixel_centers()
    albedo = picture.layers(facing(mapped, [chart]), SIZE)["albedo"]
    assert_mostly_equal(
        albedo, nearest(pixels, (x + 1) / 2 * 1.5 + 0.25, (1 - y) / 2 * 2 + 0.5), np.full_like(x, 1, bool)
    )
    inside = np.hypot(x, y) < 0.8
    z = np.sqrt(np.maximum(1 - x * x - y * y, 0))
    u, v = 0.5 + np.arctan2(x, z) / (2 * np.pi), np.arccos(y) / np.pi
    placed = Instance("ball", position=(2.0, 0.0, 0.0))
    shifted = Camera((2.0, 0.0, 100.0), (2.0, 0.0, 0.0), fov_degrees=facing(mapped, [chart]).view.fov_degrees)
    for more in (
        {"spheres": (BALL,)},
        {"spheres": (replace(BALL, name="ball"),), "instances": (placed,), "view": shifted},
    ):
        albedo = picture.layers(facing(mapped, [chart], quads=(), **more), SIZE)["albedo"]
        assert_mostly_equal(albedo, nearest(pixels, u * 1.5 + 0.25, v * 2 + 0.5), inside)
    path = tmp_path / "bare.obj"
    path.write_text("v -1 -1 0\nv 1 -1 0\nv 1 1 0\nv -1 1 0\nf 1 2 3 4\n")
    albedo = picture.layers(facing(mapped, [chart], quads=(), meshes=(MeshShape("mapped", str(path)),)), SIZE)["albedo"]
    assert_mostly_equal(
        albedo, nearest(pixels, (x + 1) / 2 * 1.5 + 0.25, (1 - y) / 2 * 2 + 0.5), np.full_like(x, 1, bool)
    )


def test_box_projection_shows_pictures_unmirrored_from_outside():
    """The six faces of a cube: u runs to the right of who looks at the face, v downwards."""
    for axis in range(3):
        for side in (-1.0, 1.0):
            normal = np.eye(3)[axis] * side
            up = np.array([0.0, 0.0, -side]) if axis == 1 else np.array([0.0, 1.0, 0.0])
            right = np.cross(up, normal)
            corners = np.array([normal + a * right + b * up for a, b in ((-1, -1), (1, -1), (1, 1))])
            whole = np.concatenate([corners[None], [[[-1, -1, -1], [1, 1, 1], [1, 1, 1]]]])  # the shape's bounds
            uv = projected_texcoords(whole)[0]
            assert np.allclose(uv, [[0, 1], [1, 1], [1, 0]]), (axis, side)


def map_pixels(texture_file, **keys):
    """The first texel (r, g, b, a) of the only map of a material, as kernels get it."""
    _, (made,) = texture_slots([Material("mapped", "metallic", **keys)], [texture_file])
    return tuple(made.pixels[0, 0].tolist())


def test_texels_follow_color_space_channel_and_use(tmp_path):
    """Colors reach the kernels in sRGB, numbers in linear values of one channel, converted ones as floats."""
    color = np.full((2, 2, 3), (51, 102, 204))
    linear = lambda v: ((v / 255 + 0.055) / 1.055) ** 2.4  # noqa: E731
    assert map_pixels(texture(tmp_path, "a", color), color_texture="a") == (51, 102, 204, 255)
    bent = texture(tmp_path, "b", color, color_space="linear")
    assert map_pixels(bent, color_texture="b") == pytest.approx((51 / 255, 102 / 255, 204 / 255, 1))
    assert map_pixels(texture(tmp_path, "c", color), roughness_texture="c") == (51,) * 4
    blue = texture(tmp_path, "d", color, color_space="srgb", channel="blue")
    assert map_pixels(blue, roughness_texture="d") == pytest.approx((linear(204),) * 4)
    packed = texture(tmp_path, "e", color)
    assert map_pixels(packed, metallic=0.5, metallic_roughness_texture="e") == (51, 102, 204, 255)
    ramp = texture(tmp_path, "f", np.tile([[[0], [85], [170]]], (2, 1, 3)))
    slope = 0.5 * (85 - 170) / 255 * 3 / 2  # a central difference across the picture's edge
    red, green, blue_, _ = map_pixels(ramp, bump_texture="f", bump_scale=0.5)
    wanted = np.array([-slope, 0, 1]) / np.hypot(slope, 1)
    assert np.allclose(np.array([red, green, blue_]) / 127.5 - 1, wanted, atol=0.005)
    see_through = texture(tmp_path, "g", np.full((2, 2, 4), (10, 20, 30, 40)))
    assert map_pixels(see_through, alpha_texture="g", alpha_mode="blend") == (40,) * 4
    values = np.array([0.1, 0.25, 0.7, 0.3], "f4")
    for name, keys, wanted in (
        ("color", {}, values),
        ("color", {"color_space": "srgb"}, [*(((values[:3] + 0.055) / 1.055) ** 2.4), 0.3]),
        ("roughness", {"channel": "green"}, [0.25] * 4),
        ("alpha", {}, [0.3] * 4),
    ):
        write_exr(tmp_path / "f.exr", {"RGBA": np.tile(values, (2, 2, 1))})
        floats = TextureFile("f", str(tmp_path / "f.exr"), **keys)
        mode = {"alpha_mode": "blend"} if name == "alpha" else {}
        assert map_pixels(floats, **{f"{name}_texture": "f"}, **mode) == pytest.approx(tuple(wanted), abs=1e-6)
    heights = np.linspace(0, 0.01, 8, dtype="f4").reshape(1, 8).repeat(2, 0)  # 8 bits would make three steps of it
    found = normals_from_heights(heights, 1.0)[0, 1:-1]
    assert found.dtype == np.float32 and np.allclose(found[:, 0], 0.5 - 0.04 / 7 / np.hypot(1, 0.08 / 7), atol=1e-6)
    write_exr(tmp_path / "w.exr", {"RGB": np.full((1, 1, 3), 1.5, "f4")})
    with pytest.raises(InputError, match=r"w.exr: holds numbers from 1 to 1.5; a texture's are from 0 to 1"):
        map_pixels(TextureFile("w", str(tmp_path / "w.exr")), color_texture="w")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_normals_are_made_in_blocks_of_rows(rng, monkeypatch, dtype):
    """A height map of 5000 x 5000 took 3 GiB. Blocks give the bits of one block, in two pictures of memory."""
    heights = rng.integers(0, 256, (300, 500)).astype(dtype) / (1 if dtype == "u1" else np.float32(255))
    whole = normals_from_heights(heights.astype(dtype), 0.1)  # two blocks
    monkeypatch.setattr(texture_maps, "BLOCK_ROWS", 1 << 20)
    assert np.array_equal(normals_from_heights(heights.astype(dtype), 0.1), whole)
    monkeypatch.setattr(texture_maps, "BLOCK_ROWS", 7)
    tracemalloc.start()
    assert np.array_equal(normals_from_heights(heights.astype(dtype), 0.1), whole)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * whole.nbytes + (1 << 19)


def test_normal_and_bump_maps(device, tmp_path):
    """A constant normal map, a ramp of heights, and a mirrored instance, whose map is mirrored too."""
    picture = LayersPicture(SimpleNamespace(device=device))
    bend = np.array([0.4, 0.3, np.sqrt(0.75)])
    flat = texture(tmp_path, "n", np.full((2, 2, 3), np.rint((bend + 1) * 127.5)))
    mapped = Material("mapped", normal_texture="n")
    assert np.allclose(picture.layers(facing(mapped, [flat]), SIZE)["normal"], bend, atol=0.01)
    mirror = Instance("s", matrix=(-1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0))
    named = facing(mapped, [flat], quads=(replace(SQUARE, name="s"),), instances=(mirror,))
    wanted = bend * (-1, 1, -1)  # turned half about y: seen from behind, the normal is on the other side
    assert np.allclose(picture.layers(named, SIZE)["normal"], -wanted, atol=0.02)
    x, y = pixel_centers()
    inside = np.hypot(x, y) < 0.7
    n = np.stack([x, y, np.sqrt(np.maximum(1 - x * x - y * y, 0))], 2)
    east = np.cross([0.0, 1.0, 0.0], n)
    east /= np.linalg.norm(east, axis=2, keepdims=True)
    globe = bend[0] * east + bend[1] * np.cross(n, east) + bend[2] * n
    found = picture.layers(facing(mapped, [flat], quads=(), spheres=(BALL,)), SIZE)["normal"]
    assert np.abs(found - globe)[inside].max() < 0.08
    ramp = texture(tmp_path, "h", np.repeat(np.arange(0, 256, 4)[None, :, None], 64, 0).repeat(3, 2))  # 64 x 64
    bumpy = Material("mapped", bump_texture="h", bump_scale=0.25)
    normal = picture.layers(facing(bumpy, [ramp]), SIZE)["normal"][:, 5:-5]
    slope = 0.25 * 256 / 255  # of a height of bump_scale over one width
    assert np.allclose(normal, np.array([-slope, 0, 1]) / np.hypot(slope, 1), atol=0.02)


@pytest.mark.slow
def test_number_maps_equal_plain_numbers(picture, tmp_path):
    """A constant map times a number draws their product, but for rounding; channels and color spaces are honored."""

    def assert_same(material, *textures, as_number):
        apart = np.abs(draw(material, *textures) - draw(as_number))
        assert np.quantile(apart, 0.98) < 1e-5  # a rounding error may choose another lobe

    def draw(material, *textures):
        picture.restart()
        return picture.draw(facing(material, textures), SIZE, 0.0).read()

    pixels = np.full((2, 2, 3), (51, 102, 204))
    red, green = texture(tmp_path, "r", pixels), texture(tmp_path, "g", pixels, channel="green")
    bent = texture(tmp_path, "s", np.full((1, 1, 3), 188), color_space="srgb")
    plain = Material("mapped", "metallic", roughness=51 / 255, metallic=0.4)
    two = replace(plain, roughness=1.0, metallic=1.0, roughness_texture="r", metallic_texture="g")
    assert_same(two, red, green, as_number=plain)
    packed = replace(plain, roughness=1.0, metallic=1.0, metallic_roughness_texture="r")
    assert_same(packed, red, as_number=replace(plain, roughness=0.4, metallic=0.8))
    encoded = replace(plain, roughness=1.0, roughness_texture="s")
    linear = srgb_to_linear(np.array([188], "u1"))[0]
    assert_same(encoded, bent, as_number=replace(plain, roughness=float(linear)))
    assert np.quantile(np.abs(draw(plain) - draw(replace(plain, roughness=0.4))), 0.98) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("mode", [pytest.param("mask", marks=pytest.mark.slow), "blend"])
def test_alpha_maps(picture, tmp_path, mode):
    """Half of a red square and of a red ball is there in part; a gray one stands behind."""
    behind = Quad("matte", ((-9.0, -9.0, -5.0), (9.0, -9.0, -5.0), (9.0, 9.0, -5.0), (-9.0, 9.0, -5.0)))
    matte = Material("matte", color=(0.6, 0.6, 0.6))
    half = texture(tmp_path, "a", [[[90, 0, 0], [255, 0, 0]]], filter="nearest")
    mapped = Material("mapped", color=(1.0, 0.0, 0.0), alpha_texture="a", alpha_mode=mode)
    part = 0.0 if mode == "mask" else 90 / 255
    wanted = part * np.array([1, 0, 0]) + (1 - part) * 0.6
    for more in ({"quads": (behind, SQUARE)}, {"quads": (behind,), "spheres": (BALL,)}):
        settings = facing(mapped, [half], materials=(mapped, matte), samples=16, **more)
        albedo = picture.layers(settings, SIZE)["albedo"]
        assert np.allclose(albedo[25:35, 33:45].mean((0, 1)), (1, 0, 0), atol=1e-3)
        inside = albedo[25:35, 15:27].mean((0, 1))
        if more["quads"][-1] is behind:  # behind the ball's transparent half is the inside of the other half
            assert mode == "mask" or inside[1] < 0.6 * (1 - part) + 0.01
        else:
            assert np.allclose(inside, wanted, atol=0.03)


def two_set_model(pixels):
    """A square with two sets of coordinates: its color takes the second, transformed, its normal map the first."""
    vertices = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], "f4")
    uv = (vertices[:, :2] * (1, -1) + 1) / 2
    first, second = uv[:, ::-1].astype("f4"), (uv * 0.5).astype("f4")  # the first is mirrored at its diagonal
    part = gltf.MeshPrimitive(vertices, np.array([[0, 1, 2], [0, 2, 3]], "i4"), None, (first, second), 0)
    turn = (0.0, 2.0, 0.1, -2.0, 0.0, 0.2)  # (u, v) -> (2v + 0.1, 0.2 - 2u)
    bend = np.full((1, 1, 4), 255, "u1")
    bend[..., :3] = np.rint((np.array([0.4, 0.3, np.sqrt(0.75)]) + 1) * 127.5)
    image = np.concatenate([pixels, np.full((*pixels.shape[:2], 1), 255, "u1")], 2)
    textures = [gltf.Texture(image, ("repeat", "repeat"), False), gltf.Texture(bend)]
    slots = {"base_color": gltf.TextureSlot(0, 1, turn), "normal": gltf.TextureSlot(1, 0)}
    material = gltf.Material("m", metallic=0.0, textures=slots)
    return gltf.Model([[part]], [(0, np.eye(4))], [material], textures)


def test_sets_of_coordinates_and_transforms(picture, tmp_path, rng, monkeypatch):
    pixels = rng.integers(0, 256, (5, 7, 3), dtype="u1")
    model = two_set_model(pixels)
    monkeypatch.setattr(ModelShape, "load", lambda self: model)
    layers = picture.layers(facing(Material("plain"), (), quads=(), models=(ModelShape("two sets"),)), SIZE)
    x, y = pixel_centers()
    u, v = (x + 1) / 4, (1 - y) / 4
    assert_mostly_equal(layers["albedo"], nearest(pixels, 2 * v + 0.1, 0.2 - 2 * u), np.full_like(x, 1, bool))
    # u of the first set runs down and v to the right: red bends down, green against v to the left
    assert np.allclose(layers["normal"], [-0.3, -0.4, np.sqrt(0.75)], atol=0.02)


BAD = [
    ({"color_texture": "b"}, "color_texture is 'b'; allowed are a"),
    ({"roughness_texture": "a"}, "roughness_texture has no effect on kind diffuse"),
    ({"kind": "metallic", "roughness_texture": "a"}, "multiplies roughness, which is 0"),
    ({"emission_texture": "a"}, "multiplies emission, which is 0"),
    ({"bump_texture": "a", "normal_texture": "a"}, "allowed is one of them"),
    ({"alpha": 0.5}, "alpha_mode opaque"),
    ({"kind": "emitter", "color_texture": "a"}, "all kinds but emitter"),
]


@pytest.mark.parametrize("keys,words", BAD)
def test_maps_without_effect_are_errors(tmp_path, keys, words):
    chart = texture(tmp_path, "a", np.zeros((1, 1, 3)))
    with pytest.raises(ValueError, match=words):
        facing(Material("mapped", **keys), [chart])
    with pytest.raises(ValueError, match="one name"):
        facing(Material("mapped"), [chart, chart])


NUMBERS = {"roughness": 0.8, "metallic": 0.5, "clearcoat": 0.9, "clearcoat_roughness": 0.7, "sheen_roughness": 0.9,
           "specular": 0.9, "transmission": 0.5, "iridescence": 0.8, "iridescence_thickness": 700.0,
           "diffuse_transmission": 0.6}  # fmt: skip
TINTS = {"color": (0.9, 0.8, 0.7), "sheen_color": (0.6, 0.5, 0.4), "specular_color": (0.9, 0.7, 0.8),
         "diffuse_transmission_color": (0.5, 0.9, 0.6)}  # fmt: skip


@pytest.mark.slow  # of two kernels with all lobes, which compile for half a minute
def test_all_maps_of_the_principled_surface_equal_plain_numbers(picture, tmp_path):
    """Constant maps, each of another value, draw the picture of the products; without one map it is another picture."""
    maps, products = [], {}
    for number, (word, value) in enumerate(NUMBERS.items()):
        level = 120 + 11 * number
        maps.append(texture(tmp_path, word, np.full((1, 1, 3), level)))
        products[word] = value * level / 255
    for number, (word, value) in enumerate(TINTS.items()):
        pixel = np.array([[[140 + 20 * number, 230 - 20 * number, 200]]], "u1")
        maps.append(texture(tmp_path, word, pixel))
        products[word] = tuple(float(x) for x in np.array(value) * srgb_to_linear(pixel)[0, 0])
    maps.append(texture(tmp_path, "anisotropy", [[[128, 255, 153]]]))
    turn = float(np.degrees(np.arctan2(1.0, 2 * 128 / 255 - 1)))
    plain = Material("mapped", "principled", anisotropy=0.9 * 153 / 255, anisotropy_rotation_degrees=turn, **products)
    keys = {f"{word}_texture": word for word in (*NUMBERS, *TINTS, "anisotropy")}
    mapped = Material("mapped", "principled", anisotropy=0.9, **NUMBERS, **TINTS, **keys)

    def draw(material):
        settings = facing(material, maps, quads=(replace(SQUARE, corners=TILTED),), zenith=(0.1, 0.3, 2.0))
        picture.restart()
        return picture.draw(settings, (32, 32), 0.0).read()

    wanted, found = draw(plain), draw(mapped)
    assert np.quantile(np.abs(found - wanted), 0.95) < 1e-4
    for word in ("clearcoat", "sheen_color", "specular", "anisotropy"):
        other = draw(replace(mapped, **{word: getattr(plain, word)}))
        assert np.quantile(np.abs(other - wanted), 0.8) > 1e-5, word


def test_each_image_is_once_in_memory(rng):
    """Textures show their pixels in the words for the device, also when materials and groups share an image."""
    images = [rng.integers(0, 256, (h, w, 4), "u1") for h, w in ((3, 5), (1, 7), (4, 4))]
    first = [gltf.Texture(images[1]), gltf.Texture(images[0]), gltf.Texture(images[2])]  # the last one has no slot
    second = [gltf.Texture(images[1], ("clamp", "clamp"))]
    slots = {"base_color": gltf.TextureSlot(1), "normal": gltf.TextureSlot(0)}
    shared = gltf.Material(textures={"base_color": gltf.TextureSlot(0)})
    arrays = TextureArrays([([gltf.Material(textures=slots)], first), ([shared], second)])
    shown = [texture.pixels for texture in [*first, *second]]
    assert all(np.array_equal(shown[k], images[image]) for k, image in enumerate((1, 0, 2, 1)))
    inside = [np.shares_memory(pixels, arrays.texels) for pixels in shown]
    assert inside == [True, True, False, True]
    assert arrays.texels.size == 256 + 15 + 7, "the table of the sRGB curve, and two images"
    for offset, width, height, _ in arrays.textures:
        words = arrays.texels[offset : offset + width * height].view("u1").reshape(height, width, 4)
        assert any(np.array_equal(words, image) for image in images[:2])


@pytest.mark.parametrize("shape", [(1, 12), (12, 1), (5, 7)])
def test_halved_images_have_the_means_of_their_texels(rng, shape, monkeypatch):
    image, reduced = rng.integers(0, 256, (*shape, 4), "u1"), set()
    monkeypatch.setattr(gltf_textures, "MAX_TOTAL_PIXELS", 6)
    images = {0: image}
    gltf_textures._make_room(images, reduced)
    height, width = (max(1, side // 2) for side in shape)
    rows, columns = (
        [(k, min(k + 1, side - 1)) for k in range(0, 2 * half, 2)]
        for side, half in zip(shape, (height, width), strict=True)
    )
    means = [[image[np.ix_(row, column)].reshape(4, 4).mean(0) for column in columns] for row in rows]
    assert reduced == {0} and np.array_equal(images[0], np.floor(np.array(means) + 0.5))
