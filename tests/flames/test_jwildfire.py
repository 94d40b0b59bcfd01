"""The meaning of JWildfire's files: layers, several final xforms, affines of space, kinds of color, solid rendering.

Most flames here are constant maps: every chain sits at a few points, whose buckets count what the kernel did.
"""

import colorsys
import re
from dataclasses import replace

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.flames.genome import IDENTITY_3D
from renderer.flames.settings import settings_from_keyframe
from renderer.flames.solid import LIGHT, MATERIAL
from renderer.flames.solid_pass import CAMERA
from renderer.flames.temporal import make_temporal_samples
from renderer.flames.xml.attributes import AttributeParser
from renderer.flames.xml.jwildfire import space_affine
from renderer.flames.xml.read import parse_library
from renderer.flames.xml.write import to_xml
from renderer.formats.images import linear_to_srgb
from renderer.pictures import flame as flame_picture
from renderer.pictures import load
from tests.flames.games import parse_flames

RED, BLUE = '<color index="0" rgb="255 0 0"/>', '<color index="0" rgb="0 0 255"/>'
HEAD = 'size="60 40" scale="20" quality="20" version="JWildfire V8.50"'
SIZE = (60, 40)


def point(x, y, more=""):
    """An xform that sends every point to (x, y)."""
    return f'<xform weight="1" color="0" linear="1" coefs="0 0 0 0 {x} {y}" {more}/>'


def final(coefs):
    return f'<finalxform symmetry="1" linear="1" coefs="{coefs}"/>'


def read(inside):
    return parse_flames(f"<jwf-flame {HEAD}>{inside}</jwf-flame>")[0][0]


def drawn(gpu, key):
    """Hits and color sums by pixel."""
    settings, picture = settings_from_keyframe(key), flame_picture.Picture(gpu)
    for _ in range(picture.sample_count(settings, SIZE)):
        picture.draw(settings, SIZE, 0.0)
    found = picture.layers(settings, SIZE)
    return found["density"].astype("f8"), found["color_sum"].astype("f8")


def test_layers_share_the_samples_and_keep_their_palettes(gpu):
    """Left the red layer's point, right the blue layer's two; each layer has half of the samples."""
    key = read(
        f"<layer>{point(-0.5, 0)}{RED}</layer><layer visible='0'/>"
        f"<layer weight='0.5'>{point(0.5, 0)}{point(0.5, 0.5)}{BLUE}</layer>"
    )
    hits, colors = drawn(gpu, key)
    places = [(20, 20), (20, 40), (30, 40)]
    one, two, three = (hits[place] for place in places)
    assert hits.sum() == one + two + three == pytest.approx(20 * 60 * 40, rel=0.05)
    assert one == two + three and two == pytest.approx(three, rel=0.02)
    # a layer's weight scales its colors, not its hits
    assert np.allclose(colors[places[0]], [one, 0, 0]) and np.allclose(colors[places[1]], [0, 0, 0.5 * two], rtol=0.01)


def test_density_of_a_layer_drops_points_by_its_square(gpu):
    key = read(f"<layer density='0.5'>{point(-0.5, 0)}{RED}</layer><layer>{point(0.5, 0)}{BLUE}</layer>")
    hits, _ = drawn(gpu, key)
    assert hits[20, 20] / hits[20, 40] == pytest.approx(0.25, rel=0.02)
    assert len(make_temporal_samples(settings_from_keyframe(key), 0.0)[0]) == 2


def test_final_xforms_follow_one_another(gpu):
    """(x, y) to (x, y) + (0.3, 0), then turned by 90 degrees; the other way round would end elsewhere."""
    key = read(point(0.2, 0.1) + final("1 0 0 1 0.3 0") + final("0 1 -1 0 0 0") + RED)
    hits, _ = drawn(gpu, key)
    assert np.argwhere(hits).tolist() == [[30, 28]]  # (-0.1, 0.5)
    (entry,), _ = parse_library(
        f'<flame size="60 40">{point(0, 0)}{final("1 0 0 1 1 0") * 2}{RED}</flame>', AttributeParser("text")
    )
    assert entry.ignored == {"further final xforms": 1} and not entry.keyframe.flame.further_finals


def test_opacity_is_the_plotted_part(gpu):
    hits, _ = drawn(gpu, read(point(-0.5, 0, 'opacity="0.5"') + point(0.5, 0) + RED))
    assert hits[20, 20] / hits[20, 40] == pytest.approx(0.5, rel=0.02)


def test_affines_of_space_by_their_steps(rng):
    """x y, then y z, then z x, then all translations: written out as JWildfire applies them."""
    for name, planes in (("coefs", ("yzCoefs", "zxCoefs")), ("post", ("yzPost", "zxPost"))):
        parts = rng.normal(size=(3, 6)).round(3)
        texts = dict(zip((name, *planes), (" ".join(map(str, part)) for part in parts), strict=True))
        found = np.array(space_affine(AttributeParser("text"), texts, name)).reshape(3, 4)
        xy, yz, zx = parts
        for x, y, z in rng.normal(size=(4, 3)):
            u, v, w = xy[0] * x + xy[2] * y, xy[1] * x + xy[3] * y, z
            v, w = yz[0] * v + yz[2] * w, yz[1] * v + yz[3] * w
            u, w = zx[0] * u + zx[2] * w, zx[1] * u + zx[3] * w
            wanted = [u + xy[4] + zx[4], v + xy[5] + yz[4], w + yz[5] + zx[5]]
            assert np.allclose(found @ [x, y, z, 1], wanted)
    assert space_affine(AttributeParser("text"), {"coefs": "1 0 0 1 2 3", "yzCoefs": "1 0 0 1 0 0"}, "coefs") is None


def test_written_flames_read_as_the_same():
    space = 'opacity="0.25" yzCoefs="0.8 0.6 -0.6 0.8 0.1 0.2" zxPost="0.5 0 0 0.5 0 1"'
    key = read(
        f"<layer weight='2'>{point(0.1, 0.2, space)}{final('1 0 0 1 1 0')}{final('0 1 -1 0 0 0')}{RED}</layer>"
        f"<layer density='0.5'>{point(1, 2)}{BLUE}</layer>"
    )
    assert key.flame.has_z and key.flame.white_level == 110 and len(key.flame.final_xforms) == 2
    (again,), warnings = parse_flames(to_xml([key]))
    assert again == key and not warnings


def test_any_affine_in_space_is_written_as_its_planes(rng):
    """As the window's axes make it; flattened and rotated ones too. One that no three planes give is refused."""
    key = read(f"{point(0, 0)}{RED}")
    unit = np.eye(3, 4)
    matrices = [rng.normal(size=(3, 4)), unit * [[1], [1], [0]], unit[[2, 0, 1]], unit[[1, 0, 2]]]
    affines = [tuple(matrix.ravel().tolist()) for matrix in matrices]
    xforms = tuple(replace(key.flame.xforms[0], affine=affine, post=affines[0]) for affine in affines)
    (again,), warnings = parse_flames(to_xml([replace(key, flame=replace(key.flame, xforms=xforms))]))
    assert np.allclose([xform.affine for xform in again.flame.xforms], affines) and not warnings
    assert np.allclose([xform.post for xform in again.flame.xforms], affines[0])
    skew = replace(xforms[0], affine=(0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0))
    with pytest.raises(InputError, match="product of maps"):
        to_xml([replace(key, flame=replace(key.flame, xforms=(skew,)))])


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("<layer visible='0'/>", "at least one must be visible"),
        (f"<layer weight='-1'>{point(0, 0)}</layer>", "weight is -1; it must be 0 to 10000"),
        (f"<layer density='nan'>{point(0, 0)}</layer>", "must be finite"),
        (
            f"<layer>{point(0, 0)}</layer><layer>{point(0, 0).replace('weight=', 'name=')}</layer>",
            "layers[0]: the weights of all xforms are 0",
        ),
        (f"<layer>{point(0, 0)}</layer>" * 65, "has 65 layers; it must be at most 64"),
        (point(0, 0, 'yzCoefs="1 2"'), "yzCoefs is \"1 2\"; it must be 6 numbers"),
    ],
)  # fmt: skip
def test_bad_layers_cost_their_flame(inside, words):
    (bad, good), _ = parse_library(
        f"<x><jwf-flame {HEAD}>{inside}</jwf-flame><flame>{point(0, 0)}</flame></x>", AttributeParser("text")
    )
    assert words in bad.error and good.keyframe


# ---- kinds of color, modifiers, fading

RAMP = "".join(f'<color index="{k}" rgb="{k} {255 - k} {k // 2}"/>' for k in range(256))


def mean_color(gpu, key, place):
    """The mean color 0 to 255 that was plotted in a pixel."""
    hits, colors = drawn(gpu, key)
    return 255 * colors[place] / hits[place]


def entry(k):
    return np.array([k, 255 - k, k // 2])


def test_color_by_distance_is_the_palette_at_the_step_taken(gpu):
    """Both points are one step of length 1 apart or stay; a final xform without a color keeps the shown color."""
    far = '<xform weight="1" linear="1" coefs="0 0 0 0 0.5 0" color="0.2" symmetry="-0.7" color_type="DISTANCE"'
    near = far.replace("0.5 0", "-0.5 0")
    final_of = '<finalxform linear="1" color="1" color_type="{}" coefs="1 0 0 1 0 0.5"/>'
    key = read(f'{far} chaos="0 1"/>{near} chaos="1 0"/>{final_of.format("NONE")}{RAMP}')
    assert np.allclose(mean_color(gpu, key, (30, 40)), entry(int((0.2 + 1.0 * 0.3) * 254 + 0.5)), atol=0.5)
    # shown is what the final xform blends where it has a color: the carried coordinate, which distances leave alone
    key = read(f'{far} chaos="0 1"/>{near} chaos="1 0"/>{final_of.format("DIFFUSION")}{RAMP}')
    assert abs(mean_color(gpu, key, (30, 40))[0] - 254 * 0.75) < 4  # half of 1 and of random starts


def test_cyclic_colors_turn(gpu):
    """Each step adds a quarter: four colors in equal shares, whose mean is the circle's."""
    key = read(f'<xform weight="1" linear="1" coefs="0 0 0 0 0 0" symmetry="0.25" color_type="CYCLIC"/>{RAMP}')
    assert abs(mean_color(gpu, key, (20, 30))[0] - 127) < 2


def reference_of_modifiers(color, gamma, contrast, saturation, hue):
    """JWildfire's modifiers of one plotted color, written out with colorsys for hues."""
    c = np.array(color, "f8") * 200 / 256
    weights = np.array([0.299, 0.588, 0.113])
    light = c @ weights
    c = c * light ** (4.2 / (4.2 - gamma)) / light
    c = (c - 127.5) * 1.2 / (1.2 - 0.5 * contrast) + 127.5
    c = c + (c - c @ weights) * saturation
    h, light, s = colorsys.rgb_to_hls(*np.clip(c / 255, 0, 1))
    return np.clip(np.array(colorsys.hls_to_rgb(min(h + hue, 1.0), light, s)) * 255 * 256 / 200, 0, 255)


def test_modifiers_change_the_plotted_color(gpu):
    """Modifiers are blended like colors: speed -1 takes the xform's at once."""
    values = dict(mod_gamma=0.3, mod_contrast=0.2, mod_saturation=0.4, mod_hue=0.2)
    text = "".join(f'{name}="{value}" {name}_speed="-1" ' for name, value in values.items())
    color = (180, 120, 60)
    key = read(point(0, 0, text) + f'<color index="0" rgb="{color[0]} {color[1]} {color[2]}"/>')
    assert np.allclose(mean_color(gpu, key, (20, 30)), reference_of_modifiers(color, *values.values()), atol=0.6)


def test_points_fade_with_depth(gpu):
    """exp(-cam_zdimish (cam_zdimdist - z)^2) of the color, the rest cam_zdimcolor; the tilt alone gives points a z."""
    attributes = f'{HEAD} cam_zdimish="0.5" cam_zdimdist="1" cam_zdimcolor="0 1 0" cam_pitch="0.6"'
    body = point(0.3, 0.5) + '<color index="0" rgb="200 100 40"/>'
    ((key,), _) = parse_flames(f"<jwf-flame {attributes}>{body}</jwf-flame>")
    hits, _ = drawn(gpu, key)
    (place,) = map(tuple, np.argwhere(hits))
    clear = np.exp(-0.5 * (1 - 0.5 * np.sin(0.6)) ** 2)
    plotted = np.array([200, 100, 40]) * 200 / 256 * clear + np.array([0, 255, 0]) * (1 - clear)
    assert np.allclose(mean_color(gpu, key, place), np.minimum(plotted * 256 / 200, 255), atol=0.7)


def test_antialiasing_moves_its_part_of_the_points_by_its_law(gpu):
    """The rest stay; the mean of exp(radius sqrt(-ln u)) - 1 by quadrature, within the pixels' size."""
    text = (
        f'<jwf-flame {HEAD} antialias_amount="0.4" antialias_radius="0.9" filter="0.1">{point(0, 0)}{RED}</jwf-flame>'
    )
    ((key,), _) = parse_flames(text.replace('quality="20"', 'quality="200"'))
    hits, _ = drawn(gpu, key)
    rows, columns = np.indices(hits.shape)
    u = (np.arange(200_000) + 0.5) / 200_000
    radius = np.exp(0.9 * np.sqrt(-np.log(u))) - 1
    # the point sits at the corner of four pixels: distances are from there, and a pixel blurs them by its own size
    distance = np.hypot(columns - 29.5, rows - 19.5)
    near = hits[distance < 8].sum() / hits.sum()
    assert near == pytest.approx(1 - 0.4 * (radius > 8).mean(), abs=0.01)
    far = hits[(distance > 2) & (distance < 8)].sum() / hits.sum()
    assert far == pytest.approx(0.4 * ((radius > 2) & (radius < 8)).mean(), abs=0.02)


# ---- solid rendering

SOLID = (
    'version="JWildfire V7" sld_render_enabled="1" sld_render_ao_enabled="0" sld_render_material_count="1" '
    'sld_render_material_diffuse0="0.6" sld_render_material_ambient0="0.5" sld_render_material_phong0="0" '
    'sld_render_ligtht_count="1" sld_render_light_altitude0="20" sld_render_light_azimuth0="30" '
    'sld_render_light_intensity0="0.9" sld_render_light_red0="0.2" sld_render_light_green0="0.5" '
    'sld_render_light_blue0="0.1" filter="0.1"'
)


def solid_plane(angle, attributes=SOLID, more=""):
    """A square of side 1 in the plane z = 0, turned by `angle` about the x axis, seen from +z."""
    c, s = np.cos(angle), np.sin(angle)
    plane = f'<xform weight="1" color="0" symmetry="-1" square="1" coefs="1 0 0 1 0 0" yzPost="{c} {s} {-s} {c} 0 0"/>'
    text = (
        f'<jwf-flame size="60 40" scale="30" quality="200" {attributes}>{plane}{more}<color index="0" rgb="90 160 30"/>'
    )
    return parse_flames(f"{text}</jwf-flame>")[0][0]


@pytest.mark.parametrize(
    ("curve", "diffuse"),
    [
        ("COSA", lambda cosine: cosine),
        ("COSA_SQUARE", lambda cosine: cosine**2),
        ("COSA_HALVE", lambda cosine: (1 + cosine) / 2),
        ("COSA_HALVE_SQUARE", lambda cosine: ((1 + cosine) / 2) ** 2),
    ],
)
@pytest.mark.parametrize("altitude", [20, 160], ids=["behind", "in front"])
def test_a_solid_plane_has_the_color_of_its_normal(gpu, curve, diffuse, altitude):
    """Ambient light plus light and color by the cosine, written out; both sides of a tilt differ."""
    base, light = np.array([90, 160, 30]) * 200 / 256 / 255, np.array([0.2, 0.5, 0.1])
    a, b = np.radians(-altitude), np.radians(-30)
    toward = np.array([np.sin(b), -np.sin(a) * np.cos(b), np.cos(a) * np.cos(b)])
    for angle in (0.5, -0.5):
        attributes = SOLID.replace('altitude0="20"', f'altitude0="{altitude}"')
        attributes += f' sld_render_material_light_diif_func0="{curve}"'
        settings = settings_from_keyframe(solid_plane(angle, attributes))
        picture = flame_picture.Picture(gpu)
        for _ in range(picture.sample_count(settings, SIZE)):
            frame = picture.draw(settings, SIZE, 0.0)
        shown = linear_to_srgb(frame.read()[..., :3])
        normal = -np.array([0, -np.sin(angle), np.cos(angle)])
        cosine = max(toward @ normal, 0)
        wanted = 255 * (base * 0.5 + (light + base * 0.5 / 3) * diffuse(cosine) * (cosine > 0) * 0.6 * 0.9)
        inner = shown[12:28, 20:40].reshape(-1, 3)
        assert np.abs(np.median(inner, 0) - wanted).max() < 2.5, (angle, wanted)
        assert (shown[:, :5] == 0).all()  # beside the square


@pytest.mark.slow
def test_the_nearer_of_two_solids_is_seen(gpu):
    """A small red square before a large one of another color; chunks keep the nearest points of all."""
    front = '<xform weight="1" color="1" symmetry="-1" square="0.4" coefs="1 0 0 1 0 0" yzPost="1 0 0 1 0 0.5"/>'
    key = solid_plane(0.0, SOLID, front + '<color index="254" rgb="255 0 0"/>')
    settings = replace(settings_from_keyframe(key), quality=100.0)
    picture = flame_picture.Picture(gpu)
    for _ in range(picture.sample_count(settings, SIZE)):
        whole = picture.draw(settings, SIZE, 0.0).read()
    assert whole[20, 30, 0] > 4 * whole[20, 30, 1] and whole[8, 30, 1] > whole[8, 30, 0]
    other = flame_picture.Picture(gpu)
    chunks = other.chunks(settings, SIZE, other.sample_count(settings, SIZE), 2)
    parts = [other.draw_chunk(settings, SIZE, 0.0, chunk, ()) for chunk in chunks]
    other.start_merge(settings, SIZE, 0.0)
    for part in parts:
        other.merge(part)
    assert not other.missing_steps(()) and np.array_equal(other.merged_frame(()).read(), whole)


def test_occlusion_darkens_creases_and_tiles_agree(gpu):
    """Two crossing planes seen as a valley: darker in it than beside it; a tile is the whole picture's part."""
    walls = solid_plane(0.0, SOLID.replace('ao_enabled="0"', 'ao_enabled="1"'))
    c, s = np.cos(0.9), np.sin(0.9)
    posts = ((1.0, 0.0, 0.0, 0.0, 0.0, c, 0.0, 0.0, 0.0, sign * s, 1.0, 0.0) for sign in (1, -1))
    xforms = tuple(replace(walls.flame.xforms[0], affine=IDENTITY_3D, post=post) for post in posts)
    flame = replace(walls.flame, xforms=xforms, solid=replace(walls.flame.solid, search_radius=60.0, lights=()))
    settings = replace(settings_from_keyframe(replace(walls, flame=flame)), quality=100.0)
    picture = flame_picture.Picture(gpu)
    count, tile = picture.sample_count(settings, SIZE), (16, 8, 24, 20)
    for _ in range(count):
        whole = picture.draw(settings, SIZE, 0.0).read()
    for _ in range(count):
        part = picture.draw(settings, SIZE, 0.0, tile).read()
    assert np.array_equal(part, whole[8:28, 16:40])
    valley, slopes = whole[18:22, 20:40, 1].mean(), whole[[13, 14, 25, 26], 20:40, 1].mean()
    assert 0 < valley < 0.8 * slopes


def test_occlusion_repeats_the_border_beyond_it(device, rng):
    """A rectangle of points, and the same one within copies of its border: the same occlusion bit by bit."""
    rows, columns, pad, structs = 5, 7, 4, {"Camera": CAMERA, "Light": LIGHT, "Material": MATERIAL}
    points = rng.uniform(-3.0, 3.0, (rows, columns, 4)).astype("f4")
    normals = np.pad(rng.uniform(-0.5, 0.5, (rows, columns, 2)), ((0, 0), (0, 0), (0, 2)), constant_values=0.7)
    normals[2, 3, 0] = 2.0  # a bucket without a point
    kernel, found = device.kernel("flames/solid.cu", "find_occlusion", 64, STRICT=1, **structs), []
    for width in (0, pad):
        frame = [np.pad(a.astype("f4"), ((width, width), (width, width), (0, 0)), "edge") for a in (points, normals)]
        count, shape = frame[0][..., 0].size, frame[0].shape[:2]
        given = [device.buffer(a.shape).write(a) for a in frame]
        out = device.buffer(shape).fill(0)
        kernel(count, *given, out, shape[1], shape[0], 9 - width, 6 - width, float(pad) - 0.5, 3, 5, 1.0)
        found.append(out.read()[width : width + rows, width : width + columns])
    assert np.array_equal(*found) and found[0][2, 3] == 0 and (found[0][[0, -1]] > 0).any()
    assert (found[0][:, [0, -1]] > 0).any()


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ('sld_render_material_count="17"', "sld_render_material_count is 17; it must be 0 to 16"),
        ('sld_render_material_count="0"', "solid has no materials"),
        ('sld_render_ligtht_count="1.5"', "sld_render_ligtht_count is 1.5; it must be 0 to 16"),
        ('sld_render_ao_falloff="x"', 'sld_render_ao_falloff is "x"; it must be a number'),
    ],
)
def test_bad_solids_are_refused(attributes, words):
    text = f'<flame version="JWildfire V7" sld_render_enabled="1" {attributes}>{point(0, 0)}</flame>'
    with pytest.raises(InputError, match=re.escape(words)):
        parse_flames(text)


def test_flames_with_a_pinhole_camera_refuse_what_is_of_the_other(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('title = "a"\npicture = "flame3d"\n[settings]\ncam_zdimish = 0.5\n')
    with pytest.raises(InputError, match="cam_zdimish is of the cameras of the picture flame"):
        load(path)


def curve(name, points, interpolation="SPLINE"):
    """The attributes of one of JWildfire's curves over time."""
    values = "".join(f' {name}_x{k}="{x}" {name}_y{k}="{y}"' for k, (x, y) in enumerate(points))
    return f'{name}_enabled="true" {name}_interpolation="{interpolation}" {name}_point_count="{len(points)}"{values}'


def animated_flame(flame, xform):
    """The entry of a flame of JWildfire's with these attributes of the flame and of its xform."""
    xform = f'<xform weight="1" linear="1" coefs="1 0 0 1 0 0" {xform}/><color index="0" rgb="200 90 9"/>'
    text = f'<jwf-flame size="40 30" version="JWildfire V7.00" {flame}>{xform}</jwf-flame>'
    (entry,), _ = parse_library(text, AttributeParser("text"))
    return entry


@pytest.mark.parametrize("frame,points,interpolation,wanted", [
    (1, [(1, 0.0), (100, 1.7)], "SPLINE", 0.0),
    (50.5, [(1, 0.0), (100, 2.0)], "SPLINE", 1.0),
    (-5, [(1, 0.25), (100, 2.0), (200, 3.0)], "SPLINE", 0.25),
    (150, [(0, 0.0), (100, 1.0), (200, 0.0), (300, 1.0)], "SPLINE", 0.5),
    (25, [(0, 0.0), (100, 1.0), (200, 0.0)], "LINEAR", 0.25),
])  # fmt: skip
def test_curves_over_time_have_their_value_in_the_flames_frame(frame, points, interpolation, wanted):
    animated = curve("xyPostCoeff20Curve", points, interpolation)
    entry = animated_flame(f'frame="{frame}"', f'post="1 0 0 1 9 8" {animated}')
    (xform,) = entry.keyframe.flame.xforms
    assert entry.ignored == {} and xform.post == pytest.approx((1, 0, wanted, 0, 1, 8), abs=1e-9)


def test_a_spline_over_time_is_catmull_and_roms():
    """Between uneven frames, against the spline's two cubics solved for the frame."""
    points = [(-47, 1.5514), (423, -0.2912), (1243, -1.3315)]
    (xform,) = animated_flame('frame="229"', curve("xyCoeff21Curve", points)).keyframe.flame.xforms
    (a, b, c, d) = (np.array(points[k], float) for k in (0, 0, 1, 2))
    cubics = [np.array([3 * (b - c) + d - a, 2 * a - 5 * b + 4 * c - d, c - a, 2 * b])[:, k] / 2 for k in (0, 1)]
    (u,) = [r.real for r in np.roots(cubics[0] - [0, 0, 0, 229]) if abs(r.imag) < 1e-9 and 0 <= r.real <= 1]
    assert xform.affine[5] == pytest.approx(np.polyval(cubics[1], u), abs=1e-5)


def test_bad_curves_over_time_are_one_sentence():
    for count in ("0", "1e9", "many"):
        bad = curve("xyCoeff20Curve", [(0, 1.0)]).replace('point_count="1"', f'point_count="{count}"')
        with pytest.raises(InputError, match="xyCoeff20Curve_point_count is"):
            animated_flame("", bad)


def test_motion_blur_of_a_still_scales_its_colors():
    """By the mean brightness of JWildfire's copies."""
    blur = 'motion_blur_length="9" motion_blur_decay="0.03"'
    still, factor = animated_flame(blur, ""), np.mean([1 - 0.07 * p * p * 0.03 / 9 for p in range(10)])
    assert still.ignored == {} and np.allclose(still.keyframe.flame.colors[0], factor * np.array([200, 90, 9]))


def test_motion_blur_of_a_moving_flame_is_a_layer_for_each_copy():
    """The p-th copy at frame + (length / 2 - p) step, the first at the frame itself."""
    blur = 'frame="5" motion_blur_length="4" motion_blur_timestep="0.5" motion_blur_decay="0.2"'
    moving = animated_flame(blur, curve("xyCoeff20Curve", [(0, 0.0), (100, 100.0)], "LINEAR"))
    flame = moving.keyframe.flame
    copies = [flame, *flame.layers]
    assert moving.ignored == {} and len(copies) == 5
    assert [copy.xforms[0].affine[2] for copy in copies] == pytest.approx([5, 5.5, 5, 4.5, 4])
    dimmed = [200 * (1 - 0.07 * p * p * 0.2 / 4) for p in range(5)]
    assert [copy.colors[0][0] for copy in copies] == pytest.approx(dimmed)
    many = animated_flame('motion_blur_length="99"', curve("xyCoeff20Curve", [(0, 0.0), (9, 1.0)]))
    assert many.ignored == {"motion blur of JWildfire flames": 1} and many.keyframe.flame.colors[0] == (200, 90, 9)


def test_curves_turn_and_scale_affines_of_every_plane():
    """A turn by a maps (1, 0) to (cos a, -sin a), as JWildfire's rotate(), and a scale leaves the translation."""
    moves = curve("xyRotateCurve", [(0, 90.0)]) + curve("zxPostScaleCurve", [(0, 3.0)])
    entry = animated_flame("", moves + ' zxPost="1 0 0 1 7 0"')
    (xform,) = entry.keyframe.flame.xforms
    turned, scaled = np.reshape(xform.affine, (3, -1)), np.reshape(xform.post, (3, 4))
    assert entry.ignored == {} and turned[:2, :2] == pytest.approx(np.array([[0, 1], [-1, 0]]), abs=1e-12)
    assert scaled == pytest.approx(np.array([[3, 0, 0, 7], [0, 1, 0, 0], [0, 0, 3, 0]]), abs=1e-12)


def test_curves_set_other_values_of_flames_and_xforms():
    flame = curve("camPitchCurve", [(0, 90.0)]) + curve("centreYCurve", [(0, 2.5)]) + ' cam_pitch="0" center="1 1"'
    xform = (
        curve("julian_power", [(0, 5.0)]) + curve("julian_amountCurve", [(0, 0.25)]) + curve("weightCurve", [(0, 3)])
    )
    entry = animated_flame(flame, f'julian="1" julian_power="2" {xform} {curve("colorOfNoneCurve", [(0, 1)])}')
    key = entry.keyframe
    assert (key.flame.cam_pitch, key.center) == (pytest.approx(np.pi / 2), (1.0, 2.5))
    assert key.flame.xforms[0].variations["julian"] == 0.25 and key.flame.xforms[0].weight == 3.0
    assert key.flame.xforms[0].parameters["julian_power"] == 5.0
    assert entry.ignored == {"animation of colorOfNoneCurve xforms": 1}
