"""Files of Apophysis, Fractorium, JWildfire and of no XML at all; files of many flames; what is said to be ignored."""

import colorsys
import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from renderer.cli import main
from renderer.errors import InputError, UserError
from renderer.export.options import ExportOptions
from renderer.export.plan import make_plan
from renderer.flames.kernel_cache import INTEGER_SUMS, KernelCache
from renderer.flames.kernel_source import specialize
from renderer.flames.postprocess import CURVE_ENTRIES, curve_tables, tone_curve
from renderer.flames.settings import settings_from_keyframe
from renderer.flames.xml.attributes import AttributeParser
from renderer.flames.xml.elements import _tolerant_elements, flame_elements
from renderer.flames.xml.read import parse_library, read_library
from renderer.flames.xml.write import to_xml
from renderer.formats.images import read_pixels
from renderer.paths import ROOT, SCENES
from renderer.pictures import flame as flame_picture
from renderer.pictures import flame_sheet, load, load_again, load_for_window
from tests.flames.games import parse_flames

XFORM = '<xform weight="1" linear="0.5" coefs="0.6 0.2 -0.2 0.6 0.3 0"/>'
COLOR = '<color index="0" rgb="200 90 9"/>'
PUBLIC = ROOT.parent / "shared" / "data" / "flames_public"


def entry(attributes="", inside=COLOR, xform=XFORM):
    """The only entry of a file of one flame."""
    text = f'<flame size="40 30" scale="20" {attributes}>{xform}{inside}</flame>'
    (found,), _ = parse_library(text, AttributeParser("text"))
    return found


def library(tmp_path, *flames):
    path = tmp_path / "pack.flame"
    path.write_text(f"<flames>{''.join(flames)}</flames>")
    return path


def one_of(name, attributes="", xform=XFORM):
    return f'<flame name="{name}" size="40 30" scale="12" quality="3" {attributes}>{xform}{COLOR}</flame>'


BAD = one_of("bad", xform='<xform weight="1" coefs="1 2 3"/>')
PACK = (one_of("a", 'time="0"'), BAD, one_of("c", 'time="1"', XFORM + XFORM.replace("0.3 0", "-0.3 0.4")))


# ---- dialects


def test_what_is_no_xml_is_read_as_its_program_meant_it():
    """Names with spaces, brackets and #, unescaped &, several roots, a comment, single quotes, a missing end."""
    text = (
        f'<!-- <flame> --><flame name="Adam & Eve &lt;&#65;" size=\'40 30\'><xform weight="1" julian="1" '
        f'julian_power="3" corners_mult x="0" taprats_Rosette(1/0)="0" julian#1#="0.5"/>{COLOR}</flame>'
        f"<flame><edit><flame/></edit>{XFORM}</flame><flame name='cut'>{XFORM}"
    )
    entries, _ = parse_library(text, AttributeParser("text"))
    assert [each.name for each in entries] == ["Adam & Eve <A", "", "cut"]
    first = entries[0].keyframe.flame.xforms[0]
    assert dict(first.variations) == {"julian": 1.0, "julian#1#": 0.5} and first.parameters["julian_power"] == 3.0
    assert entries[0].ignored == {}
    assert entries[1].keyframe and "is not closed" in entries[2].error


def test_a_lost_quote_is_told_with_its_line():
    text = f'<flame name="mine" size="40 30">\n{XFORM}\n<xform weight="1 linear="1"/>\n{COLOR}\n</flame>\n'
    with pytest.raises(InputError, match="'mine': its element is not closed; .*line 3, column"):
        parse_library(text, AttributeParser("text"))


def test_a_priority_moves_a_variation():
    """-1 adds to the point before the others, 1 to their sum, with the parameters; 2 is counted."""
    xform = (
        '<xform weight="1" linear="1" linear_fx_priority="0" julian="0.5" julian_power="3" julian_fx_priority="1" '
        'spherical="0.2" spherical_fx_priority="-1" swirl="0.1" swirl_fx_priority="2" coefs="1 0 0 1 0 0"/>'
    )
    found = entry(xform=xform)
    (one,) = found.keyframe.flame.xforms
    assert dict(one.variations) == {"linear": 1.0, "swirl": 0.1, "post_add_julian": 0.5, "pre_add_spherical": 0.2}
    assert one.parameters["post_add_julian_power"] == 3.0 and found.ignored == {"swirl_fx_priority 2 xforms": 1}


def test_both_parsers_find_the_same_flames():
    """On well-formed files the tolerant parser gives what the XML parser gives."""
    files = [*sorted(ROOT.glob("scenes/*.flame")), *sorted(PUBLIC.glob("*.flame"))[:12]]
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        strict, tolerant = flame_elements(text, path), list(_tolerant_elements(text))
        assert len(strict) == len(tolerant) > 0
        for one, two in zip(strict, tolerant, strict=True):
            for a, b in zip(one.element.iter(), two.element.iter(), strict=True):
                assert (a.tag, a.attrib, (a.text or "").split()) == (b.tag, b.attrib, (b.text or "").split()), path


@pytest.mark.parametrize("text", ["<flame", "<" * 4000, '<flame a="' * 2000, "<a>" * 3000 + "<flame>", "<flame a=b c"])
def test_what_is_no_flame_at_all_is_refused(text):
    with pytest.raises(InputError):
        parse_library(text, AttributeParser("text"))


def test_history_inside_edits_is_not_read():
    flames, _ = parse_flames(f"<flames><flame>{XFORM}<edit><flame name='old'>{XFORM}</flame></edit></flame></flames>")
    assert len(flames) == 1
    flames, _ = parse_flames(f"<flames><edit><flame name='old'>{XFORM}</flame></edit><flame>{XFORM}</flame></flames>")
    assert len(flames) == 1


def test_numbers_of_other_languages_and_palettes_of_other_lengths():
    key = entry('brightness="2,5" center="0,5 -1,25" gamma="9995000"').keyframe
    assert key.flame.brightness == 2.5 and key.center == (0.5, -1.25) and key.flame.gamma == 1e6
    gray = np.repeat(np.arange(512)[:, None] // 2, 3, 1).astype("u1").tobytes().hex()
    colors = entry(inside=f'<palette count="512" format="RGB">{gray}</palette>').keyframe.flame.palette_colors
    assert np.abs(colors[:, 0] - np.linspace(0, 255, 256)).max() <= 0.5


def test_visible_layers_of_a_layered_flame_are_read():
    layers = "".join(
        f'<layer visible="{k != 0:d}">{XFORM * (k + 1)}<color index="0" rgb="{k} 0 0"/></layer>' for k in range(3)
    )
    (found,), _ = parse_library(f'<jwf-flame version="JWildfire V7">{layers}</jwf-flame>', AttributeParser("text"))
    assert len(found.keyframe.flame.xforms) == 2 and found.keyframe.flame.palette_colors[0, 0] == 1
    (layer,) = found.keyframe.flame.layers
    assert len(layer.xforms) == 3 and layer.colors[0][0] == 2 and found.ignored == {}


def test_names_of_the_moebius_parameters():
    xform = '<xform weight="1" Mobius="1" Mobius_Re_A="2" Mobius_Im_D="3"/>'
    found = entry(xform=xform).keyframe.flame.xforms[0]
    assert dict(found.variations) == {"mobius": 1.0}
    assert dict(found.parameters) == {"mobius_re_a": 2.0, "mobius_im_d": 3.0}


@pytest.mark.parametrize(
    ("attributes", "xform", "ignored"),
    [
        ('cam_zdimish="0.5"', XFORM, {}),
        ('cam_pitch="0.0" fps="25" post_blur_radius="0" camBankCurve_enabled="false"', XFORM, {}),
        ('camBankCurve_enabled="true" camBankCurve_point_count="2"', XFORM, {"animation of camBankCurve flames": 1}),
        ('gamma="9995000"', XFORM, {"gamma 9.995e+06 beyond the limit 1e+06 flames": 1}),
        ('gamma="9995" blur_curve="4"', XFORM, {}),
        ("", '<xform weight="1" linear="1" nosuch="1" nosuch_power="2" other="0"/>', {"nosuch variations": 1}),
        ("", '<xform weight="1" julian="1" julian_twist="2"/>', {"julian_twist parameters": 1}),
        ("", '<xform weight="1" linear="1" mod_gamma="0.0" material="0.5" linear_fx_priority="0"/>', {}),
        ("", '<xform weight="1" linear="1" mod_gamma="0.5"/>', {}),
        ("", XFORM + '<finalxform weight="0.5" linear="1"/><finalxform linear="1"/>', {"further final xforms": 1}),
        (
            'version="JWildfire V7" sld_render_enabled="1" sld_render_shadow_type="FAST" cam_dof="1"',
            XFORM,
            {"shadows of solid rendering flames": 1, "depth of field of solid rendering flames": 1},
        ),
        ("", '<xform weight="1" linear="1" color_type="TARGET"/>', {"color_type TARGET xforms": 1}),
        ('sparkle="1"', XFORM, {"unknown attribute sparkle flames": 1}),
    ],
)
def test_what_changes_the_picture_and_is_not_drawn_is_counted(attributes, xform, ignored):
    assert entry(attributes, xform=xform).ignored == ignored


def test_ignored_parts_are_one_line_and_a_key_of_json(gpu, tmp_path, capsys):
    path = library(tmp_path, one_of("x", 'post_blur_radius="2"', '<xform weight="1" linear="1" nosuch="1"/>'))
    assert main(["export", str(path), "-o", str(tmp_path / "a.png"), "--json", "--device", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["ignored"] == ["nosuch (1 variation)", "post blur (1 flame)"]
    (line,) = [line for line in err.splitlines() if "ignored" in line]
    assert "pack.flame" in line


def test_filters_are_flam3s_for_its_files_and_the_named_ones_for_others():
    def shape(version):
        return entry(f'filter_shape="mitchell" {version}').keyframe.flame.filter_shape

    assert shape("") == shape('version="FLAM3-LNX-3.1.1"') == "catrom"
    assert shape('version="EMBER-WIN-1.0"') == "mitchell"
    for version in ("", 'version="EMBER-WIN-1.0"'):
        key = entry(f'filter_shape="lanczos2" {version}').keyframe
        assert parse_flames(to_xml([key]))[0] == [key]


def test_jwildfires_own_numbers_are_read_and_written():
    version = 'version="JWildfire V6.00"'
    key = entry(f'{version} contrast="1.5" white_level="200" saturation="1.2" fg_opacity="0.5" cam_zoom="2"').keyframe
    flame = key.flame
    assert (flame.exposure, flame.contrast, flame.white_level, flame.saturation) == ("jwildfire", 1.5, 200, 1.2)
    assert (flame.fg_opacity, flame.estimator_radius, key.scale) == (0.5, 0, 40)
    assert entry(version).keyframe.flame.white_level == 220
    assert parse_flames(to_xml([key]))[0] == [key]


# ---- color


def test_curves_pass_through_their_points_and_straight_ones_are_left_out():
    points = ((0.0, 0.0), (0.21, 0.12), (0.47, 0.43), (0.7, 0.8), (1.0, 1.0))
    text = " ".join(f"{x} {y}" for x, y in points)
    key = entry(f'overall_curve="{text} " red_curve="0 0 0.25 0.25 1 1 0.75 0.75" blur_curve="0"').keyframe
    assert key.flame.curves == (points, (), (), ())
    assert parse_flames(to_xml([key]))[0] == [key]
    overall, red, *_ = curve_tables(key.flame.curves)
    at = np.linspace(0, 1, CURVE_ENTRIES)
    assert np.allclose(red, at) and np.allclose(
        np.interp([x for x, _ in points], at, overall), [y for _, y in points], atol=1e-3
    )
    assert np.abs(np.diff(overall, 2)).max() < 1e-4  # no corners: the curve is smooth
    straight = " ".join("0 0 1 0.25 0.25 1 0.75 0.75 1 1 1 1" for _ in range(4))
    assert entry(f'curves="{straight}"').keyframe.flame.curves == ()


@pytest.mark.parametrize("attribute", ['curves="0 0 1"', 'curves="a b"', 'red_curve="0 0 1"'])
def test_bad_curves_are_reported_and_cost_only_themselves(attribute):
    parser = AttributeParser("a.flame")
    (read,), warnings = parse_library(f"<flames><flame {attribute}>{XFORM}{COLOR}</flame></flames>", parser)
    assert read.keyframe.flame.curves == () and read.ignored == {"color curves flames": 1}
    assert attribute.partition("=")[0] in warnings[0] and warnings[0].endswith("its colors stay as they are")


def test_words_are_reported_as_attributes_and_numbers_as_variations():
    read = entry(xform=XFORM.replace("<xform", '<xform maker="me" twirl_of_mine="0.5"'))
    assert read.ignored == {"maker attributes": 1, "twirl_of_mine variations": 1}


def test_flames_without_times_are_key_frames_at_even_distances(tmp_path, capsys):
    path = library(tmp_path, *[one_of(name) for name in "abc"])
    assert [key.time for key in flame_picture.open_file(path, film=True).settings.keyframes] == [0.0, 100.0, 200.0]
    assert "its flames have no times; they are key frames 100 frames apart" in capsys.readouterr().err


def test_apophysis_curves_are_rational_bezier_curves_over_their_parameter():
    """De Casteljau's construction in homogeneous coordinates at the points that were kept."""
    controls = np.array([[0, 0.1, 1], [0.2, 0.6, 2], [0.7, 0.4, 0.5], [1, 0.9, 1]])
    text = " ".join(f"{value:g}" for value in np.tile(controls, (4, 1)).ravel())
    curves = entry(f'version="Apophysis 7X Version 15D" curves="{text}"').keyframe.flame.curves
    for x, y in curves[2][:: len(curves[2]) // 8]:
        row = [(w * v, w) for _, v, w in controls]
        while len(row) > 1:
            row = [tuple((1 - x) * p + x * q for p, q in zip(*pair, strict=True)) for pair in pairwise(row)]
        assert y == pytest.approx(row[0][0] / row[0][1], abs=1e-5)
    default = " ".join(["0 0 1 0 0 1 1 1 1 1 1 1"] * 4)
    assert not entry(f'version="Apophysis 7X" curves="{default}"').keyframe.flame.curves


def test_other_programs_tone_curves_equal_their_formulas(gpu):
    """White level, opacity of the foreground, curves and saturation against NumPy, pixel by pixel."""
    three = XFORM + XFORM.replace("0.3 0", "-0.3 0.4") + XFORM.replace("0.3 0", "0 -0.5")
    key = entry('quality="30" background="0.1 0.2 0.4" estimator_radius="0" filter="0"', xform=three).keyframe
    key = replace(key, flame=replace(key.flame, supersample=1))
    plain = settings_from_keyframe(replace(key, flame=replace(key.flame, background=(0.0, 0.0, 0.0))))
    picture = flame_picture.Picture(gpu)

    def drawn(settings):
        picture.restart()
        for _ in range(picture.sample_count(settings, (40, 30))):
            frame = picture.draw(settings, (40, 30), 0.0)
        return srgb(frame.read()[..., :3])

    def srgb(x):
        return 255 * np.where(x < 0.0031308, 12.92 * x, 1.055 * np.maximum(x, 1e-9) ** (1 / 2.4) - 0.055)

    flat = drawn(plain)
    brighter = drawn(replace(plain, white_level=127.5))
    dim = flat.max(2) < 110
    assert dim.any() and np.abs(brighter - 2 * flat)[dim].max() <= 2.5  # truncated to bytes, then doubled
    points = ((0.0, 0.0), (0.5, 0.8), (1.0, 1.0))
    curved = drawn(replace(plain, curves=((), points, (), ())))
    table = curve_tables(((), points, (), ()))[1] * 255
    expected = np.interp(flat[..., 0], np.linspace(0, 255, CURVE_ENTRIES), table)
    assert np.abs(curved[..., 0] - expected).max() < 3 and np.abs(curved[..., 1:] - flat[..., 1:]).max() < 1.1
    gray = drawn(replace(plain, saturation=0.0))
    assert np.ptp(gray, axis=2).max() <= 1.1
    assert np.abs(gray[..., 0] - (flat.max(2) + flat.min(2)) / 2).max() <= 1.6  # the luminosity of HSL stays
    strong, differences = drawn(replace(plain, saturation=1.3)), []
    for x, y in np.argwhere((np.ptp(flat, axis=2) > 20) & (flat.max(2) < 254))[:200]:
        hue, luminosity, saturation = colorsys.rgb_to_hls(*(flat[x, y] / 255))
        more = colorsys.hls_to_rgb(hue, luminosity, min(saturation + 0.3, 1.0))
        differences.append(np.abs(strong[x, y] - 255 * np.array(more)).max())
    assert len(differences) > 3 and max(differences) < 4
    thin = replace(plain, background=(0.5, 0.5, 0.5), brightness=0.04, gamma=1.0)
    shown, hidden = drawn(thin), drawn(replace(thin, fg_opacity=0.0))
    opacity = 128 - drawn(replace(thin, white_level=1e4))  # nearly black colors: what is left is the background
    assert opacity.max() > 10 and np.abs(shown - hidden - opacity * np.arctan(3) / 1.25).max() < 3.5


def test_the_struct_of_the_tone_curve_holds_the_flames_numbers():
    flame = replace(entry("").keyframe.flame, saturation=1.25, gamma=2.0, white_level=200.0, balancing_green=0.5)
    for opacity, factor in ((1.0, 1.0), (0.0, 1 + np.arctan(3) / 1.25), (2.0, 1 - np.arctan(3) / 1.25)):
        found = tone_curve(replace(flame, fg_opacity=opacity), True)
        assert found["alpha_scale"] == pytest.approx(factor) and found["more_saturation"] == 0.25
    assert found["green_scale"] == pytest.approx(0.5 * found["red_scale"]) and found["red_scale"] == found["blue_scale"]


def test_jwildfires_exposure_is_its_formula(gpu):
    """2 brightness contrast log10(1 + density / contrast) + glow / (hits + 1): the opacity of the layer alpha."""
    key = entry('quality="4" estimator_radius="0" filter="0" gamma="1" gamma_threshold="0"').keyframe
    base = settings_from_keyframe(key)
    settings = replace(
        base, exposure="jwildfire", contrast=2.0, brightness=0.2, low_density_brightness=0.5, transparent=True
    )
    picture = flame_picture.Picture(gpu)
    for _ in range(picture.sample_count(settings, (40, 30))):
        frame = picture.draw(settings, (40, 30), 0.0)
    alpha, hits = frame.read()[..., 3], picture.layers(settings, (40, 30))["density"]
    quality = picture.report()["samples"] / 1200
    density = hits / (1200 / 20**2 * quality)
    wanted = 2 * 0.2 * 2 * np.log10(1 + density / 2) + 0.5 / (2 * quality) / (hits + 1)
    wanted = np.clip(np.where(hits > 0, wanted, 0), 0, 1)
    assert (wanted > 0.05).any() and np.abs(alpha - wanted).max() < 1.5 / 255


# ---- files of many flames


def test_a_bad_flame_costs_itself(tmp_path, capsys):
    path = library(tmp_path, *PACK)
    scene = load(path)
    told = capsys.readouterr().err
    assert scene.title == "a" and scene.part == "0" and not scene.settings.keyframes
    assert "flame 1 'bad': xform 0: coefs" in told and "has 3 flames; flame 0 'a' is drawn" in told
    assert load(path, flame="2").title == load(path, flame="c").title == "c"
    with pytest.raises(InputError, match="must be 6 numbers"):
        load(path, flame="bad")
    with pytest.raises(UserError, match='--flame 7: .* allowed are 0 to 2, and names "a", "bad", "c"'):
        load(path, flame="7")
    with pytest.raises(UserError, match="is no file of flames"):
        load(ROOT / "scenes" / "fern.toml", sheet=True)
    with pytest.raises(UserError, match="not together"):
        load(path, film=True, sheet=True)
    with pytest.raises(InputError, match="must be 6 numbers"):
        read_library(library(tmp_path, BAD))


def test_all_flames_are_numbered_pictures(gpu, tmp_path, capsys):
    path = library(tmp_path, *PACK)
    command = ["export", str(path), "-o", str(tmp_path / "out.png"), "--flame", "all", "--json", "--device", "cpu"]
    assert main(command) == 3  # a flame was left out
    answer = json.loads(capsys.readouterr().out)
    assert [row["flame"] for row in answer["flames"]] == [0, 2]
    assert sorted(each.name for each in tmp_path.glob("*.png")) == ["out00000.png", "out00002.png"]
    assert main(["export", str(path), "-o", str(tmp_path / "c.png"), "--flame", "c", "--device", "cpu"]) == 0
    assert np.array_equal(read_pixels(tmp_path / "c.png"), read_pixels(tmp_path / "out00002.png"))
    assert main(["verify", str(tmp_path / "c.png"), "--device", "cpu"]) == 0


def test_all_outputs_are_looked_at_before_the_first_flame_is_drawn(tmp_path, capsys):
    path, mine = library(tmp_path, *PACK), tmp_path / "out00002.png"
    mine.write_text("mine")
    assert main(["export", str(path), "-o", str(tmp_path / "out.png"), "--flame", "all", "--overwrite"]) == 2
    assert f"-o {mine}: holds what Rayfold did not write" in capsys.readouterr().err
    assert mine.read_text() == "mine" and list(tmp_path.glob("*.png")) == [mine]


def test_a_film_shows_time_n_in_frame_n(gpu, tmp_path, capsys):
    """As flam3-animate: from the first key frame's time to the one before the last's."""
    first, last = one_of("a", 'time="2" temporal_samples="3"'), one_of("c", 'time="5" temporal_samples="3" rotate="40"')
    path = library(tmp_path, first, last)
    command = ["export", str(path), "-o", str(tmp_path / "f_##.png"), "--film", "--device", "cpu"]
    assert main(command) == 0
    assert sorted(each.name for each in tmp_path.glob("*.png")) == ["f_02.png", "f_03.png", "f_04.png"]
    settings = load(path, film=True).settings
    assert [key.time for key in settings.keyframes] == [2.0, 5.0]
    assert main([*command[:-3], "--frames", "2-3", "--device", "cpu"]) == 2 and "need --film" in capsys.readouterr().err
    with pytest.raises(InputError, match="times increase"):
        load(library(tmp_path, last, first), film=True)


def test_a_loop_of_one_flame_has_as_many_frames_as_asked(tmp_path):
    path = library(tmp_path, *PACK)
    plan = make_plan(ExportOptions(path, tmp_path / "loop.gif", flame="0", loop=8))
    first, *_, last = plan.scene.settings.keyframes
    assert plan.numbers == list(range(8)) and [plan.time_of(n) for n in plan.numbers] == plan.numbers
    assert make_plan(replace(plan.options, output=tmp_path / "loop_##.png", film=False)).numbers == plan.numbers
    assert (first.time, last.time) == (0, 8), "the frame after the last is the first"
    for a, b in zip(first.flame.xforms, last.flame.xforms, strict=True):
        assert np.allclose(a.affine, b.affine)
    with pytest.raises(UserError, match="--loop 8: .* has key frames; --flame N|NAME selects one"):
        make_plan(ExportOptions(path, tmp_path / "loop.gif", film=True, loop=8))
    with pytest.raises(UserError, match="is no flame of the plane"):
        make_plan(ExportOptions(SCENES / "cornell.toml", tmp_path / "loop.gif", loop=8))


# ---- the contact sheet


def test_a_sheet_shows_every_flame_and_opens_the_clicked_one(gpu, tmp_path):
    path = library(tmp_path, *PACK)
    scene = load_for_window(path)
    assert scene.picture == "flame_sheet" and scene.size == (480, 400)
    assert load_for_window(library(tmp_path / "..", PACK[0])).picture == "flame"
    size, picture = (240, 200), flame_sheet.Picture(gpu)
    for _ in range(picture.sample_count(scene.settings, size)):
        pixels = picture.draw(scene.settings, size, 0.0).read()
    cells = [flame_sheet.cell_rectangle(scene.settings, 3, size, k) for k in range(3)]
    assert [cell[:2] for cell in cells] == [(0, 0), (120, 0), (0, 100)]
    left, top, width, height = cells[1]
    assert pixels[top + height // 3, left + width // 2, 0] < 0.3 and (pixels[..., 0] > 0.3).any()
    red = pixels[top : top + height, left : left + width]
    assert (red[..., 0] > 4 * red[..., 1]).any()  # the bad one is crossed out
    opened = picture.scene_at(scene.settings, size, 30.0, 130.0)
    assert opened.title == "c" and load_again(opened).title == "c"
    assert picture.scene_at(scene.settings, size, 150.0, 30.0) is None  # the bad one
    assert picture.scene_at(scene.settings, size, 200.0, 150.0) is None  # no flame is there
    assert load_again(scene).picture == "flame_sheet"


def test_a_folder_of_flames_is_a_sheet_that_survives_hostile_files(gpu, tmp_path, capsys):
    """Each file is a cell, read when it is drawn; one that cannot be read or drawn is crossed out."""
    (tmp_path / "x").mkdir()
    for name in ("a", "d"):
        library(tmp_path / "x", PACK[0]).rename(tmp_path / "x" / f"{name}.flame")
    library(tmp_path / "x", *PACK).rename(tmp_path / "x" / "b.flame")
    (tmp_path / "x" / "c.flame").write_bytes(b"<flame" * 1000)
    scene = load_for_window(tmp_path / "x")
    assert (scene.picture, scene.size) == ("flame_sheet", (480, 400)) and load_again(scene).settings == scene.settings
    size, picture = (240, 200), flame_sheet.Picture(gpu)
    settings = replace(scene.settings, labels=False, quality=5.0)
    for _ in range(picture.sample_count(settings, size)):
        pixels = picture.draw(settings, size, 0.0).read()
    cells = [pixels[y : y + 100, x : x + 120] for y in (0, 100) for x in (0, 120)]
    assert np.array_equal(cells[0], cells[3]) and (cells[2][..., 0] > 4 * cells[2][..., 1]).sum() > 50
    drawn, flame_draw = [], picture._flame.draw
    picture._flame.draw = lambda *arguments: drawn.append(arguments) or flame_draw(*arguments)
    picture.restart()
    for _ in range(4):
        again = picture.draw(settings, size, 0.0).read()
    assert np.array_equal(again, pixels) and not drawn, "thumbnails are kept"
    assert picture.scene_at(settings, size, 30.0, 30.0).picture == "flame"
    assert picture.scene_at(settings, size, 150.0, 30.0).picture == "flame_sheet", "a file of several flames"
    with pytest.raises(InputError):
        picture.scene_at(settings, size, 30.0, 130.0)


def test_a_small_picture_of_a_sheet_is_the_flame_at_that_size(gpu, tmp_path):
    path = library(tmp_path, PACK[0], PACK[2])
    settings = flame_sheet.Settings(str(path), labels=False, quality=9.0)
    size, picture = (160, 60), flame_sheet.Picture(gpu)
    for _ in range(2):
        pixels = picture.draw(settings, size, 0.0).read()
    one, plain = replace(load(path, flame="1").settings, quality=9.0), flame_picture.Picture(gpu)
    for _ in range(plain.sample_count(one, (74, 56))):
        wanted = plain.draw(one, (74, 56), 0.0).read()
    found = pixels[2:58, 83:157]
    assert np.array_equal(found[..., :3], wanted[..., :3])


def test_variations_that_the_generic_kernel_does_not_know_have_their_own(gpu):
    """Whoever would rather run the generic kernel: it would leave such a variation out."""
    strange = '<xform weight="1" hemisphere="0.6" coefs="0.6 0.2 -0.2 0.6 0.3 0"/>'
    spec = specialize([entry(xform=strange).keyframe.flame], False)
    assert not spec.is_generic
    cache = KernelCache(gpu.device)
    cache.prefer_generic()
    cache._requests = 99
    assert cache.best_kernel(spec) is cache._futures[spec, INTEGER_SUMS].result()


@pytest.mark.parametrize("xform,name,parameters", [
    ('q_ode="1" q_ode03="0.5"', "q_ode", {"q_ode_q_ode03": 0.5}),
    ('shift="1" shift_x="0.2"', "shift", {"shift_shift_x": 0.2}),
    ('vibration2="1" vibration2_tmfreq2="3"', "vibration2", {"vibration2_t2mfreq": 3}),
    ('pre_wave3D_wf="1" pre_wave3D_wf_axis="1"', "pre_add_wave3D_wf", {"pre_add_wave3D_wf_axis": 1}),
    ('pre_rect_wf="1" pre_rect_wf_x0="-2"', "pre_rect_wf", {"pre_rect_wf_x0": -2}),
    ('CircleTrans1="1"', None, {}),
    ('fract_julia_wf="1" fract_julia_wf_buddhabrot_min_iter="7" fract_julia_wf_z_fill="0.0"', "fract_julia_wf", {}),
])  # fmt: skip
def test_names_of_origins_become_the_tables(xform, name, parameters):
    (entry,), _ = parse_library(f'<flame><xform weight="1" coefs="1 0 0 1 0 0" {xform}/></flame>', AttributeParser("t"))
    read = entry.keyframe.flame.xforms[0]
    assert dict(read.parameters) == parameters and list(read.variations) == [name] * (name is not None)
    assert bool(entry.ignored) == (name is None)
