"""Agreement with flam3, the renderer by which flames are known: reference pictures, flames by chance, corners."""

import os
import shutil
import subprocess
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from renderer.flames import chaos_game, interpolation, kernel_cache, palettes, sample_schedule
from renderer.flames.genome import IDENTITY_2D, Flame, Xform
from renderer.flames.variations.catalog import variation_table
from renderer.flames.xml.write import to_xml
from renderer.formats.images import read_pixels
from renderer.images.metrics import psnr
from renderer.images.tone_mapping import tonemap
from renderer.paths import ROOT
from renderer.pictures import load, open_picture
from tests.flames.games import parse_flames, read_flames

SHARED = ROOT.parent / "shared" / "data" / "flames"
HAS_NUMBERED = palettes.flam3_palette(0) is not None
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the reference flames (../shared) are not here")
needs_flam3 = pytest.mark.skipif(
    not all(map(shutil.which, ("flam3-genome", "flam3-render"))), reason="flam3 is not installed here"
)
REFERENCES = sorted(SHARED.glob("*.zref.npz"))
DEAR = ("04", "09")  # their kernels compile for long
GATES = {"08_tonemap": 1.20}


@needs_shared
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] if path.name[:2] in DEAR else []) for path in REFERENCES],
    ids=lambda path: path.name[:2],
)
def test_pictures_agree_with_flam3(gpu, path):
    """The z-test of agree.py on the mean of 16 seeds: flam3's own mean scores 1.00 to 1.12."""
    name = path.name.removesuffix(".zref.npz")
    if name == "08_tonemap" and not HAS_NUMBERED:
        pytest.skip("flam3's numbered palettes are not installed here")
    (key,), _ = read_flames(SHARED / f"{name}.flame")
    scene = load(SHARED / f"{name}.flame")
    settings = replace(scene.settings, quality=10.0 * 4.0**key.zoom)
    picture, total = open_picture(scene, gpu), 0
    for seed in range(16):
        total = total + drawn(picture, scene, replace(settings, seed=seed), (256, 256))
    rms, bias = score(np.load(path), total / 16, 16)
    assert rms <= GATES.get(name, 1.12), (rms, bias)
    assert abs(bias) <= 0.12, (rms, bias)  # flam3's own mean of 16 seeds has a deviation of 0.04


def score(reference, mean, k):
    """Root mean square z over 4 x 4 blocks, and the bias, in 8-bit units; as agree.py."""
    blocks = mean.reshape(64, 4, 64, 4, 3).mean((1, 3))
    spread, seeds = reference["bstd"].astype(float), int(reference["seeds"])
    lit = spread > 0.03
    z = (blocks - reference["bmean"])[lit] / np.sqrt(spread[lit] ** 2 * (1 / seeds + 1 / k))
    active = reference["std"] > 0.3
    return float(np.sqrt((np.clip(z, -4, 4) ** 2).mean())), float((mean - reference["mean"])[active].mean())


def drawn(picture, scene, settings, size, time=0.0):
    """(height, width, 3) float64 of the finished picture's 8-bit values."""
    for _ in range(picture.sample_count(settings, size)):
        frame = picture.draw(settings, size, time)
    return tonemap(frame, scene.tone)[..., :3].astype(float)


@needs_shared
def test_key_frames_are_interpolated_as_flam3_does():
    keys, _ = read_flames(SHARED / "11_keyframes.flame")
    key = interpolation.interpolate_at(tuple(keys), 5.0)
    first, third = key.flame.xforms[0], key.flame.xforms[2]
    a, b, c, d, e, f = first.affine
    assert np.allclose([a, d, b, e, c, f], [0.469866, 0.266033, -0.266033, 0.469866, 0.1, -0.5], atol=2e-6)
    assert np.allclose(third.affine, [0.707107, 0, 0.2165, 0, 0.707107, 0.125], atol=2e-6)
    assert (third.weight, third.color, key.scale) == (0.5, 0.5, 175.0)


@needs_shared
def test_a_flame_between_key_frames_agrees_with_flam3_animate(gpu):
    """Our picture lies as near to flam3's as noise of 50 samples a pixel allows."""
    scene = load(SHARED / "11_keyframes.flame", film=True)
    picture = open_picture(scene, gpu)
    assert picture.depends_on_time(scene.settings)
    wanted = read_pixels(SHARED / "11_keyframes_t00005.png")[..., :3].astype(float)
    found = drawn(picture, scene, scene.settings, scene.size, 5.0)
    halves = [image.reshape(128, 4, 128, 4, 3).mean((1, 3)) for image in (found, wanted)]
    assert psnr(*halves) > 43, psnr(*halves)  # two of flam3's own: 45.4
    assert abs((found - wanted).mean()) < 0.15


def chance_map(rng, names, final=False):
    """A map of one to three of the variations, with some of their parameters, and sometimes without a column."""
    used = [str(name) for name in rng.choice(names, rng.integers(1, 4), replace=False)]
    parameters = [p for name in used for p in variation_table()[name].parameters if rng.uniform() < 0.6]
    affine = rng.normal(size=6)
    affine[[0, 3]] *= rng.uniform() > 0.2
    return Xform(
        tuple(map(float, affine)),
        weight=0.0 if final else float(rng.uniform(0.1, 2)),
        color=float(rng.uniform()),
        color_speed=float(rng.uniform()),
        opacity=float(rng.uniform()),
        post=IDENTITY_2D if rng.uniform() < 0.6 else tuple(map(float, rng.normal(size=6))),
        variations={name: float(rng.uniform(0.1, 1)) for name in used},
        parameters={p: float(rng.uniform(0.2, 1)) for p in parameters},
        xaos=() if final or rng.uniform() < 0.5 else (float(rng.uniform(0, 2)),),
        animate=float(rng.integers(2)),
    )


def chance_key(rng, time, kind, names):
    smooth = kind == "smooth"  # four equally many: flam3 pads some of four by parameters that it has set meanwhile
    xforms = tuple(chance_map(rng, names) for _ in range(3 if smooth else rng.integers(1, 5)))
    final = chance_map(rng, names, final=True) if smooth or rng.uniform() < 0.5 else None
    colors = tuple(map(tuple, rng.integers(0, 256, (256, 3)).astype(float).tolist()))
    numbers = {
        name: float(rng.uniform(0.1, 2)) for name in ("brightness", "vibrancy", "gamma_threshold", "filter_radius")
    }
    flame = Flame(
        xforms, final_xform=final, colors=colors, quality=1.0, estimator_radius=float(rng.uniform(1, 9)), **numbers
    )
    center = tuple(map(float, rng.normal(size=2)))
    ways = {
        "interpolation": "smooth" if smooth and time == 10 else "linear",
        "interpolation_type": "log" if smooth else kind,
        "palette_interpolation": str(rng.choice(["rgb", "hsv", "hsv_circular", "sweep"][: 3 if smooth else 4])),
        "hsv_rgb_palette_blend": float(rng.uniform()),
    }
    angle, scale = float(rng.uniform(-700, 700)), float(rng.uniform(10, 90))
    return interpolation.KeyFrame(flame, time, (10, 10), center, scale=scale, rotate=angle, **ways)


@pytest.mark.skipif(not shutil.which("flam3-animate"), reason="flam3 is not installed here")
@pytest.mark.parametrize("kind", ["log", "linear", "old", "older", "smooth"])
def test_chance_key_frames_are_interpolated_as_flam3_does(tmp_path, rng, kind):
    """All numbers of the flame between two others of as many xforms or fewer, as flam3-animate writes it."""
    names = [
        "linear",
        "swirl",
        "julian",
        "spherical",
        "rectangles",
        "blob",
        "perspective",
        "super_shape",
        "rings",
        "fan",
    ]
    for number in range(6):
        times, time = (0.0, 10.0, 20.0, 30.0) if kind == "smooth" else (0.0, 10.0), int(rng.integers(1, 10))
        keys, time = [chance_key(rng, each, kind, names) for each in times], time + 10 * (kind == "smooth")
        text = to_xml(keys)
        said = {"prefix": f"{tmp_path}/", "time": str(time), "write_genome": "1", "verbose": "0"}
        flam3("animate", said, text)
        (wanted,), _ = parse_flames((tmp_path / f"{time:05d}.png.flam3").read_text())
        found = interpolation.interpolate_at(tuple(parse_flames(text)[0]), float(time))
        pairs = list(zip(found.flame.xforms, wanted.flame.xforms, strict=True))
        assert (found.flame.final_xform is None) == (wanted.flame.final_xform is None)
        pairs += [(found.flame.final_xform, wanted.flame.final_xform)] if found.flame.final_xform else []
        for ours, theirs in pairs:
            told = {name for name, weight in ours.variations.items() if abs(weight) > 1e-5}
            assert told == set(theirs.variations)
            for name in ("affine", "post", "weight", "color", "color_speed", "opacity"):
                if name == "weight" and ours is found.flame.final_xform:
                    continue  # final xforms have none
                value = (
                    np.clip(theirs.opacity, 0, 1) if name == "opacity" else getattr(theirs, name)
                )  # flam3 clamps later
                assert np.allclose(getattr(ours, name), value, rtol=1e-4, atol=2e-5), (name, text)
            for name in told:
                assert np.isclose(ours.variations[name], theirs.variations[name], rtol=1e-4, atol=2e-5), (name, text)
                for p in variation_table()[name].parameters:
                    if p == "super_shape_rnd" and kind == "smooth":
                        continue  # both readers clamp it, so a value beyond 0 and 1 is not read back
                    assert np.isclose(ours.parameter_value(p), theirs.parameter_value(p), rtol=1e-4, atol=2e-5), (
                        p,
                        number,
                        text,
                    )
        for ours, theirs in zip(found.flame.xforms, wanted.flame.xforms, strict=True):
            count = len(found.flame.xforms)
            rows = [(*m.xaos, *[1.0] * (count - len(m.xaos)))[:count] for m in (ours, theirs)]
            assert np.allclose(*rows, rtol=1e-4, atol=2e-5), text
        assert np.allclose(found.flame.palette_colors, wanted.flame.palette_colors, atol=0.51)
        for name in ("brightness", "vibrancy", "gamma_threshold", "filter_radius", "estimator_radius"):
            assert np.isclose(getattr(found.flame, name), getattr(wanted.flame, name), rtol=1e-4), name
        camera = [[key.scale, key.rotate, *key.center] for key in (found, wanted)]
        assert np.allclose(*camera, rtol=1e-4, atol=2e-5)


# ---- flames of which there is no stored picture: flam3 draws them beside us


def both(gpu, path, size, count=4, environment=None, time=None, **changes):
    """Pictures of a file by us and by flam3, of `count` seeds each: (count, rows, columns, 3) of 4 x 4 pixels each; by
    flam3-animate where a time is told.
    """
    ours, theirs, scene, image = [], [], load(path, film=time is not None), path.parent / f"{time or 0:05d}.png"
    picture, home = open_picture(scene, gpu), replace(scene.settings, **changes)
    place = {"out": str(image)} if time is None else {"prefix": f"{path.parent}/", "time": str(time)}
    for seed in range(count):
        said = {"isaac_seed": f"s{seed}", "nthreads": "1", "bits": "64", "verbose": "0"} | place
        flam3("render" if time is None else "animate", said | (environment or {}), path.read_text())
        theirs.append(read_pixels(image)[..., :3].astype(float))
        ours.append(drawn(picture, scene, replace(home, seed=seed), size, float(time or 0)))
    tiles = (count, size[1] // 4, 4, size[0] // 4, 4, 3)
    return [np.array(each).reshape(tiles).mean((2, 4)) for each in (ours, theirs)]


def flam3(tool, said, text=""):
    run = subprocess.run([f"flam3-{tool}"], env=os.environ | said, input=text, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def difference_and_noise(ours, theirs):
    """The root mean square difference of the means, and what it is in the mean where only seeds differ."""
    noise = np.sqrt((ours.var(0, ddof=1) + theirs.var(0, ddof=1)).mean() / len(ours))
    return np.sqrt(((ours.mean(0) - theirs.mean(0)) ** 2).mean()), noise


def chance_of_difference(ours, theirs):
    """The share of all ways to halve the pictures by which the halves' means differ as much: right for any noise."""
    count = len(ours)
    rows = np.concatenate([ours, theirs]).reshape(2 * count, -1)
    products = (rows - rows.mean(0)) @ (rows - rows.mean(0)).T
    signs = np.full((len(list(combinations(range(2 * count - 1), count - 1))), 2 * count), -1.0)
    for row, others in zip(signs, combinations(range(1, 2 * count), count - 1), strict=True):
        row[[0, *others]] = 1
    distances = np.einsum("ki,ij,kj->k", signs, products, signs)  # the first is ours from theirs
    return (distances >= distances[0] * (1 - 1e-9)).mean()


def test_the_chance_of_a_difference_is_that_of_heavy_tails(rng):
    """The noise of flames of few bright points is one number with outliers, on whose size no gate holds."""
    shape = rng.uniform(size=(1, 5, 7, 3))
    chances, over = [], 0
    for _ in range(60):
        ours, theirs = (rng.standard_t(2, size=(4, 1, 1, 1)) * shape for _ in "ab")
        difference, noise = difference_and_noise(ours, theirs)
        over += difference >= 1.35 * noise
        chances.append(chance_of_difference(ours, theirs))
    assert over > 0 and min(chances) >= 1 / 35 and 0.3 < np.mean(chances) < 0.75
    assert chance_of_difference(shape + rng.normal(size=ours.shape), 9 + shape + theirs * 0) == 1 / 35


CHAINS_OF_FLAM3 = 160, 100.0  # pixels a side and samples a pixel: one block of chains, each of 10000 samples


@pytest.fixture
def chains_of_flam3(monkeypatch):
    """Chains as flam3's, of 10000 samples that are plotted after 15 steps: what comes so near to the start is seen in
    its pictures, where points are drawn together slowly."""
    monkeypatch.setattr(chaos_game, "fuse_steps", lambda flames: 15)
    monkeypatch.setattr(sample_schedule, "chain_count", lambda samples, moments, fuse: kernel_cache.BLOCK * moments)


def find_random_flame(seed: int, folder, estimation: bool):
    """The file of a flame by flam3-genome, as our writer writes it."""
    (key,), _ = parse_flames(flam3("genome", {"seed": str(seed), "isaac_seed": str(seed)}))
    side, quality = CHAINS_OF_FLAM3
    flame = replace(key.flame, quality=quality, temporal_samples=1)
    flame = flame if estimation else replace(flame, estimator_radius=0.0)
    key = replace(key, flame=flame, size=(side, side), scale=key.scale * side / key.size[0], palette_number=-1)
    path = folder / "chance.flame"
    path.write_text(to_xml([key]))
    return path


@needs_flam3
@pytest.mark.parametrize(
    ("seed", "estimation"), [(456031532, True), pytest.param(19000074, False, marks=pytest.mark.slow)]
)
def test_flames_of_flam3_genome_agree(gpu, tmp_path, chains_of_flam3, seed, estimation):
    """Two of fixed seeds, the first of slow symmetry: the means differ by their noise alone."""
    path = find_random_flame(seed, tmp_path, estimation)
    difference, noise = difference_and_noise(*both(gpu, path, (160, 160)))
    assert difference < 1.2 * noise + 0.05, (difference, noise)


@needs_flam3
@pytest.mark.slow
@pytest.mark.parametrize("estimation", [True, False])
def test_fresh_flames_of_flam3_genome_agree(gpu, tmp_path, rng, chains_of_flam3, estimation):
    """As large a difference of the means of nine seeds comes by chance, whatever the noise is like."""
    path = find_random_flame(int(rng.integers(1 << 30)), tmp_path, estimation)
    ours, theirs = both(gpu, path, (160, 160), 9)
    difference, noise = difference_and_noise(ours, theirs)
    chance = chance_of_difference(ours, theirs)
    assert difference < 1.35 * noise + 0.1 or chance > 1e-4, (difference, noise, chance, path.read_text())


BLOWN = """<flame size="128 128" scale="40" quality="30" estimator_radius="{radius}" temporal_samples="1" brightness="6"
   passes="{passes}" supersample="2" filter="1.2" temporal_filter_type="gaussian" gamma="3" background="0.1 0.2 0.1">
   <xform weight="1" color="0" swirl="0.6" linear="0.3" coefs="0.7 0.2 -0.3 0.6 0.2 -0.1" chaos="{chaos}"/>
   <xform weight="0.7" color="0.6" linear="1" coefs="0.5 0 0.1 0.5 -0.6 0.3"/>
   <xform weight="0.8" color="1" linear="1" coefs="0 0 0 0 1e11 0" chaos="{chaos_of_bad}"/>
   <palette count="256" format="RGB">{palette}</palette>
</flame>"""


@needs_flam3
@pytest.mark.parametrize(
    "said",
    [
        pytest.param({}, marks=pytest.mark.slow),  # a map whose points are always bad
        {"chaos": "0 0 1", "chaos_of_bad": "0 0 1"},  # chains that never leave it
        pytest.param({"passes": 3}, marks=pytest.mark.slow),
        {"passes": 3, "radius": 6},  # each pass has its own weight in time, and its own widths
        {"earlyclip": "1"},
    ],
    ids=["bad points", "only bad points", "passes", "passes and estimation", "early clip"],
)
def test_bad_values_passes_and_early_clipping_agree_with_flam3(gpu, tmp_path, said):
    path = tmp_path / "blown.flame"
    rows = "".join(f"{k:02x}{255 - k:02x}{(7 * k) % 256:02x}" for k in range(256))
    words = {"radius": 0, "passes": 1, "chaos": "1 1 1", "chaos_of_bad": "1 1 1"} | said
    path.write_text(BLOWN.format(palette=rows, **words))
    early = {"earlyclip": said.get("earlyclip", "0")}
    pictures = both(gpu, path, (128, 128), environment=early, early_clip=early["earlyclip"] == "1")
    difference, noise = difference_and_noise(*pictures)
    assert noise > 0.1 and difference < 1.35 * noise + 0.1, (difference, noise)


OLD = """<Flames>
<!-- as flam3 2.x and Apophysis 2.09 wrote them -->
<flame name="old" version="Apophysis 2.09" size="128 128" center="0.1 0" scale="40" oversample="2" filter="0.6"
   quality="30" brightness="6" gamma="3" batches="10" plugins="" new_linear="1" curves="{curves}">
   <!-- xforms --><xform weight="1" color="0 0" symmetry="-0.2" bent="1" var="{var}" coefs="0.7 0.2 -0.3 0.6 0.2 -0.1"/>
   <xform weight="0.7" color="0.6 1" swirl="0.5" var1="2" coefs="0.5 0 0.1 0.5 -0.6 0.3" name="second" var_color="1"/>
   <symmetry kind="-3"/>
   <colors count="256" data="{colors}"/>
</flame></Flames>"""
APOPHYSIS = """<flame name="new" size="128 128" scale="40" quality="30" brightness="6" estimator_radius="5"
   soloxform="-1">
   <finalxform coefs="0.9 0.1 0 1 0.1 0" linear="0.9" spherical="0.1"/>
   <xform weight="1" color="0" swirl="0.6" linear="0.3" coefs="0.7 0.2 -0.3 0.6 0.2 -0.1" chaos="0.5 2" opacity="0.6"/>
   <xform weight="0.7" linear="1" coefs="0.5 0 0.1 0.5 -0.6 0.3" plotmode="on" julian_power="3"/>
   <xform weight="0" color="0.5" linear="1" coefs="0.1 0 0 0.1 2 2"/>
   <xform weight="0.2" color="0.9" linear="1" coefs="0.6 0.3 -0.3 0.6 0.5 0.5" plotmode="off"/>
   <palette count="64" format="RGBA">{palette}</palette><color index="200" rgb="255 240.5 10"/>
</flame>"""


@needs_flam3
@pytest.mark.parametrize("name", [pytest.param("old", marks=pytest.mark.slow), "new"])
def test_what_other_programs_write_agrees_with_flam3(gpu, tmp_path, name):
    path = tmp_path / f"{name}.flame"
    colors = "".join(f"00{k:02x}{255 - k:02x}{k // 2:02x}\n" for k in range(256))
    palette = " ".join(f"{k:02x}{96 - k:02x}{k // 2:02X}{140 + k:02x}" for k in range(64))
    text = (
        OLD.format(curves="0 0 1 0 0 1 1 1 1 1 1 1 " * 4, var="0.8 0.2 0.05" + " 0" * 96, colors=colors)
        if name == "old"
        else APOPHYSIS
    )
    path.write_text(text.replace("{palette}", palette))
    difference, noise = difference_and_noise(*both(gpu, path, (128, 128)))
    assert noise > 0.05 and difference < 1.35 * noise + 0.1, (difference, noise)


CHANGING = """<flame time="{time}" size="128 128" filter="0.6" passes="{passes}" temporal_samples="30" {words}
   temporal_filter_type="{kind}" temporal_filter_width="6" temporal_filter_exp="2">
   <xform weight="1" color="0" swirl="0.6" linear="0.3" coefs="0.5 0.2 -0.2 0.4 0.2 -0.1"/>
   <xform weight="0.7" color="0.6" linear="1" coefs="0.5 0.2 -0.3 0.5 -0.6 {shift}"/>
   <palette count="256" format="RGBA">{palette}</palette>
</flame>"""


@needs_flam3
@pytest.mark.parametrize(("kind", "passes"), [("gaussian", 1), pytest.param("exp", 3, marks=pytest.mark.slow)])
def test_what_changes_inside_a_frame_agrees_with_flam3(gpu, tmp_path, kind, passes):
    """Brightness, scale, samples, curves and density estimation of key frames far apart, and a palette with alpha."""
    path = tmp_path / "changing.flame"
    rows = "".join(f"{k // 2:02x}{(255 - k) // 4:02x}{k % 64:02x}{30 + k * 4 // 5:02x}" for k in range(256))
    named = ("brightness", "scale", "zoom", "quality", "gamma", "gamma_threshold", "estimator_radius", "background")
    first, last = (3, 25, -0.3, 20, 2, 0.01, 2, "0.4 0.2 0"), (30, 60, 0.3, 70, 5, 0.5, 9, "0 0.1 0.507")
    said = [
        " ".join(f'{name}="{value}"' for name, value in zip(named, values, strict=True)) for values in (first, last)
    ]
    shared = {"kind": kind, "passes": passes, "palette": rows}
    keys = [CHANGING.format(time=10 * k, shift=0.3 + 0.3 * k, words=words, **shared) for k, words in enumerate(said)]
    path.write_text(f"<flames>{''.join(keys)}</flames>")
    difference, noise = difference_and_noise(*both(gpu, path, (128, 128), time=5))
    assert noise > 0.1 and difference < 1.35 * noise + 0.1, (difference, noise)


@needs_flam3
def test_a_still_of_a_library_is_flam3_renders_still(gpu, tmp_path):
    """Two unlike flames with the times 0 and 1 in one file: each is its own picture, not blurred into the other."""
    one = BLOWN.format(radius=0, passes=1, chaos="1 1 0", chaos_of_bad="1 1 0", palette="FF8040" * 256)
    two = one.replace('coefs="0.7 0.2 -0.3 0.6 0.2 -0.1"', 'coefs="0.3 -0.5 0.5 0.3 -0.4 0.6"')
    flames = [
        each.replace("<flame", f'<flame time="{k}"').replace('temporal_samples="1"', "")
        for k, each in enumerate((one, two))
    ]
    path = tmp_path / "pack.flame"
    path.write_text(f"<flames>{''.join(flames)}</flames>")
    flam3("render", {"in": str(path), "prefix": str(tmp_path / "f"), "isaac_seed": "a", "bits": "64", "nthreads": "1"})
    for k in range(2):
        scene = load(path, flame=str(k))
        found = drawn(open_picture(scene, gpu), scene, scene.settings, scene.size, 0.0)
        wanted = read_pixels(tmp_path / f"f{k:05}.png")[..., :3].astype(float)
        halves = [image.reshape(32, 4, 32, 4, 3).mean((1, 3)) for image in (found, wanted)]
        assert psnr(*halves) > 30, (k, psnr(*halves))
