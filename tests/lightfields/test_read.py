"""Reading light fields: every published way of naming views, and what strangers' files may not do."""

import io
import struct
import zipfile
import zlib

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.formats import archive, npy_views
from renderer.formats.images import write_png
from renderer.lightfields import light_field
from renderer.lightfields.aperture import VirtualCamera, camera_position, view_shifts, view_weights
from renderer.lightfields.disparity import disparity_at, disparity_range, resolve_v_direction
from renderer.lightfields.light_field import read_light_field
from tests.lightfields.synthetic_planes import smooth_views

ROWS, COLUMNS, HEIGHT, WIDTH = 3, 5, 12, 16


@pytest.fixture
def views(rng):
    return rng.integers(0, 256, (ROWS, COLUMNS, HEIGHT, WIDTH, 3)).astype("u1")


def stanford(row, column, last="_"):
    """Names as the Stanford archive has them: v first, both in millimetres, u falling with the column."""
    return f"out_{row:02d}_{column:02d}_{-381.909271 + 3.5 * row:.6f}_{1103.376221 - 3.5 * column:.6f}{last}.png"


def write_views(folder, views, name):
    for row in range(ROWS):
        for column in range(COLUMNS):
            write_png(folder / name(row, column), views[row, column])
    return folder


def zipped(folder, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(folder.iterdir()):
            packed.write(file, f"rectified/{file.name}")
    return path


def check_regular(field, views, column_step=1.0):
    assert (field.rows, field.columns) == (ROWS, COLUMNS)
    assert np.array_equal(field.pixels.reshape(views.shape), views)
    middle = np.array([(ROWS - 1) / 2, (COLUMNS - 1) / 2])
    steps = field.view_indices - middle
    np.testing.assert_allclose(field.camera_positions, steps[:, ::-1] * (column_step, 1), atol=1e-4)
    assert not field.warnings and field.grid_rms_error() < 1e-4


@pytest.mark.parametrize("last", ["", "_"])
@pytest.mark.parametrize("packed", [False, True])
def test_stanford_names_give_view_indices_and_camera_positions(tmp_path, views, last, packed):
    folder = tmp_path / "field"
    folder.mkdir()
    write_views(folder, views, lambda r, c: stanford(r, c, last))
    field = read_light_field(zipped(folder, tmp_path / "field.zip") if packed else folder)
    assert field.convention == "Stanford names"
    check_regular(field, views, column_step=-1.0)


def test_viewer_xml_gives_camera_positions(tmp_path, views):
    write_views(tmp_path, views, lambda r, c: f"view{r * COLUMNS + c}.png")
    elements = "".join(
        f'<subaperture src="view{r * COLUMNS + c}.png" u="{0.2 * c + 7}" v="{0.2 * r - 3}"/>'
        for r in range(ROWS)
        for c in range(COLUMNS)
    )
    (tmp_path / "field.xml").write_text(f"<lightfield>{elements}</lightfield>")
    field = read_light_field(tmp_path)
    assert field.convention == "viewer XML"
    check_regular(field, views)


def test_hci_names_are_row_major_and_the_grid_is_in_the_parameters(tmp_path, views):
    write_views(tmp_path, views, lambda r, c: f"input_Cam{r * COLUMNS + c:03d}.png")
    with pytest.raises(InputError, match="make no square"):
        read_light_field(tmp_path)
    (tmp_path / "parameters.cfg").write_text(f"[extrinsics]\nnum_cams_x = {COLUMNS}\nnum_cams_y = {ROWS}\n")
    check_regular(read_light_field(tmp_path), views)


@pytest.mark.parametrize(
    "pattern, name",
    [
        ("shot-{row}x{col}.png", lambda r, c: f"shot-{r + 4}x{c + 9}.png"),
        ("v={v},u={u}.png", lambda r, c: f"v={r * 0.5:g},u={c * 0.5 - 8:g}.png"),
        ("IMG_{index}.png", lambda r, c: f"IMG_{100 + r * COLUMNS + c}.png"),
        ("({row})[{col}] {v} {u}.png", lambda r, c: f"({r})[{c}] {r}.5 {c}.25.png"),
    ],
)
def test_any_names_by_a_pattern(tmp_path, views, pattern, name):
    write_views(tmp_path, views, name)
    grid = (ROWS, COLUMNS) if "index" in pattern else (0, 0)
    check_regular(read_light_field(tmp_path, pattern, grid=grid), views)


def test_lenslet_and_tiled_images_hold_the_views(tmp_path, views):
    lenslet = views.transpose(2, 0, 3, 1, 4).reshape(HEIGHT * ROWS, WIDTH * COLUMNS, 3)
    tiled = views.transpose(0, 2, 1, 3, 4).reshape(ROWS * HEIGHT, COLUMNS * WIDTH, 3)
    for layout, picture in (("lenslet", lenslet), ("tiled", tiled)):
        write_png(tmp_path / f"{layout}.png", picture)
        field = read_light_field(tmp_path / f"{layout}.png", layout=layout, grid=(ROWS, COLUMNS))
        check_regular(field, views)
        assert np.array_equal(picture[2::ROWS, 3::COLUMNS], views[2, 3]) == (layout == "lenslet")
    with pytest.raises(InputError, match='layout = "lenslet"'):
        read_light_field(tmp_path / "lenslet.png")
    with pytest.raises(InputError, match="80 x 36 pixels are not 5 rows"):
        read_light_field(tmp_path / "tiled.png", layout="tiled", grid=(5, 3))


def test_eslf_file_is_a_lenslet_image_with_14_x_14_views_and_weights_in_alpha(tmp_path, rng):
    whole = rng.integers(1, 256, (14 * 6, 14 * 9, 4)).astype("u1")
    whole[0::14, 0::14, 3] = 0  # the corner view of a round lens is dark
    write_png(tmp_path / "flower_eslf.png", whole)
    field = read_light_field(tmp_path / "flower_eslf.png")
    assert field.pixels.shape == (196, 6, 9, 4) and field.rows == field.columns == 14
    assert np.array_equal(field.pixels[14 * 3 + 5], whole[3::14, 5::14])
    assert field.warnings == ("1 views have weight 0 everywhere",)


def test_arrays_are_read_without_pickle(tmp_path, views):
    np.save(tmp_path / "bytes.npy", views)
    field = read_light_field(tmp_path / "bytes.npy")
    check_regular(field, views)
    assert isinstance(field.pixels.base, np.memmap) or isinstance(field.pixels, np.memmap)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(views))
    check_regular(read_light_field(tmp_path / "fortran.npy"), views)
    np.save(tmp_path / "floats.npy", (views / 255).astype("f4"))
    check_regular(read_light_field(tmp_path / "floats.npy"), views)
    np.save(tmp_path / "words.npy", views.astype("u2") * 257)
    check_regular(read_light_field(tmp_path / "words.npy"), views)
    v, u = np.meshgrid(2.5 * np.arange(ROWS), 2.5 * np.arange(COLUMNS), indexing="ij")
    np.savez_compressed(tmp_path / "named.npz", LF=views, u=u, v=v)
    check_regular(read_light_field(tmp_path / "named.npz"), views)
    gray = write_and_read(tmp_path, views[..., 0])
    assert np.array_equal(gray.pixels[..., 2].reshape(views.shape[:4]), views[..., 0])
    for name, bad, told in [
        ("objects", np.array([{}], object), "objects"),
        ("flat", np.zeros((4, 4), "u1"), r"shape \(4, 4"),
        ("loud", np.full((1, 1, 2, 2, 3), 7.0), "must be of 0 to 1"),
        ("signed", np.zeros((1, 1, 2, 2, 3), "i2"), "int16"),
        ("none", np.zeros((0, 3, 2, 2, 3), "u1"), "shape"),
    ]:
        np.save(tmp_path / f"{name}.npy", bad, allow_pickle=True)
        with pytest.raises(InputError, match=told if name != "objects" else "object"):
            read_light_field(tmp_path / f"{name}.npy")


def write_and_read(folder, array):
    np.save(folder / "array.npy", array)
    return read_light_field(folder / "array.npy")


def test_array_shorter_than_its_header_is_refused(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (9, 9, 1000, 1000, 3)}
    )
    (tmp_path / "short.npy").write_bytes(header.getvalue() + b"1234")
    with pytest.raises(InputError, match="truncated: 132 bytes, where its header promises 243000128"):
        read_light_field(tmp_path / "short.npy")


def test_missing_and_unreadable_views_warn_and_the_rest_is_loaded(tmp_path, views):
    write_views(tmp_path, views, stanford)
    (tmp_path / stanford(0, 1)).unlink()
    (tmp_path / stanford(2, 4)).write_bytes(b"\x89PNG\r\n\x1a\nnot a picture")
    field = read_light_field(tmp_path)
    assert len(field.pixels) == ROWS * COLUMNS - 2
    broken, missing = field.warnings
    assert stanford(2, 4) in broken and "not an image" in broken
    assert missing == "2 of 15 views are missing: row 0 column 1, row 2 column 4"
    for shot in range(ROWS * COLUMNS - 2):
        assert np.array_equal(field.pixels[shot], views[tuple(field.view_indices[shot])])
    at_missing_camera = VirtualCamera(u=-0.5, v=-1.0, aperture=0.0)  # row 0, column 1
    weights = view_weights(field, at_missing_camera, "disc")
    assert weights.max() == 1 and np.isfinite(weights).all()


def test_camera_far_from_grid_warns(tmp_path, views):
    write_views(tmp_path, views, stanford)
    (tmp_path / stanford(1, 1)).rename(tmp_path / "out_01_01_-378.4_1120.0_.png")
    (warning,) = read_light_field(tmp_path).warnings
    assert "are more than 0.5 spacings from" in warning and "row 1, column 1" in warning


def test_coordinates_that_do_not_follow_the_array_warn(tmp_path, views):
    write_views(tmp_path, views, lambda r, c: f"out_{r:02d}_{c:02d}_0.0_0.0.png")
    field = read_light_field(tmp_path)
    assert field.warnings == ("the coordinates in the names do not follow the array; using a regular grid instead",)
    assert tuple(field.camera_positions[0]) == (-2, -1)


def test_views_of_different_sizes_are_refused(tmp_path, views):
    write_views(tmp_path, views, stanford)
    write_png(tmp_path / stanford(1, 2), views[1, 2, :7])
    with pytest.raises(InputError, match=r"out_01_02\S+: of another size .*: it has 16 x 7 pixels, not 16 x 12"):
        read_light_field(tmp_path)


def test_views_of_another_size_are_refused_before_they_are_decoded(tmp_path, views, monkeypatch):
    """Thirty-two huge views were decoded at a time, 16 bytes a pixel, before their number was known to be too large."""
    write_views(tmp_path, views, stanford)
    write_png(tmp_path / stanford(1, 2), np.zeros((900, 900, 3), "u1"))
    largest, now, most = [], [], [0]
    read = light_field.read_pixels

    def counted(name, data, size):
        now.append(name)
        most[0] = max(most[0], len(now))
        largest.append(read(name, data=data, size=size))
        now.pop()
        return largest[-1]

    monkeypatch.setattr(light_field, "read_pixels", counted)
    with pytest.raises(InputError, match=r"out_01_02\S+: of another size .*: it has 900 x 900 pixels, not 16 x 12$"):
        read_light_field(tmp_path)
    assert {pixels.shape for pixels in largest} == {(12, 16, 4)}
    (tmp_path / stanford(1, 2)).unlink()
    monkeypatch.setattr(light_field, "MAX_PENDING_PIXELS", 1)
    most[0] = now.clear() or 0
    assert len(read_light_field(tmp_path).pixels) and most == [1]  # large views: one at a time


def test_unknown_names_are_listed_with_the_accepted_forms(tmp_path, views):
    with pytest.raises(InputError, match="found no file; accepted are out_ROW_COLUMN"):
        read_light_field(tmp_path)
    for index in range(9):
        write_png(tmp_path / f"holiday{index}.png", views[0, 0])
    with pytest.raises(InputError, match=r"found holiday0.png, .* and 3 more; accepted are .*HCI.*pattern"):
        read_light_field(tmp_path)
    with pytest.raises(InputError, match="nothing matches the pattern 'x_{index}.png'; found holiday0.png"):
        read_light_field(tmp_path, "x_{index}.png")
    for pattern in ("{row}.png", "a{b}.png", "{row}{row}{col}", "{u}{v}{index}"):
        with pytest.raises(InputError, match="must name {row} and {col}"):
            read_light_field(tmp_path, pattern)
    (tmp_path / "IMG_0001.lfp").write_bytes(b"LFP")
    with pytest.raises(InputError, match="IMG_0001.lfp is a Lytro raw file.*PlenoptiCam"):
        read_light_field(tmp_path)


def test_two_files_for_one_view_are_refused(tmp_path, views):
    write_views(tmp_path, views, stanford)
    write_png(tmp_path / "out_00_00_1.0_2.0.png", views[0, 0])
    with pytest.raises(InputError, match="are the same view"):
        read_light_field(tmp_path)


def test_a_zip_bomb_is_refused_before_it_grows(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for row in range(2):
            packed.writestr(f"out_{row:02d}_00_0.0_0.0.png", bytes(archive.TRUSTED_SIZE + 1))
    with pytest.raises(InputError, match="a zip bomb: its .* would grow to"):
        read_light_field(path)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as packed:
        buffer = io.BytesIO()
        np.save(buffer, np.zeros((1, 2, 1 << 11, 1 << 11, 3), "u1"))
        packed.writestr("field.npy", buffer.getvalue())
    with pytest.raises(InputError, match="a zip bomb"):
        read_light_field(tmp_path / "bomb.npz")
    assert npy_views.MAX_FIELD_BYTES > npy_views.MAX_CONVERTED_BYTES


def test_a_bomb_among_views_ends_the_read_and_a_damaged_view_does_not(tmp_path, views, monkeypatch):
    for column in range(2):
        write_png(tmp_path / stanford(0, column), views[0, column])
    decode = light_field._decode_view

    def fail(archive, file, size, words):
        if "out_00_01" in file.name:
            raise InputError(f"{file.name}: {words}")
        return decode(archive, file, size)

    monkeypatch.setattr(light_field, "_decode_view", lambda *args: fail(*args, "cut off"))
    assert "cut off; the other views are shown" in read_light_field(tmp_path).warnings[0]
    monkeypatch.setattr(light_field, "_decode_view", lambda *args: fail(*args, "a zip bomb"))
    with pytest.raises(InputError, match="a zip bomb"):
        read_light_field(tmp_path)


def test_image_whose_header_has_a_giant_size_is_not_decoded(tmp_path, views):
    write_views(tmp_path, views, stanford)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    giant = chunk(b"IHDR", struct.pack(">IIBBBBB", 1 << 17, 1 << 17, 8, 2, 0, 0, 0)) + chunk(b"IDAT", b"")
    (tmp_path / stanford(1, 1)).write_bytes(b"\x89PNG\r\n\x1a\n" + giant)
    (broken, _) = read_light_field(tmp_path).warnings
    assert "131072 x 131072 pixels are more than" in broken


@pytest.mark.parametrize(
    "text, told",
    [
        ("<a><subaperture src='a.png' u='1'/></a>", "needs src, u and v"),
        ("<a><subaperture src='a.png' u='nan' v='1'/></a>", "must be finite"),
        ("<a", "not XML"),
        ('<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>', "XML with entities"),
    ],
)
def test_bad_xml_raises(tmp_path, views, text, told):
    write_png(tmp_path / "a.png", views[0, 0])
    (tmp_path / "field.xml").write_text(text)
    with pytest.raises(InputError, match=told):
        read_light_field(tmp_path)


def test_damaged_zip_raises(tmp_path, views):
    folder = tmp_path / "field"
    folder.mkdir()
    path = zipped(write_views(folder, views, stanford), tmp_path / "field.zip")
    data = bytearray(path.read_bytes())
    (tmp_path / "cut.zip").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="not a zip file"):
        read_light_field(tmp_path / "cut.zip")
    data[200:260] = bytes(60)  # inside of the first member
    (tmp_path / "hurt.zip").write_bytes(data)
    (broken, missing) = read_light_field(tmp_path / "hurt.zip").warnings
    assert stanford(0, 0) in broken and "row 0 column 0" in missing


def test_disparity_is_estimated_and_a_reversed_v_axis_is_flipped(tmp_path, rng):
    disparity = rng.uniform(1.2, 3.0)
    for flip in (1, -1):
        views, _ = smooth_views(rng, 5, 5, 64, disparity, flip)
        field = resolve_v_direction(write_and_read(tmp_path, views))
        assert bool(field.warnings) == (flip == -1), field.warnings
        low, high = disparity_range(field)
        assert low < disparity < high and high - low < 2
        assert abs(disparity_at(field, 30, 33, np.zeros(2), np.linspace(-8, 8, 129)) - disparity) < 0.08


def test_view_weights_of_apertures(tmp_path, rng):
    field = write_and_read(tmp_path, np.zeros((7, 9, 4, 4, 3), "u1"))
    assert view_weights(field, VirtualCamera(aperture=0.0), "disc").nonzero()[0].tolist() == [3 * 9 + 4]
    assert (view_weights(field, VirtualCamera(), "all") == 1).all()
    u, v = rng.uniform(-1, 1, 2)
    weights = view_weights(field, VirtualCamera(u, v, 0.0), "disc")
    place = camera_position(field, u, v)
    assert np.allclose(place, (4 * u, 3 * v))
    tent = np.prod(np.clip(1 - np.abs(field.camera_positions - place), 0, 1), axis=1)  # bilinear over cameras
    assert np.allclose(weights, tent / tent.max(), atol=1e-6)
    for shape, area in (("disc", np.pi), ("square", 4), ("hexagon", 1.5 * 3**0.5), ("ring", np.pi * 0.51)):
        weights = view_weights(field, VirtualCamera(aperture=0.7), shape)
        middle = weights[3 * 9 + 4] if shape != "ring" else None
        radius = 0.7 * 4
        if shape in ("square", "hexagon"):  # the middle camera's weight is 1 of area cameras
            assert weights.sum() == pytest.approx(min(area * radius**2, 2 * radius * 6.0), rel=0.08)
            assert middle == pytest.approx(1, abs=0.03)
        assert weights @ field.camera_positions / weights.sum() == pytest.approx(np.zeros(2), abs=1e-6)


def test_virtual_camera_mouse_input():
    camera = VirtualCamera()
    assert camera.drag(0.1, -0.2) == VirtualCamera(-0.2, 0.4)
    assert camera.drag(9, 9) == VirtualCamera(-1.0, -1.0)
    assert camera.scroll(1).aperture == 1.25 and camera.scroll(99).aperture == 4
    assert camera.scroll(-99).aperture == 0 and 0 < camera.scroll(-99).scroll(1).aperture <= 0.02 + 1e-12
    assert VirtualCamera(0.5, 0.25).click(0.1, -0.3).focus_point == (0.1, -0.3, 0.5, 0.25)


def test_integer_shifts_stay_integer(tmp_path):
    field = write_and_read(tmp_path, np.zeros((9, 9, 64, 64, 3), "u1"))
    records = view_shifts(field, np.ones(81), np.zeros(2), 3.0)
    assert not records["fx"].any() and not records["fy"].any()
    assert records["column"].min() == -12 and records["row"].max() == 12
    assert (
        len(view_shifts(field, np.ones(81), np.zeros(2), 40.0)) == 9
    )  # only neighbors are not shifted out of the picture
