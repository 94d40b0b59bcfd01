"""What JWildfire's files mean: layers, several final xforms, affines of space, linear opacity.

Most flames here are constant maps: every chain sits at a few points, whose buckets count what the kernel did.
"""

import numpy as np
import pytest

from renderer.flames.temporal import make_temporal_samples
from renderer.flames.xml.attributes import AttributeParser
from renderer.flames.xml.jwildfire import space_affine
from renderer.flames.xml.read import parse_flames, parse_library
from renderer.flames.xml.write import to_xml
from renderer.pictures import flame as flame_picture

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
    settings, picture = flame_picture.settings_from_keyframe(key), flame_picture.Picture(gpu)
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
    assert len(make_temporal_samples(flame_picture.settings_from_keyframe(key), 0.0)[0]) == 2


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


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("<layer visible='0'/>", "at least one must be visible"),
        (f"<layer weight='-1'>{point(0, 0)}</layer>", "weight is -1; it must be 0 to 10000"),
        (f"<layer density='nan'>{point(0, 0)}</layer>", "must be finite"),
        (f"<layer>{point(0, 0)}</layer>" * 65, "has 65 layers; it must be at most 64"),
        (point(0, 0, 'yzCoefs="1 2"'), "yzCoefs is \"1 2\"; it must be 6 numbers"),
    ],
)  # fmt: skip
def test_bad_layers_cost_their_flame(inside, words):
    (bad, good), _ = parse_library(
        f"<x><jwf-flame {HEAD}>{inside}</jwf-flame><flame>{point(0, 0)}</flame></x>", AttributeParser("text")
    )
    assert words in bad.error and good.keyframe
