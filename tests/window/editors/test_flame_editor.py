"""The editor of flames: triangles stand where xforms put points, drags and keys do what the pure functions say."""

from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import UserError
from renderer.flames import edit, gradient, palettes
from renderer.flames.animation import rotated
from renderer.flames.genome import IDENTITY_2D, IDENTITY_3D, Flame, Xform
from renderer.flames.interpolation import interpolate_at
from renderer.flames.settings import Settings, keyframes_for_file, settings_from_keyframe, to_keyframe
from renderer.flames.xml.batch import merged
from renderer.flames.xml.write import to_xml
from renderer.paths import SCENES
from renderer.pictures import load, load_for_window, open_picture
from renderer.pictures.flame import Picture
from renderer.scene.cameras import View2D
from renderer.scene.scene import Scene
from renderer.window.app.key_bindings import ACTIONS
from renderer.window.controls.shortcuts import chord
from renderer.window.controls.toolkit import imgui
from renderer.window.flame_editor import triangles
from renderer.window.flame_editor.triangles import WindowTransform
from renderer.window.state import save_files
from tests.flames.games import read_flames
from tests.window.headless import finish, frames, press, until, wait_for_undo_step, window
from tests.window.monkey import noop_device

WIDTH, HEIGHT = 900, 460
STOPS = [(0, (0.0, 20.0, 60.0)), (80, (200.0, 20.0, 10.0)), (255, (250.0, 240.0, 200.0))]


@pytest.fixture
def screen(gpu, gl, tmp_path, monkeypatch):
    """The interface with one flame in a texture; events are simulated."""
    monkeypatch.chdir(tmp_path)
    fern = load(SCENES / "fern.toml")
    xforms = tuple(
        replace(m, post=(0.9, 0.1, 0.2, 0.0, 0.8, -0.1)) if k == 1 else m for k, m in enumerate(fern.settings.xforms)
    )
    view = View2D((0.3, 4.0), 13.0, 25.0)
    scene = replace(fern, settings=replace(fern.settings, xforms=xforms, quality=2.0, view=view))
    with window([scene], gpu, gl, (WIDTH, HEIGHT)) as screen:
        screen.app.panel.budget.fixed_divisor = 4
        frames(screen, 3)
        yield screen


def drag(screen, start, end) -> None:
    io = imgui.get_io()
    io.add_mouse_pos_event(*start)
    frames(screen)
    io.add_mouse_button_event(0, True)
    frames(screen)
    for part in (0.4, 1.0):
        io.add_mouse_pos_event(*(a + part * (b - a) for a, b in zip(start, end, strict=True)))
        frames(screen)
    io.add_mouse_button_event(0, False)
    frames(screen)


def click(screen, place) -> None:
    drag(screen, place, place)


def settings(screen) -> Settings:
    return screen.app.panel.scene.settings


def editor(screen):
    return screen.ui.main_window.panel_editor(screen.app.panel)


def frame(screen) -> WindowTransform:
    return editor(screen).transform(screen.app.panels.shown[0].image_rect)


def handle_positions(screen, number: int, post: bool = False) -> dict:
    return triangles.handles([frame(screen).to_window(c) for c in edit.triangle(settings(screen).xforms[number], post)])


# ---- triangles


@pytest.mark.parametrize("up", ["up", "down"])
def test_triangle_corners_lie_on_the_pixels_of_their_points(gpu, rng, up):
    """Xforms that map to one point: the picture's lit pixels are their corners O, in a rotated and zoomed view."""
    size = (90, 70)
    view = View2D(tuple(map(float, rng.uniform(-1, 1, 2))), float(rng.uniform(2, 5)), float(rng.uniform(-180, 180)))
    where = WindowTransform.of(view, Flame(), up, 1.25, (0, 0, *size))
    places = np.stack([rng.uniform(8, size[0] - 8, 5), rng.uniform(8, size[1] - 8, 5)], 1)
    xforms = tuple(Xform((0.0, 0.0, x, 0.0, 0.0, y)) for x, y in (where.to_plane(place) for place in places))
    flame = Settings(
        xforms=xforms, palette="white", filter_radius=0.0, quality=20.0, view=view, y_axis=up, pixel_aspect=1.25
    )
    pixels = Picture(gpu).draw(flame, size, 0.0).read()
    lit = set(zip(*(axis.tolist() for axis in np.nonzero(pixels[..., 0])), strict=True))
    corners = [where.to_window(edit.triangle(m)[0]) for m in xforms]
    assert np.allclose(corners, places) and lit == {(int(y), int(x)) for x, y in corners}


def test_hit_test_finds_the_handle_under_the_pointer():
    flame = Flame((Xform((1.0, 0.0, 0.0, 0.0, 1.0, 0.0)), Xform((0.5, 0.0, 0.6, 0.0, 0.5, 0.0))))
    where = WindowTransform(np.array([[100.0, 0.0, 0.0, 10.0], [0.0, 100.0, 0.0, 20.0], [0.0, 0.0, 0.0, 1.0]]))

    def found(place, selected=0):
        grip = triangles.hit_test(flame, where, place, selected, False, 6.0)
        return grip and (grip.index, grip.handle)

    assert found((12, 18)) == (0, "O") and found((110, 21)) == (0, "X") and found((60, 20)) == (0, "OX")
    assert found((60, 70)) == (0, "XY") and found((30, 40)) == (0, "inside") and found((200, 200)) is None
    assert found((70, 20)) == (1, "O") and found((70, 20), 1) == (1, "O") and found((95, 20), 1) == (1, "OX")
    assert found((30, 40), 1) is None, "the inside of a map that is not selected lets the view move"


@pytest.mark.parametrize("handle", [*triangles.CORNERS[:3], *triangles.EDGES, "inside"])
def test_a_drag_moves_the_corners_of_its_handle(rng, handle):
    flame = Flame((Xform(tuple(map(float, rng.normal(size=6)))),))
    before = np.array(edit.triangle(flame.xforms[0]))
    start, end = rng.normal(size=(2, 2))
    if handle == "XY":
        start = before[1:].mean(0)
    grip = triangles.Drag(0, handle, False, tuple(map(tuple, before)), tuple(start))
    after = np.array(edit.triangle(triangles.apply_drag(flame, grip, end).xforms[0]))
    moving = {"O": "OXY", "inside": "OXY"}.get(handle, handle)
    if handle == "XY":  # a similarity about O that takes the middle of XY to the pointer
        sides = [np.linalg.norm(t[[1, 2, 2]] - t[[0, 0, 1]], axis=1) for t in (before, after)]
        assert np.allclose(after[1:].mean(0), end) and np.ptp(sides[1] / sides[0]) < 1e-9
        assert np.linalg.det(after[1:] - after[0]) * np.linalg.det(before[1:] - before[0]) > 0
    else:
        for k, corner in enumerate("OXY"):
            assert np.allclose(after[k] - before[k], (end - start) * (corner in moving))


# ---- xforms in space


SPACE = [(0.6, 0.1, 0.0, 0.2, -0.1, 0.5, 0.2, 0.1, 0.0, 0.3, 0.7, -0.3)]
SPACE += [(0.5, 0.0, 0.0, -0.4, 0.0, 0.5, 0.0, 0.3, 0.0, 0.0, 0.5, 0.2)]


def space_scene(**camera) -> Scene:
    """Two xforms in space before Apophysis' camera."""
    view = View2D((0.1, -0.2), 4.0, 20.0)
    camera = {"cam_pitch": 0.6, "cam_yaw": -0.4, "cam_perspective": 0.15, "cam_zpos": 0.2} | camera
    flame = Settings(xforms=tuple(map(Xform, SPACE)), view=view, quality=1.0, **camera)
    return Scene(Path("space.toml"), "space", "flame", flame, Picture.tone, (640, 480))


def apophysis(flame: Settings, point, rect) -> tuple[np.ndarray, float]:
    """The window position of a point and its depth, by rotations about z and x, perspective and the view."""
    x, y, z = point
    z, pitch, yaw = z - flame.cam_zpos, flame.cam_pitch, flame.cam_yaw
    x, y = x * np.cos(yaw) + y * np.sin(yaw), y * np.cos(yaw) - x * np.sin(yaw)
    y, depth = y * np.cos(pitch) - z * np.sin(pitch), y * np.sin(pitch) + z * np.cos(pitch)
    plane = np.array([x, y]) / (1 - flame.cam_perspective * depth) - flame.view.center
    angle, (left, top, width, height) = np.radians(flame.view.rotation_degrees), rect
    right, up = plane @ [np.cos(angle), np.sin(angle)], plane @ [-np.sin(angle), np.cos(angle)]
    return np.array([left + width / 2, top + height / 2]) + np.array([right, -up]) * height / flame.view.height, depth


@pytest.mark.parametrize("hold", ["", "ctrl"])
def test_an_axis_in_space_is_dragged_before_the_camera_or_along_itself(gl, monkeypatch, tmp_path, hold):
    """By known pixels: the end of Z lies where a formula of the camera puts it, before and after the drag."""
    monkeypatch.chdir(tmp_path)
    with window([space_scene()], SimpleNamespace(device=noop_device()), gl, (WIDTH, HEIGHT)) as screen:
        frames(screen, 3)
        before, rect = settings(screen), screen.app.panels.shown[0].image_rect
        matrix = np.reshape(SPACE[0], (3, 4))
        ends = [matrix[:, 3], *(matrix[:, 3] + matrix[:, k] for k in range(3))]
        seen = [apophysis(before, end, rect) for end in ends]
        assert np.allclose([place for place, _ in seen], [*handle_positions(screen, 0).values()], atol=1e-6)
        target = seen[3][0] + (31, -22)
        imgui.get_io().add_key_event(imgui.Key.mod_ctrl, bool(hold))
        drag(screen, seen[3][0], target)
        imgui.get_io().add_key_event(imgui.Key.mod_ctrl, False)
        after = np.reshape(settings(screen).xforms[0].affine, (3, 4))
        place, depth = apophysis(before, after[:, 3] + after[:, 2], rect)
        assert np.allclose(after[:, [0, 1, 3]], matrix[:, [0, 1, 3]]) and settings(screen).view == before.view
        if hold:
            line = (seen[3][0] - seen[0][0]) / np.linalg.norm(seen[3][0] - seen[0][0])
            assert np.linalg.norm(np.cross(after[:, 2], matrix[:, 2])) < 1e-9 and abs((place - target) @ line) < 0.1
        else:
            assert np.allclose(place, target, atol=1e-3) and depth == pytest.approx(seen[3][1])
        assert settings(screen).xforms[1:] == before.xforms[1:]
        press(screen, "Ctrl+Z")
        assert settings(screen) == before, "one step"


def test_the_origin_of_axes_is_dragged_and_nudged_with_all_axes(gl, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with window([space_scene()], SimpleNamespace(device=noop_device()), gl, (WIDTH, HEIGHT)) as screen:
        frames(screen, 3)
        before, rect = settings(screen), screen.app.panels.shown[0].image_rect
        start, depth = apophysis(before, np.reshape(SPACE[0], (3, 4))[:, 3], rect)
        drag(screen, start, start + (40, 25))
        press(screen, "Alt+Up")
        after = np.reshape(settings(screen).xforms[0].affine, (3, 4))
        assert np.allclose(after[:, :3], np.reshape(SPACE[0], (3, 4))[:, :3])
        place, moved_depth = apophysis(before, after[:, 3], rect)
        assert np.allclose(place, start + (40, 25 - 0.02 * rect[3]), atol=1e-3) and moved_depth == pytest.approx(depth)
        press(screen, "Alt+Shift+Up")
        grown = np.reshape(settings(screen).xforms[0].affine, (3, 4))
        assert np.allclose(grown, after * [1.05, 1.05, 1.05, 1])


def test_flames_of_a_perspective_camera_have_axes_and_no_actions_of_the_plane(gl, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    scene = load(SCENES / "tetrahedron.toml")
    with window([scene], SimpleNamespace(device=noop_device()), gl, (WIDTH, HEIGHT)) as screen:
        frames(screen, 3)
        keys = {action.keys for action in editor(screen).actions()}
        assert {"A", "Delete", "G", "V"} <= keys and not keys & {"B", "U", "K", "Y", "Ctrl+E"}
        place = handle_positions(screen, 0)["Y"]
        drag(screen, place, (place[0] + 25, place[1] + 14))
        moved = np.subtract(settings(screen).xforms[0].affine, scene.settings.xforms[0].affine).reshape(3, 4)
        view = settings(screen).view
        assert np.allclose(moved[:, [0, 2, 3]], 0) and view == scene.settings.view
        assert np.allclose(handle_positions(screen, 0)["Y"], (place[0] + 25, place[1] + 14), atol=1e-3)
        assert moved[:, 1] @ np.subtract(view.target, view.position) == pytest.approx(0, abs=1e-9)


def test_an_xform_of_the_plane_gets_a_third_axis(gl, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pressed, button, tree_node_ex = [""], imgui.button, imgui.tree_node_ex
    monkeypatch.setattr(imgui, "button", lambda name, *a: button(name, *a) or name == pressed[0])
    monkeypatch.setattr(imgui, "tree_node_ex", lambda name, *a: tree_node_ex(name, imgui.TreeNodeFlags_.default_open))
    scene = load(SCENES / "fern.toml")
    with window([scene], SimpleNamespace(device=noop_device()), gl, (WIDTH, HEIGHT)) as screen:
        frames(screen, 3)
        a, b, c, d, e, f = scene.settings.xforms[0].affine
        for name, wanted in (("3D", (a, b, 0, c, d, e, 0, f, 0, 0, 1, 0)), ("Reset", IDENTITY_3D)):
            pressed[0] = name
            frames(screen, 1)
            assert settings(screen).xforms[0].affine == wanted, name
        assert settings(screen).xforms[1:] == scene.settings.xforms[1:] and "Z" in handle_positions(screen, 0)


def test_axes_behind_the_camera_have_no_handles():
    scene = space_scene(cam_perspective=40.0)
    transform = WindowTransform.of(scene.settings.view, scene.settings, "up", 1.0, (0, 0, 640, 480))
    assert transform.to_window((0.0, 0.0, 9.0)) == triangles.NOWHERE
    assert triangles.hit_test(scene.settings, transform, (2000.0, 2000.0), 0, False, 9.0) is None


def test_a_click_selects_the_smallest_of_overlapping_xforms_in_space():
    flame = replace(space_scene().settings, cam_perspective=0.0)
    small = tuple(0.1 * v if k % 4 < 3 else v for k, v in enumerate(SPACE[0]))
    flame = replace(flame, xforms=(*flame.xforms, Xform(small)))
    transform = WindowTransform.of(flame.view, flame, "up", 1.0, (0, 0, 640, 480))
    inside = np.mean([transform.to_window(corner) for corner in edit.triangle(flame.xforms[2])[:3]], 0)
    assert triangles.around(flame, transform, tuple(inside), False) == [2, 0]


@pytest.mark.slow
def test_axes_lie_on_the_pixels_of_their_ends(gpu):
    """Xforms that map to the ends of one xform's axes: the picture's lit pixels are where the handles are."""
    flame, size = space_scene().settings, (90, 70)
    ends = edit.triangle(flame.xforms[0])
    points = tuple(Xform((0.0, 0.0, 0.0, x, 0.0, 0.0, 0.0, y, 0.0, 0.0, 0.0, z)) for x, y, z in ends)
    lit = Picture(gpu).draw(replace(flame, xforms=points, palette="white", filter_radius=0.0), size, 0.0).read()[..., 0]
    where = WindowTransform.of(flame.view, flame, "up", 1.0, (0, 0, *size))
    wanted = {(int(y), int(x)) for x, y in map(where.to_window, ends)}
    assert set(zip(*(axis.tolist() for axis in np.nonzero(lit)), strict=True)) == wanted and len(wanted) == 4


# ---- the window


def test_dragging_a_corner_edits_the_xform_and_compiles_nothing(screen):
    finish(screen)
    before, ask = settings(screen), screen.app.gpu.device.kernel
    built = []
    screen.app.gpu.device.kernel = lambda *arguments, **named: built.append(arguments) or ask(*arguments, **named)
    start = handle_positions(screen, 0)["X"]
    end = (start[0] + 31, start[1] - 17)
    drag(screen, start, end)
    after = settings(screen)
    o, _, y = edit.triangle(before.xforms[0])
    wanted = edit.with_triangle(before, 0, (o, frame(screen).to_plane(end), y))
    assert np.allclose(after.xforms[0].affine, wanted.xforms[0].affine, atol=1e-6) and after.view == before.view
    assert after.xforms[1:] == before.xforms[1:]
    finish(screen)
    # Programs of a file are compiled once for all flames. That of any flame is compiled ahead, and a fast device begins
    # with this flame's own while the corner is dragged: one text, whatever the numbers.
    special = {source for source, *_ in built if not isinstance(source, str) and source.name != "flame.cu of any flame"}
    assert len(special) <= 1, "parameters are arguments: no edit of numbers compiles"
    press(screen, "Ctrl+Z")
    assert settings(screen) == before
    press(screen, "Ctrl+Y")
    assert settings(screen) == after


def test_edits_of_a_flame_count_as_interaction_and_jumps_do_not(screen):
    """After an interaction the window draws coarse previews; a chosen variant or flame is a jump, drawn as it is."""
    panel, now = screen.app.panel, screen.app.now
    flame_editor = editor(screen)
    now.seconds += 100
    assert panel.interacted_at < now()
    flame_editor.put(replace(settings(screen), brightness=3.0), moved=False)
    assert panel.interacted_at < now() and settings(screen).brightness == 3.0
    for edit_once in (
        lambda: flame_editor.change(edit.with_xform, 0, weight=0.3),
        lambda: flame_editor.change_xform(color=0.7),
        lambda: flame_editor.put(replace(settings(screen), brightness=5.0)),
        lambda: flame_editor.show(replace(settings(screen), brightness=6.0)),
    ):
        now.seconds += 100
        edit_once()
        assert panel.interacted_at == now()


def test_post_affines_are_dragged_and_the_background_pans(screen):
    finish(screen)
    press(screen, "Shift+M")
    press(screen, "M")
    press(screen, "M")
    press(screen, "O")
    before = settings(screen)
    start = handle_positions(screen, 1, post=True)["Y"]
    drag(screen, start, (start[0] - 20, start[1] + 9))
    after = settings(screen)
    assert after.xforms[1].affine == before.xforms[1].affine and after.xforms[1].post != before.xforms[1].post
    place = frame(screen).to_window(edit.triangle(after.xforms[1], True)[2])
    assert np.allclose(place, (start[0] - 20, start[1] + 9), atol=1e-3)
    press(screen, "G")
    drag(screen, start, (start[0] + 40, start[1]))
    assert settings(screen).xforms == after.xforms and settings(screen).view != after.view, (
        "hidden triangles hold nothing"
    )


def test_keys_apply_the_functions_of_edit(screen):
    before = settings(screen)
    press(screen, "M")
    press(screen, "]")
    assert settings(screen).xforms[1].weight == pytest.approx(1.25 * max(before.xforms[1].weight, 0.01))
    press(screen, "Alt+Right")
    moved = np.subtract(handle_positions(screen, 1)["O"], frame(screen).to_window(edit.triangle(before.xforms[1])[0]))
    assert moved == pytest.approx((0.02 * screen.app.panels.shown[0].image_rect[3], 0.0), abs=1e-6), (
        "to the right as displayed"
    )
    state = settings(screen)
    press(screen, "Alt+Shift+Left")
    assert settings(screen) == edit.rotate_scale(state, 1, 5.0)
    press(screen, "Shift+A")
    assert len(settings(screen).xforms) == 5 and settings(screen).xforms[4].affine == settings(screen).xforms[1].affine
    press(screen, "Delete")
    press(screen, "A")
    assert len(settings(screen).xforms) == 5 and editor(screen).index == 4
    press(screen, "F")
    assert settings(screen).final_xform is not None and editor(screen).index == edit.FINAL_XFORM
    press(screen, "F")
    assert settings(screen).final_xform is None
    press(screen, "C")
    names = palettes.builtin_names()
    assert settings(screen).palette == names[(names.index(before.palette) + 1) % len(names)]


def test_the_editor_s_keys_do_not_collide(screen):
    chords = [chord(action.keys) for action in editor(screen).actions()]
    assert len(set(chords)) == len(chords) and not set(chords) & {chord(action.keys) for action in ACTIONS}


@pytest.fixture
def places(monkeypatch):
    """The rectangles of the editor's controls: label -> (left, top, right, bottom)."""
    places = {}

    def noting(work):
        def noted(label, *arguments, **named):
            answer = work(label, *arguments, **named)
            low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
            places[label] = (low.x, low.y, high.x, high.y)
            return answer

        return noted

    for name in ("button", "small_button", "slider_float", "slider_int", "drag_float", "input_text_with_hint",
                 "invisible_button", "tree_node_ex", "selectable", "begin_combo"):  # fmt: skip
        monkeypatch.setattr(imgui, name, noting(getattr(imgui, name)))
    return places


def middle(rectangle) -> tuple[float, float]:
    left, top, right, bottom = rectangle
    return (left + right) / 2, (top + bottom) / 2


def test_numbers_and_buttons_edit_the_affine(screen, places):
    screen.resize((WIDTH, 1400))
    frames(screen)
    before = settings(screen)
    click(screen, middle(places["affine"]))
    frames(screen, 3)
    assert settings(screen) is before, "without input nothing is replaced"
    start = middle(places["##affine1"])
    drag(screen, start, (start[0] + 60, start[1]))
    affine, old = settings(screen).xforms[0].affine, before.xforms[0].affine
    assert affine[1] > old[1] + 0.1 and affine[:1] + affine[2:] == old[:1] + old[2:]
    click(screen, middle(places["Mirror"]))
    a, b, c, d, e, f = affine
    assert settings(screen).xforms[0].affine == (-a, b, c, -d, e, f)
    click(screen, middle(places["Reset"]))
    assert settings(screen).xforms[0].affine == IDENTITY_2D


@pytest.mark.slow
def test_sliders_and_the_variation_search_edit_the_selected_xform(screen, places):
    screen.resize((WIDTH, 1400))
    frames(screen)
    left, top, right, bottom = places["##color"]
    drag(screen, (left + 10, (top + bottom) / 2), (right - 3, (top + bottom) / 2))
    assert settings(screen).xforms[0].color > 0.95
    click(screen, middle(places["##search"]))
    imgui.get_io().add_input_characters_utf8("julias")
    frames(screen, 3)
    press(screen, "Enter")
    assert dict(settings(screen).xforms[0].variations) == {"linear": 1.0, "juliascope": 0.5}
    frames(screen)
    before = places["##juliascope_power"]
    drag(screen, middle(before), (middle(before)[0] + 60, middle(before)[1]))
    assert settings(screen).xforms[0].parameters["juliascope_power"] > 1.2
    click(screen, middle(places["##symmetry"]))
    click(screen, middle(places["4 rotations##2"]))
    assert len(settings(screen).xforms) == 7


@pytest.mark.slow
def test_a_variation_in_the_list_shows_its_picture(screen, places):
    """The grid's lines lie where the variation puts them: sphericals of x = 1 pass through (1/2, 1/2) and (1, 0)."""
    screen.resize((WIDTH, 1400))
    frames(screen)
    click(screen, middle(places["##search"]))
    imgui.get_io().add_input_characters_utf8("inversion spherical")
    frames(screen, 3)
    imgui.get_io().add_mouse_pos_event(*middle(places["spherical"]))
    pictures = editor(screen).variation_pictures
    until(screen, lambda: pictures._textures)
    (texture,) = pictures._textures.values()
    lit = texture.read()[..., :3].max(2) > 60
    side = len(lit)
    pixels = [(side / 2 + x * side / 3, side / 2 + y * side / 3) for x, y in ((1, 0), (0.5, 0.5), (-0.5, 0.5))]
    assert all(lit[round(y) - 2 : round(y) + 3, round(x) - 2 : round(x) + 3].any() for x, y in pixels)
    assert not lit[: side // 8, : side // 8].any(), "no point of the square comes from so far away"


@pytest.mark.slow
def test_a_double_click_types_into_the_sliders_of_xforms_and_of_the_palette(screen, places):
    """No digit reaches the keys of the panels, and the value is the one before the first click until Enter."""
    screen.resize((WIDTH, 1800))
    frames(screen)
    click(screen, middle(places["palette"]))
    frames(screen)
    io, before = imgui.get_io(), settings(screen)
    colors = before.palette_colors
    for name, typed in (("##weight", "0.3"), ("##rotate", "70")):
        left, top, right, bottom = places[name]
        io.add_mouse_pos_event(left + 0.8 * (right - left), (top + bottom) / 2)
        frames(screen)
        for down in (True, False, True, False):
            io.add_mouse_button_event(0, down)
            frames(screen, 1)
        frames(screen)
        assert settings(screen).xforms[0].weight == (0.3 if name == "##rotate" else before.xforms[0].weight)
        assert np.array_equal(settings(screen).palette_colors, colors) and io.want_text_input
        io.add_input_characters_utf8(typed)
        frames(screen)
        press(screen, "Enter")
    assert settings(screen).xforms[0].weight == 0.3
    assert np.array_equal(settings(screen).palette_colors, np.roll(colors, 70, 0))


def test_palettes_are_chosen_by_gradient_and_rotated(screen, places):
    screen.resize((WIDTH, 1800))
    frames(screen)
    click(screen, middle(places["palette"]))
    frames(screen)
    click(screen, middle(places["gradient sea"]))
    assert settings(screen).palette == "sea"
    left, top, right, bottom = places["##rotate"]
    drag(screen, middle(places["##rotate"]), (left + 0.75 * (right - left), (top + bottom) / 2))
    shift = [
        k
        for k in range(-128, 129)
        if np.array_equal(settings(screen).palette_colors, np.roll(palettes.builtin("sea"), k, 0))
    ]
    assert shift and 55 <= shift[0] <= 75
    click(screen, middle(places["xaos"]))
    frames(screen)
    drag(screen, middle(places["##0 1"]), (middle(places["##0 1"])[0] + 40, middle(places["##0 1"])[1]))
    assert settings(screen).xforms[0].xaos[1] > 1.2 and settings(screen).xforms[0].xaos[0] == 1.0


def test_gradients_are_opened_reversed_and_saved(screen, places, tmp_path):
    (tmp_path / "a.gpl").write_text("GIMP Palette\n0 0 0\n255 51 0\n")
    screen.resize((WIDTH, 1800))
    frames(screen)
    click(screen, middle(places["palette"]))
    editor(screen)._open_gradients(tmp_path / "a.gpl")
    frames(screen, 2)
    ramp = np.round(np.linspace([0, 0, 0], [255, 51, 0], 256))
    assert np.allclose(settings(screen).palette_colors, ramp)
    click(screen, middle(places["Reverse##gradient"]))
    assert np.allclose(settings(screen).palette_colors, ramp[::-1])
    click(screen, middle(places["gradient a##0"]))
    assert np.allclose(settings(screen).palette_colors, ramp)
    editor(screen)._save_gradient(tmp_path / "b.map")
    assert (tmp_path / "b.map").read_text().splitlines()[-1] == "255  51   0"
    editor(screen)._open_gradients(tmp_path / "none.ase")
    assert "none.ase" in screen.app.message


@pytest.mark.slow
def test_stops_are_added_dragged_colored_and_deleted(screen, places, monkeypatch):
    screen.resize((WIDTH, 1800))
    frames(screen)
    click(screen, middle(places["palette"]))
    editor(screen).put(edit.with_palette_colors(settings(screen), gradient.from_stops(STOPS)))
    wait_for_undo_step(screen)
    before, bar = settings(screen), places["gradient the flame's colors; a click adds a stop"]

    def at(entry: int) -> float:
        return bar[0] + (bar[2] - bar[0]) * entry / 255

    click(screen, (at(40), middle(bar)[1]))
    assert settings(screen).palette_colors.tolist() == before.palette_colors.tolist(), "a new stop changes no color"
    start = middle(places["stop 1"])
    drag(screen, start, (at(60), start[1]))
    moved = settings(screen).palette_colors
    wanted = [  # a pixel of the bar is about an entry
        gradient.from_stops([STOPS[0], (60 + k, tuple(before.palette_colors[40 + j])), *STOPS[1:]])
        for k in (-1, 0, 1)
        for j in (-1, 0, 1)
    ]
    assert any(np.array_equal(moved, palette) for palette in wanted)
    press(screen, "Ctrl+Z")
    assert settings(screen) == before, "a drag is one step of undo"
    press(screen, "Ctrl+Y")
    assert np.array_equal(settings(screen).palette_colors, moved)
    with monkeypatch.context() as picker:
        picker.setattr(imgui, "color_edit3", lambda label, color: (True, [0.2, 0.4, 0.6]))
        frames(screen, 1)
    assert [51, 102, 153] in settings(screen).palette_colors.tolist()
    place = middle(places["stop 1"])
    imgui.get_io().add_mouse_pos_event(*place)
    frames(screen)
    for is_down in (True, False):
        imgui.get_io().add_mouse_button_event(1, is_down)
        frames(screen)
    assert np.array_equal(settings(screen).palette_colors, before.palette_colors)
    for label in ("Smooth##gradient", "Random##gradient"):
        colors = settings(screen).palette_colors
        click(screen, middle(places[label]))
        assert not np.array_equal(settings(screen).palette_colors, colors)
    (key,) = keyframes_for_file(settings(screen), (64, 48), "a")
    assert np.array_equal(key.flame.palette_colors, settings(screen).palette_colors)


def test_a_variant_is_selected_by_click(screen):
    finish(screen)
    before = settings(screen)
    press(screen, "V")
    finish(screen)
    variants = editor(screen).variants
    until(screen, lambda: len(variants.textures) == 9)
    assert variants.flames[4] == before
    pictures = [texture.read() for texture in variants.textures]
    assert pictures[4][..., :3].max() > 60
    assert sum(not np.array_equal(picture, pictures[4]) for picture in pictures) >= 6
    press(screen, "V")
    editor(screen).put(variants.flames[0])
    assert settings(screen).xforms == variants.flames[0].xforms and settings(screen).quality == before.quality


def test_a_random_flame_can_be_undone(screen):
    finish(screen)
    before = settings(screen)
    editor(screen).rng = np.random.default_rng(3)
    press(screen, "B")
    finish(screen)
    after = settings(screen)
    assert after.xforms != before.xforms and not screen.app.panel.error and after.quality == before.quality
    assert (screen.app.panel.display.texture.read()[..., :3].max(2) > 10).mean() > 0.03
    press(screen, "Ctrl+Z")
    assert settings(screen) == before


# ---- key frames and files


def test_key_frames_are_added_edited_and_played(screen):
    finish(screen)
    before = settings(screen)
    press(screen, "K")
    assert [key.time for key in settings(screen).keyframes] == [0.0, 2.0] and editor(screen).key == 1
    press(screen, "Alt+Right")
    keys = settings(screen).keyframes
    assert keys[0].flame.xforms == before.xforms != keys[1].flame.xforms and screen.app.panel.scene_time == 2.0
    finish(screen)
    second = screen.app.panel.display.texture.read()
    press(screen, "J")
    assert editor(screen).key == 0 and screen.app.panel.scene_time == 0.0
    finish(screen)
    assert not np.array_equal(screen.app.panel.display.texture.read(), second)
    press(screen, "Y")
    frames(screen, 3)
    assert not screen.app.panel.paused and screen.app.panel.scene_time > 0
    press(screen, "Y")
    wait_for_undo_step(screen)
    press(screen, "Shift+K")
    assert not settings(screen).keyframes and settings(screen).xforms == keys[1].flame.xforms
    press(screen, "Ctrl+Z")
    assert settings(screen).keyframes == keys


def test_a_saved_flame_file_draws_the_same_picture(screen, gpu, tmp_path):
    finish(screen)
    panel = screen.app.panel
    panel.scene = replace(panel.scene, size=(1280, 960))
    press(screen, "Ctrl+E")
    assert screen.app.dialog.name == "fern.flame"
    screen.app.dialog.enter(tmp_path)
    screen.app.dialog.accept()
    screen.frame()
    assert not screen.app.panel.has_unsaved_work and screen.app.panel.original.path == tmp_path / "fern.flame"
    (key,), warnings = read_flames(tmp_path / "fern.flame")
    assert key.size == (1280, 960), "a file's flame keeps its own size"
    assert not warnings and key.extra["name"] == screen.app.panel.scene.title
    size = (120, 90)
    again = settings_from_keyframe(key)
    assert (again.y_axis, again.final_xform) == ("up", None) and again.xforms == settings(screen).xforms
    flame = {f.name: getattr(key.flame, f.name) for f in fields(key.flame)}  # as other programs read the file
    views = [Settings(**flame, view=key.view, y_axis="down"), settings(screen)]
    dense = [replace(s, quality=400.0, view=settings(screen).view) for s in views]
    assert views[0].view.height == pytest.approx(views[1].view.height) and views[0].y_axis == "down"
    assert views[0].view.center == pytest.approx(views[1].view.center)
    one, two = (Picture(gpu).draw(s, size, 0.0).read()[..., :3] for s in dense)
    boxed = [picture.reshape(18, 5, 24, 5, 3).mean((1, 3)) for picture in (one, two)]
    assert np.corrcoef(boxed[0].ravel(), boxed[1].ravel())[0, 1] > 0.98
    flipped = boxed[1][::-1]
    assert np.corrcoef(boxed[0].ravel(), flipped.ravel())[0, 1] < 0.9


def test_a_click_inside_a_triangle_selects_it_and_a_drag_there_moves_the_view(screen):
    press(screen, "Ctrl+Shift+N")
    frames(screen, 3)
    edited, rect = editor(screen), screen.app.panels.shown[0].image_rect
    transform = edited.transform(rect)
    assert edited.index == 0
    o, x, y = (transform.to_window(corner) for corner in edit.triangle(edited.flame.xforms[1], False))
    inside = tuple((2 * a + b + c) / 4 for a, b, c in zip(o, x, y, strict=True))
    before = settings(screen)
    click(screen, inside)
    assert edited.index == 1 and settings(screen) == before
    edited.selected = 0
    drag(screen, inside, (inside[0] + 40, inside[1] - 30))
    assert edited.index == 0 and settings(screen).view != before.view and settings(screen).xforms == before.xforms


def test_a_new_flame_is_saved_and_saved_again_as_flame(screen, tmp_path):
    app = screen.app
    press(screen, "Ctrl+Shift+N")
    press(screen, "Ctrl+S")
    assert app.dialog.name == "untitled_flame.flame" and app.dialog.suffixes == (".flame", ".toml")
    app.dialog.enter(tmp_path)
    app.dialog.name = "my leaf"
    app.dialog.accept()
    screen.frame()
    path = tmp_path / "my leaf.flame"
    assert "finalxform" not in path.read_text() and 'name="my leaf"' in path.read_text()
    assert app.panel.scene.title == "my leaf" and not app.panel.has_unsaved_work
    before = settings(screen)
    editor(screen).change_xform(color=0.25)
    frames(screen)
    assert app.panel.has_unsaved_work
    press(screen, "Ctrl+S")
    assert app.dialog is None and not app.panel.has_unsaved_work and app.message == "saved my leaf.flame"
    saved = load_for_window(path).settings
    assert (saved.y_axis, saved.final_xform) == ("down", None)
    assert saved.xforms == settings(screen).xforms != before.xforms


def test_a_flame_of_a_batch_is_saved_into_its_batch(screen, tmp_path):
    """Whoever saves one flame keeps the others, comments and unknown attributes, byte for byte."""
    app, path = screen.app, tmp_path / "batch.flame"
    body = '<xform weight="1" {0}="1"/><color index="0" rgb="9 9 9"/>'
    flame = f'<flame name="{{0}}" note="keep &amp; {{0}}" size="64 48">\n{body}\n</flame>'
    texts = [flame.format(name) for name in ("linear", "swirl", "spherical")]
    between = ["<?xml version='1.0'?>\n<Flames name='mine'><!-- <flame> -->\n", "\n", "<?x <flame?>\n", "\n</Flames>\n"]
    path.write_text("".join(a + b for a, b in zip(between, [*texts, ""], strict=True)))
    before = path.read_text()
    app.panel.open(load(path, flame="1"))
    app.panel.show(app.panel.original)
    frames(screen)
    editor(screen).change_xform(weight=0.25)
    press(screen, "Ctrl+S")
    assert app.dialog is None and not app.panel.has_unsaved_work and "'swirl' in batch.flame" in app.message
    head, tail = before.split(texts[1])
    after = path.read_text()
    assert after.startswith(head) and after.endswith(tail) and 'note="keep &amp; swirl"' in after
    keys, _ = read_flames(path)
    assert [key.flame.xforms[0].weight for key in keys] == [1, 0.25, 1] and keys[1].size == (64, 48)
    other = tmp_path / "other.flame"
    other.write_text(before)
    press(screen, "Ctrl+E")
    app.dialog.enter(tmp_path)
    app.dialog.name = "other.flame"
    app.dialog.accept()
    assert app.dialog.is_open and "other.flame holds 3 flames; Append keeps them" in app.dialog.message
    app.dialog.accept(appends=True)
    assert other.read_text().startswith(before.removesuffix("\n</Flames>\n")) and len(read_flames(other)[0]) == 4
    frames(screen)
    assert (app.panel.original.path, app.panel.original.part) == (other, "3")


def test_a_flame_has_a_size_that_is_saved(screen, tmp_path):
    panel = screen.app.panel
    editor(screen).resize((1024, 768))
    frames(screen)
    assert panel.has_unsaved_work and panel.scene.size == (1024, 768)
    save_files.save_to(screen.app, panel, tmp_path / "a.flame")
    assert read_flames(tmp_path / "a.flame")[0][0].size == (1024, 768) and not panel.has_unsaved_work
    press(screen, "K")
    shown = [key.view.height for key in settings(screen).keyframes]
    editor(screen).resize((512, 1024))
    keys = settings(screen).keyframes
    assert [key.size for key in keys] == [(512, 1024)] * 2 and [key.view.height for key in keys] == pytest.approx(shown)


def test_a_loop_turns_evenly_and_shows_no_motion_blur(screen):
    press(screen, "Shift+Y")
    keys = settings(screen).keyframes
    assert [key.time for key in keys] == [0, 2, 4, 6, 8] and screen.app.panel.paused
    for time in (0.7, 3.1, 8.0):
        between, turned = interpolate_at(keys, time).flame.xforms, rotated(keys[0], 360 * time / 8).flame.xforms
        assert all(np.allclose(a.affine, b.affine) for a, b in zip(between, turned, strict=True))
    blurred = replace(settings(screen), keyframes=tuple(
        replace(key, flame=replace(key.flame, temporal_samples=1000)) for key in keys))  # fmt: skip
    assert {key.flame.temporal_samples for key in blurred.for_window().keyframes} == {1}
    screen.app.panel.show(replace(screen.app.panel.scene, settings=blurred))
    finish(screen)
    assert screen.app.panel.measured.report["temporal_samples"] == 1


def test_adjustments_turn_stops():
    palette = gradient.from_stops(STOPS)
    for name, value in (("hue", 90), ("saturation", -50), ("contrast", 30)):
        adjusted, stops = gradient.adjust_stops(palette, STOPS, name, value)
        assert [at for at, _ in stops] == [at for at, _ in STOPS] and np.array_equal(
            adjusted, gradient.from_stops(stops)
        )
        wanted = np.array([gradient.adjust(palette[at : at + 1], name, value)[0] for at, _ in STOPS])
        assert np.allclose([color for _, color in stops], wanted, atol=0.5)
    detailed = palette + 9 * (np.arange(256)[:, None] % 2)
    assert gradient.adjust_stops(detailed, STOPS, "hue", 90)[1] is None
    flame = edit.with_palette_colors(Flame(), palette * 0.77)
    assert np.array_equal(flame.palette_colors, np.round(palette * 0.77))


def test_key_frames_are_saved_into_their_file(tmp_path):
    path, home = tmp_path / "film.flame", Settings(xforms=(Xform(),), y_axis="down")
    keys = [to_keyframe(home, (64, 48), float(time), f"k{time}") for time in range(3)]
    path.write_text(f"<!-- a -->{to_xml(keys)}<!-- z -->")
    for count in (2, 3, 1):
        path.write_bytes(merged(path, keys[:count], range(len(read_flames(path)[0]))))
        assert [key.extra["name"] for key in read_flames(path)[0]] == ["k0", "k1", "k2"][:count]
    assert path.read_text().startswith("<!-- a --><flames>") and path.read_text().rstrip().endswith("<!-- z -->")
    with pytest.raises(UserError, match="has 1 flames, and no number 3"):
        merged(path, keys[:1], [3])
    path.write_bytes(path.read_text().encode("utf-16"))
    with pytest.raises(UserError, match="save under another name"):
        merged(path, keys[:1], [0])


def test_a_final_xform_of_a_mirrored_flame_stays_its_own():
    final = Xform((0.5, 0.1, 0.0, 0.2, 0.5, 0.3), color_speed=0.5)
    flame = Settings(xforms=(Xform(),), final_xform=final, y_axis="up")
    (key,) = keyframes_for_file(flame, (64, 48), "a")
    assert key.flame.final_xform.post == (1, 0, 0, 0, -1, 0)
    again = settings_from_keyframe(key)
    assert (again.y_axis, again.final_xform) == ("up", final)
    foreign = settings_from_keyframe(replace(key, extra={}))
    assert (foreign.y_axis, foreign.final_xform) == ("down", key.flame.final_xform)


def test_a_flame_file_round_trips():
    scene = load(SCENES / "lantern.flame")
    (key,) = keyframes_for_file(scene.settings, scene.size, scene.title)
    again = settings_from_keyframe(key)
    assert again == replace(scene.settings, view=again.view)
    assert again.view.center == pytest.approx(scene.settings.view.center)
    assert again.view.height == pytest.approx(scene.settings.view.height)


def test_key_frames_are_sorted_by_time(rng):
    home = Settings(xforms=(Xform(), Xform(IDENTITY_2D, color=0.5)))
    keys = [to_keyframe(home, (64, 48), float(time)) for time in (3.0, 1.0, 2.0)]
    made = edit.add_keyframe(edit.add_keyframe(edit.add_keyframe(home, keys[0]), keys[1]), keys[2])
    assert [key.time for key in made.keyframes] == [1.0, 2.0, 3.0]
    assert edit.add_keyframe(made, replace(keys[1], hue=0.5)).keyframes[0].hue == 0.5
    assert not edit.delete_keyframe(edit.delete_keyframe(made, 0), 0).keyframes


def test_an_animation_interpolates_two_flames(gpu):
    """Halfway between an xform at -1 and one at 1 is one at 0."""
    one, two = (
        Settings(xforms=(Xform((0.1, 0.0, x, 0.0, 0.1, 0.0)),), palette="white", quality=20.0) for x in (-0.9, 0.9)
    )
    made = replace(one, keyframes=(to_keyframe(one, (64, 64), 0.0), to_keyframe(two, (64, 64), 2.0)))
    picture = open_picture(Scene(Path("x"), "x", "flame", made), gpu)
    columns = [np.nonzero(picture.draw(made, (64, 64), time).read()[..., 0].max(0))[0].mean() for time in (0, 1, 2)]
    assert columns == pytest.approx([31.5 - 16, 31.5, 31.5 + 16], abs=1.0)


def test_a_file_of_flames_is_a_sheet_and_a_click_opens_one(gpu, gl, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(
        f'<flame name="f{k}" size="40 30" scale="12" quality="2"><xform weight="1" linear="0.5" '
        f'coefs="0.6 0.{k} -0.2 0.6 0.3 0"/><color index="0" rgb="200 90 9"/></flame>'
        for k in range(4)
    )
    (tmp_path / "pack.flame").write_text(f"<flames>{text}</flames>")
    with window([load_for_window(tmp_path / "pack.flame")], gpu, gl, (WIDTH, HEIGHT)) as screen:
        finish(screen)
        assert screen.app.panel.scene.picture == "flame_sheet"
        x, y, width, height = screen.app.panels.shown[0].image_rect
        click(screen, (x + 0.75 * width, y + 0.75 * height))
        assert (screen.app.panel.scene.picture, screen.app.panel.scene.title) == ("flame", "f3")
        press(screen, "Ctrl+H")
        shown = screen.app.panel.scene
        assert (shown.picture, shown.settings.file) == ("flame_sheet", str(tmp_path)), "the folder of the flame's file"
