"""Cryptomatte: a decoder written from the specification reads names and coverage; brute force counts the coverage.

The decoder knows the file alone: the attributes and the channels of the header, and how names are hashed.
"""

import json
import struct
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, ball
from renderer.cli import main
from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import preprocess
from renderer.pictures.raytrace import Picture
from renderer.raytracing.cryptomatte import coverage, metadata, name_word
from renderer.raytracing.distance_fields import DistanceField
from renderer.raytracing.instances import Instance, Scattered
from renderer.raytracing.kernels import NO_SCHEDULE, UNREAD_BY_AOVS, compile_constants, kernel_source
from renderer.raytracing.models import gltf_shapes
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.raytracing.settings import Material, Quad, Settings, Sphere
from renderer.scene.animation import settings_at
from renderer.scene.cameras import Camera
from renderer.scene.scene import Scene
from tests.formats.test_gltf_animation import animate
from tests.raytracing.test_render import mixed_scene

SIZE, SAMPLES = (24, 16), 12
FLOOR = ((-4.0, -1.0, 4.0), (4.0, -1.0, 4.0), (4.0, -1.0, -4.0), (-4.0, -1.0, -4.0))
PUBLISHED = {  # names and ids in the manifest of the specification's sample picture of a bunny
    "bunny": "13851a76", "bush": "f763d090", "root": "b9820a92", "smallLeaf": "230081be", "smallStalk2": "bb5f53e9",
    "plant.smallStalk2.:635": "00880847", "plant.smallStalk2.:999": "00ecfa90",
    "flowerA.flowerA_petal1.:1015": "914754e4",
}  # fmt: skip


def hashed(name):
    """The id of a name, as hexadecimal digits of a float32: MurmurHash3 by bytes."""
    data, state = name.encode("utf-8"), 0

    def scrambled(k):
        k = k * 0xCC9E2D51 % 2**32
        return (k * 2**15 + k // 2**17) % 2**32 * 0x1B873593 % 2**32

    whole = len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        state ^= scrambled(k)
        state = ((state * 2**13 + state // 2**19) % 2**32 * 5 + 0xE6546B64) % 2**32
    state ^= scrambled(int.from_bytes(data[whole:], "little")) ^ len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B % 2**32
    state = (state ^ state >> 13) * 0xC2B2AE35 % 2**32
    state ^= state >> 16
    exponent = state >> 23 & 255
    return f"{state ^ 1 << 23 if exponent in (0, 255) else state:08x}"


def decoded(texts, channels):
    """Coverage (height, width) by layer and name; `channels` maps names such as CryptoObject00.R to arrays."""
    out = {}
    for key, layer in ((key, text) for key, text in texts.items() if key.endswith("/name")):
        prefix = key[: -len("name")]
        assert prefix == f"cryptomatte/{hashed(layer)[:7]}/"
        assert (texts[prefix + "hash"], texts[prefix + "conversion"]) == ("MurmurHash3_32", "uint32_to_float32")
        manifest = json.loads(texts[prefix + "manifest"])
        assert all(hashed(name) == word for name, word in manifest.items())
        out[layer], before = {name: np.zeros_like(channels[f"{layer}00.R"]) for name in manifest}, np.inf
        names = {word: name for name, word in manifest.items()}
        for rank in range(6):
            words, coverage = (channels[f"{layer}0{rank // 2}.{'RGBA'[2 * (rank % 2) + k]}"] for k in (0, 1))
            assert (coverage <= before).all() and np.isfinite(words).all()
            before = coverage
            for y, x in zip(*np.nonzero(coverage), strict=True):
                name = names[struct.pack(">f", words[y, x]).hex()]
                assert not out[layer][name][y, x]
                out[layer][name][y, x] = coverage[y, x]
    return out


def mattes(device, settings, samples=SAMPLES, tile=None):
    """The decoded coverage of a picture that was drawn, by layer and name."""
    settings, picture = replace(settings, cryptomatte=True), Picture(SimpleNamespace(device=device))
    for _ in range(samples):
        picture.draw(settings, SIZE, 0.0, tile)
    layers = {name: layer for name, layer in picture.layers(settings, SIZE, tile).items() if name.startswith("Crypto")}
    assert all(layer.dtype == np.float32 and layer.shape[2] == 4 for layer in layers.values()) and len(layers) == 6
    channels = {f"{name}.{'RGBA'[k]}": layer[..., k] for name, layer in layers.items() for k in range(4)}
    found = decoded(metadata(settings), channels)
    for name, wanted in (found["CryptoMaterial"] | found["CryptoObject"]).items():
        assert np.allclose(coverage(settings, name, lambda: layers), wanted, atol=1e-6)
    return found


def brute_force(picture, settings, name, samples=SAMPLES):
    """The coverage of a material: the mean of a picture in which it alone emits light, of paths of one ray."""
    materials = (Material(m.name, "emitter", emission=(float(m.name == name),) * 3) for m in settings.materials)
    dark = replace(settings, materials=tuple(materials), max_depth=1, horizon=(0.0,) * 3, direct_lighting="bsdf")
    picture.restart()
    for _ in range(samples):
        frame = picture.draw(dark, SIZE, 0.0)
    return frame.read()[..., 0]


def test_names_are_hashed_as_the_specification_says(rng):
    assert all(f"{name_word(name):08x}" == word == hashed(name) for name, word in PUBLISHED.items())
    letters = np.array([*"abc/.:[0]", "ä", "\u4e00", "\U0001f600"])
    for name in ("".join(rng.choice(letters, rng.integers(0, 12))) for _ in range(2000)):
        assert f"{name_word(name):08x}" == hashed(name)


def scene(**changes):
    """Each object has a material of its own, so that both layers are the same mattes; glass is what the camera sees."""
    names = {"glass": "glass", "silver": "mirror", "matte": "diffuse", "floor": "checker"}
    return Settings(
        view=Camera((0.0, 0.8, 5.0)), horizon=(0.3, 0.4, 0.5), samples=SAMPLES, lens_radius=0.1,
        materials=tuple(Material(name, kind) for name, kind in names.items()),
        spheres=(Sphere("glass", (-1.2, -0.2, 1.0), 0.8), Sphere("silver", (1.2, -0.3, 0.6), 0.7),
                 Sphere("matte", (0.0, 0.0, -0.5), 1.0)),
        quads=(Quad("floor", FLOOR),), **changes,
    )  # fmt: skip


OBJECTS = {"glass": "spheres[0]", "silver": "spheres[1]", "matte": "spheres[2]", "floor": "quads[0]"}


def check_coverage(device, settings, objects):
    found, picture = mattes(device, settings), Picture(SimpleNamespace(device=device))
    for material, name in objects.items():
        wanted = brute_force(picture, settings, material)
        assert wanted.any() and np.allclose(found["CryptoMaterial"][material], wanted, atol=1e-6), name
        assert np.array_equal(found["CryptoObject"][name], found["CryptoMaterial"][material]), name
    assert len(objects) == len(settings.materials)
    total = sum(found["CryptoObject"].values())
    assert total.max() < 1 + 1e-6 and (total > 1 - 1e-6).sum() > 20
    assert (sum(matte > 0 for matte in found["CryptoObject"].values())).max() > 1


def test_coverage_equals_brute_force(device):
    check_coverage(device, scene(), OBJECTS)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"projection": "fisheye", "lens_radius": 0.0}, {"sampler": "random"}])
def test_coverage_of_instances_and_distance_fields_equals_brute_force(device, changes):
    base = scene()
    settings = replace(
        base,
        materials=(*base.materials, Material("pebble"), Material("tilted"), Material("sponge")),
        spheres=(*base.spheres, Sphere("pebble", radius=0.1, name="pebble")),
        distance_fields=(DistanceField("sponge", "menger", (0.0, 0.9, 1.2), scale=0.8, iterations=1),),
        instances=(Instance("pebble", "tilted", (0.0, -0.3, 2.0), scale=2.0),),
        scattered=(Scattered(("pebble",), 4, 3, (-2.0, -1.0), (2.0, 2.0), -0.9),),
        **changes,
    )
    named = {"pebble": "pebble", "tilted": "instances[0]", "sponge": "distance_fields[0]"}
    check_coverage(device, settings, OBJECTS | named)


@pytest.mark.slow
def test_a_tile_has_the_bits_of_the_picture(device):
    whole, part = (mattes(device, mixed_scene(), 3, tile) for tile in (None, (5, 3, 13, 9)))
    for layer in whole:
        assert all(np.array_equal(whole[layer][name][3:12, 5:18], part[layer][name]) for name in whole[layer])


@pytest.mark.slow
@pytest.mark.parametrize("shutter", [0.0, 0.2])
@pytest.mark.parametrize("count", [1, 2])
def test_nodes_of_models_are_objects(device, tmp_path, monkeypatch, count, shutter):
    """Static and moving nodes, and two of one mesh, which are instances, against the materials of the meshes."""
    monkeypatch.setattr(gltf_shapes, "MIN_INSTANCED_TRIANGLES", 1)
    maker = Maker()
    for index, kind in enumerate(("still", "moving", "twin")):
        material = maker.add("materials", {"name": f"of {kind}"})
        mesh = ball(maker, 4, material=material)
        for x in (-0.8, 0.8) if kind == "twin" else (0.0,):
            name = f"{kind} {x:g}" if kind == "twin" else kind
            maker.node(mesh=mesh, scale=[0.5] * 3, translation=[x, 0.9 - 0.9 * index, 0.0], name=name)
    maker.node(mesh=ball(maker, 4), scale=[0.2] * 3, translation=[1.0, 0.9, 0.0])
    animate(maker, 1, "translation", (0.0, 1.0), [[-1, 0, 0], [1, 0, 0]])
    (tmp_path / "a.glb").write_bytes(maker.glb())
    models = tuple(
        ModelShape(str(tmp_path / "a.glb"), animation="0", position=(2.5 * k, 0.0, 0.0)) for k in range(count)
    )
    settings = Settings(view=Camera((0.0, 0.0, 6.0)), models=models, exposure_seconds=shutter, samples=4)
    found = mattes(device, settings_at(Scene(None, "", "raytrace", settings), 0.6), 4)
    for k in range(count):
        prefix = "" if count == 1 else f"models[{k}]/"
        objects = {name: found["CryptoObject"][prefix + name] for name in ("still", "moving", "twin -0.8", "twin 0.8")}
        assert k > 0 or all(matte.any() for matte in objects.values())
        assert count > 1 or found["CryptoObject"]["nodes[4]"].any()
        if count == 1:
            assert np.array_equal(objects["still"], found["CryptoMaterial"]["of still"])
            assert np.array_equal(objects["moving"], found["CryptoMaterial"]["of moving"])
            twins = objects["twin -0.8"] + objects["twin 0.8"]
            assert np.allclose(twins, found["CryptoMaterial"]["of twin"], atol=1e-6)
            assert not objects["twin -0.8"][:, 13:].any() and not objects["twin 0.8"][:, :11].any()


def test_files_hold_mattes_in_any_tiles_and_dry_runs_their_memory(tmp_path, capsys):
    OpenEXR = pytest.importorskip("OpenEXR", reason="EXR files need openexr")
    words = ["export", "mirrors", "--size", "40x30", "--samples", "2", "--set", "cryptomatte=true"]
    found = []
    for name, tile in (("whole.exr", "64"), ("tiles.exr", "17")):
        assert main([*words, "-o", str(tmp_path / name), "--tile", tile]) == 0
        with OpenEXR.File(str(tmp_path / name), separate_channels=True) as file:
            channels = {key: np.array(channel.pixels) for key, channel in file.channels().items()}
            found.append(decoded({k: v for k, v in file.header().items() if k.startswith("cryptomatte/")}, channels))
    assert set(found[0]["CryptoMaterial"]) == {"silver", "gold", "copper", "floor", "lamp"}
    assert found[0]["CryptoObject"]["quads[0]"].any()
    for layer, by_name in found[0].items():
        assert all(np.array_equal(matte, found[1][layer][name]) for name, matte in by_name.items())
    capsys.readouterr()
    assert main([*words, "-o", str(tmp_path / "a.exr"), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device_bytes_per_frame"] == (16 + 192) * 40 * 30
    assert metadata(Settings()) == {}


@pytest.mark.slow
@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="the CUDA compiler (NVRTC) is not installed")
def test_mattes_compile_for_cuda():
    features = {"INSTANCES": 1, "DISTANCE_FIELDS": 2}
    for more in ({}, features):
        constants = compile_constants(mixed_scene(), True) | UNREAD_BY_AOVS | NO_SCHEDULE | {"GROUP_SIZE": 128, **more}
        assert nvrtc.compile_cubin(preprocess(kernel_source("mattes"), **constants), "sm_90", strict=True)
