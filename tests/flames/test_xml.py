"""The .flame format: every form read, written back the same, mistakes told; agreement with flam3."""

from dataclasses import replace

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.flames import chaos_game, interpolation, palettes
from renderer.flames.variations.catalog import parameter_owners, variation_table
from renderer.flames.xml.write import to_xml
from renderer.paths import ROOT
from renderer.pictures import load
from tests.flames.games import parse_flames, read_flames

SHARED = ROOT.parent / "shared" / "data" / "flames"
FILES = sorted([*ROOT.glob("scenes/*.flame"), *SHARED.glob("*.flame")])
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the reference flames (../shared) are not here")
HAS_NUMBERED = palettes.flam3_palette(0) is not None


def one(inside="", attributes="", xform='<xform weight="1" linear="1"/>'):
    """The key frame of a small flame, and the warnings."""
    text = f'<flames><flame size="40 30" {attributes}>{xform}{inside}</flame></flames>'
    (key,), warnings = parse_flames(text)
    return key, warnings


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_was_read_is_written_back_the_same(path):
    keys, _ = read_flames(path)
    text = to_xml(keys)
    again, _ = parse_flames(text)
    assert again == keys
    assert to_xml(again) == text


def test_random_flames_come_back_the_same(rng):
    for _ in range(20):
        names = rng.choice(list(variation_table()), 4, replace=False)
        variations = {str(name): float(rng.normal()) for name in names}
        parameters = {p: float(rng.uniform()) for p, name in parameter_owners().items() if name in variations}
        m = interpolation.Xform(
            tuple(map(float, rng.normal(size=6))), weight=float(rng.uniform()), color=float(rng.uniform()),
            opacity=float(rng.uniform()), post=tuple(map(float, rng.normal(size=6))), variations=variations,
            parameters=parameters, xaos=tuple(map(float, rng.uniform(0.1, 1, 2))),
        )  # fmt: skip
        flame = interpolation.Flame(
            (m, m),
            final_xform=replace(m, xaos=(), weight=0.0),
            colors=tuple(map(tuple, rng.uniform(0, 255, (256, 3)).tolist())),
        )
        key = interpolation.KeyFrame(flame, time=float(rng.normal()), size=(37, 91), extra={"nick": 'a "b" <c> & d'})
        (again,), _ = parse_flames(to_xml([key]))
        # A file's final xform has no weight.
        assert (
            replace(again, flame=replace(again.flame, final_xform=replace(again.flame.final_xform, weight=0.0))) == key
        )


def test_defaults_are_those_of_flam3():
    key, _ = one(xform="<xform/><xform weight='2'/><finalxform/>")
    flame = key.flame
    assert (flame.quality, flame.estimator_radius, flame.temporal_samples, flame.gamma) == (1.0, 9.0, 1000, 4.0)
    assert [m.color for m in flame.xforms] == [0.0, 1.0]
    assert [m.weight for m in flame.xforms] == [0.0, 2.0]
    assert all(m.color_speed == 0.5 and not m.variations for m in flame.xforms)
    assert flame.final_xform.color_speed == 0.5 and flame.final_xform.color == 0.0
    key, _ = one(xform="<xform weight='1'/><finalxform/><xform/><xform/>")
    assert [m.color for m in (*key.flame.xforms, key.flame.final_xform)] == [0.0, 0.0, 1.0, 1.0]


def test_every_attribute_of_a_map_is_read():
    xform = (
        '<xform var1="3" weight="0.25" color="0.3 0.9" symmetry="0.5" opacity="0.75" coefs="1 2 3 4 5 6" '
        'post="6 5 4 3 2 1" chaos="0.5 2" julian="0.5" julian_power="3" oscope_damping="2" Re_A="1.5" linear3D="0.25" '
        'name="x"/>'
    )
    key, warnings = one(xform=xform)
    (m,) = key.flame.xforms
    assert (m.weight, m.color, m.color_speed, m.animate, m.opacity) == (0.25, 0.3, 0.25, 0.0, 0.75)
    assert m.affine == (1, 3, 5, 2, 4, 6) and m.post == (6, 4, 2, 5, 3, 1) and m.xaos == (0.5, 2)
    assert dict(m.variations) == {"julian": 0.5, "linear": 0.25, "swirl": 1.0}
    assert dict(m.parameters) == {"julian_power": 3.0, "oscilloscope_damping": 2.0, "mobius_re_a": 1.5}
    assert dict(m.extra) == {"name": "x"} and not [w for w in warnings if "palette" not in w]


def test_old_forms_of_variations_and_opacity():
    key, _ = one(xform='<xform weight="1" bent="1" var="0 0.5 0 2"/><xform weight="1" plotmode="off" linear="1"/>')
    assert dict(key.flame.xforms[0].variations) == {"sinusoidal": 0.5, "swirl": 2.0}
    assert key.flame.xforms[1].opacity == 0
    key, _ = one(xform='<xform weight="1" linear="0.5" var1="3" bent="0.25" super_shape_rnd="7"/>')
    assert dict(key.flame.xforms[0].variations) == {"swirl": 1.0, "bent": 0.25}
    assert key.flame.xforms[0].parameter_value("super_shape_rnd") == 1
    key, _ = one(attributes='soloxform="1"', xform='<xform weight="1" linear="1"/>' * 3)
    assert [m.opacity for m in key.flame.xforms] == [0.0, 1.0, 0.0]


def test_symmetry_elements_append_rotations_and_a_mirror():
    key, _ = one('<symmetry kind="4"/>')
    xforms = key.flame.xforms[1:]
    assert [m.affine for m in xforms] == [(0, -1, 0, 1, 0, 0), (-1, 0, 0, 0, -1, 0), (0, 1, 0, -1, 0, 0)]
    assert [m.color for m in xforms] == [0.0, 0.5, 1.0]
    assert all(m.color_speed == 0 and m.weight == 1 and m.animate == 0 for m in xforms)
    key, _ = one('<symmetry kind="-3"/>')
    assert key.flame.xforms[1].affine == (-1, 0, 0, 0, 1, 0) and len(key.flame.xforms) == 4


def test_all_forms_of_palettes():
    gray = np.repeat(np.arange(256)[:, None], 3, 1)
    rgb = gray.astype("u1").tobytes().hex()
    for inside in (
        f'<palette count="256" format="RGB">{rgb}</palette>',
        f'<colors count="256" data="{np.insert(gray, 0, 0, 1).astype("u1").tobytes().hex()}"/>',
        "".join(f'<color index="{i}" rgb="{i} {i} {i}"/>' for i in range(256)),
        '<color index="0" rgb="0 0 0"/><color index="255" rgb="255 255 255"/>',
        f'<palette format="RGBA">{np.insert(gray, 3, 255, 1).astype("u1").tobytes().hex()}</palette>',
    ):
        key, _ = one(inside)
        assert np.allclose(key.flame.palette_colors, gray) and not key.flame.alphas, inside[:40]
    for alpha in ('rgba="1 2 3 127.5"', 'rgb="1 2 3" a="127.5"'):
        key, _ = one(f'<color index="0" {alpha}/>')
        assert key.flame.alphas[0] == 0.5 and key.flame.palette_colors[0].tolist() == [1, 2, 3]
        assert parse_flames(to_xml([key]))[0] == [key]
    # Hexadecimal colors with alpha are what one sample adds; halfway to opaque white lies the mean of light and alpha.
    key, _ = one('<palette count="1" format="RGBA">10203340</palette><color index="128" rgb="255 255 255"/>')
    assert np.allclose(
        chaos_game.premultiplied_palette(key.flame)[[0, 64]], [[16, 32, 51, 64], [135.5, 143.5, 153, 159.5]]
    )
    # Gaps close around the end: 250 to 10 of the next turn.
    key, _ = one('<color index="250" rgb="0 0 0"/><color index="10" rgb="160 0 0"/>')
    assert np.isclose(key.flame.palette_colors[0, 0], 60)


@pytest.mark.skipif(not HAS_NUMBERED, reason="flam3's numbered palettes are not installed here")
def test_two_numbered_palettes_are_blended_on_the_shorter_way():
    """Entries of flam3's own blend, as flam3-genome writes it."""
    key, warnings = one('<palette index0="3" index1="20" hue0="0.1" hue1="0.2" blend="0.4"/>')
    wanted = [[54.8, 49.4174, 24.8964], [58.246, 67.8, 24.5541], [63.7867, 73, 39.584]]
    assert np.allclose(key.flame.palette_colors[:3], wanted, atol=1e-4) and not warnings
    key, _ = one('<palette index0="3" index1="3"/>')
    assert np.allclose(key.flame.palette_colors, palettes.flam3_palette(3))
    key, warnings = one(attributes='palette="9999"')
    assert (key.flame.palette_colors == 255).all() and "palette 9999 is none of flam3's" in warnings[0]


@pytest.mark.skipif(not HAS_NUMBERED, reason="flam3's numbered palettes are not installed here")
def test_numbered_palettes_win_and_their_hue_turns():
    key, warnings = one('<color index="0" rgb="1 2 3"/>', 'palette="23" hue="0.5"')
    plain = palettes.flam3_palette(23)
    hsv, turned = palettes.rgb_to_hsv(plain / 255), palettes.rgb_to_hsv(key.flame.palette_colors / 255)
    gray = hsv[:, 1] * hsv[:, 2] < 0.05
    assert np.allclose(((turned - hsv)[:, 0] % 6)[~gray], 3, atol=1e-6) and not warnings
    assert np.allclose(turned[:, 1:], hsv[:, 1:])


@pytest.mark.parametrize(
    ("attributes", "inside", "told"),
    [
        ('filter_shape="sinc"', "", 'filter_shape is "sinc"'),
        ("", '<symmetry kind="0"/>', "symmetry kind is 0"),
        ("", '<xform weight="1" opacity="2" linear="1"/>', "xform 1: opacity is 2; using 1 instead"),
    ],
)
def test_what_changes_the_picture_and_is_not_taken_is_warned_of(attributes, inside, told):
    _, warnings = one(inside + '<color index="0" rgb="9 9 9"/>', attributes)
    assert len(warnings) == 1 and told in warnings[0]


def test_other_names_of_the_ways_between_key_frames():
    key, warnings = one('<color index="0" rgb="9 9 9"/>', 'interpolation_space="linear" palette_interpolation="hsv2"')
    assert (key.interpolation_type, key.palette_interpolation, warnings) == ("linear", "hsv_circular", [])


def test_hsv_goes_there_and_back(rng):
    colors = rng.uniform(size=(500, 3))
    assert np.allclose(palettes.hsv_to_rgb(palettes.rgb_to_hsv(colors)), colors)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no xml", "not XML that can be read"),
        ("<flames/>", "no <flame> element"),
        ("<flame/>", "has no <xform>"),
        ('<flame><xform weight="-1" linear="1"/></flame>', "xform 0: weight is -1; it must be at least 0"),
        ('<flame><xform weight="0" linear="1"/></flame>', "weights of all xforms are 0"),
        ('<flame><xform weight="1" coefs="1 2 3"/></flame>', 'coefs is "1 2 3"; it must be 6 numbers'),
        ('<flame><xform weight="1" coefs="1 2 3 4 5 nan"/></flame>', "must be finite"),
        ('<flame center="1e308 0"><xform weight="1" coefs="1 0 0 1 0 0"/></flame>', "at most 1e+30 in size"),
        ('<flame><xform weight="1" linear="a"/></flame>', 'linear is "a"; it must be a number'),
        ('<flame size="0 10"><xform weight="1"/></flame>', "size is 0; it must be 1 to"),
        ('<flame quality="1e20"><xform weight="1"/></flame>', "quality is 1e+20; it must be 0.001 to 1e+09"),
        ('<flame scale="-3"><xform weight="1"/></flame>', "scale is -3"),
        ('<flame><xform weight="1" chaos="1 -1"/></flame>', "chaos"),
        ('<flame><xform weight="1"/><palette>zz</palette></flame>', "not hexadecimal"),
        ('<flame><xform weight="1"/><color index="256" rgb="0 0 0"/></flame>', "color index is 256"),
        (
            '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><flame name="&b;"><xform weight="1"/></flame>',
            "entities",
        ),
    ],
)
def test_mistakes_are_told_with_file_and_value(tmp_path, text, told):
    path = tmp_path / "bad.flame"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        load(path)
    assert told in str(error.value) and "bad.flame" in str(error.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "cp1252", None])
def test_files_of_any_declared_encoding_are_read(tmp_path, capsys, encoding):
    """Without a declaration what is not UTF-8 is Windows-1252, as old programs wrote it."""
    text = '<flame name="Blüte"><xform weight="1" linear="1"/><color index="0" rgb="9 9 9"/></flame>'
    declared = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>' if encoding else ""
    path = tmp_path / "named.flame"
    path.write_bytes((declared + text).encode(encoding or "cp1252"))
    assert load(path).title == "Blüte"
    assert ("using Windows-1252 instead" in capsys.readouterr().err) == (encoding is None)


def test_passes_are_read_and_written():
    """Three parts of the samples, each exposed by itself: as many samples, and the same light but for noise."""
    text = '<flame passes="3"><xform weight="1" linear="1"/><color index="0" rgb="9 9 9"/></flame>'
    (key,), warnings = parse_flames(text)
    assert key.flame.passes == 3 and not warnings
    assert parse_flames(to_xml([key]))[0] == [key]
    for wrong in ("0", "100000"):
        with pytest.raises(InputError, match=f"passes is {wrong}"):
            parse_flames(text.replace('passes="3"', f'passes="{wrong}"'))
