"""Commands replace files that this program wrote, by records and marks, and files of others by --force alone."""

import json
import os
import shutil
import stat
import zipfile

import numpy as np
import pytest
from PIL import Image

from renderer.cli import main
from renderer.errors import UserError
from renderer.formats.images import write_exr, write_png
from renderer.formats.npy import MARK_SPACES, write_arrays
from renderer.system import outputs
from renderer.system.outputs import check_own, is_own, write_text
from tests.export.export_helpers import SCENE
from tests.test_outputs import holder

THESIS = b"my thesis, of which there is no copy\n"


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """A folder with a program, a tuple's program, a band system and records, as the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.cb").write_text("float[] main() { var f(i : 0..3) = 1.0 * i; return f; }\n")
    (tmp_path / "two.cb").write_text("float, int main() { return 1.5, 2; }\n")
    np.savez("band.npz", ab=np.array([[0.0, 1, 1], [4, 4, 4], [1, 1, 0]]), kl=1, ku=1)
    np.save("rhs.npy", np.ones(3))
    return tmp_path


COMMANDS = {
    "run p.cb --target numpy -o a.npy": ["a.npy"],
    "run p.cb --target numpy -o a.csv": ["a.csv"],
    "run p.cb --target numpy --graph g.svg": ["g.svg"],
    "solve band.npz rhs.npy -o x.npy --certified y.npy": ["x.npy", "y.npy"],
}
REFUSED = {
    "export cornell -o text.png": "text.png",
    "export cornell -o t.exr": "t.exr",
    "export cornell -o t.gif --frames 1-2": "t.gif",
    "export cornell -o t.png --dry-run": "t.png",
    "gallery mandelbrot -o .": "mandelbrot.png",
    "lesson stencil --html .": "stencil.html",
    "demo -o demo.png": "demo.png",
    "bench sample --case mandelbrot --picture p.npy": "p.npy",
}


@pytest.mark.parametrize("words", COMMANDS)
def test_a_commands_own_file_is_replaced_and_anothers_by_force_alone(inputs, words, capsys):
    """`run -o` and `solve -o` replaced a text, and arrays of their user, without a word."""
    files = [inputs / name for name in COMMANDS[words]]
    assert main(words.split()) == 0 and all(map(is_own, files))
    assert main(words.split()) == 0
    for file in files:
        for foreign in (THESIS, b"Rayfold", b"PK" + THESIS):
            file.write_bytes(foreign)
            capsys.readouterr()
            assert main(words.split()) == 2 and file.read_bytes() == foreign
            output = capsys.readouterr()
            assert output.err == f"rayfold: {file.name}: holds what Rayfold did not write; --force replaces it\n"
            assert not output.out
        file.write_bytes(b"")  # as mktemp makes it
        assert main(words.split()) == 0
        file.write_bytes(THESIS)
        assert main([*words.split(), "--force"]) == 0 and file.read_bytes() != THESIS


@pytest.mark.slow
def test_an_output_that_another_process_writes_is_refused_by_each_command(inputs, capsys):
    with holder("claimed('a.npy', 'x.npy', 'mandelbrot.png')") as process:
        for words in ("run p.cb --target numpy -o a.npy", "solve band.npz rhs.npy -o x.npy", "gallery mandelbrot -o ."):
            assert main(words.split()) == 2
            assert f"process {process.pid} on " in capsys.readouterr().err
        assert main(["run", "p.cb", "--target", "numpy", "-o", "a.npy", "--force"]) == 0
    assert not (inputs / "x.npy").exists() and not (inputs / "mandelbrot.png").exists()


@pytest.mark.parametrize("words", REFUSED)
def test_a_text_stays_where_a_command_would_write(inputs, words, capsys):
    file = inputs / REFUSED[words]
    file.write_bytes(THESIS)
    assert main(words.split()) == 2 and file.read_bytes() == THESIS
    assert f"{file.name}: holds what Rayfold did not write; --force replaces it\n" in capsys.readouterr().err


def test_a_link_is_written_through_only_to_a_file_that_may_be_replaced(inputs, capsys):
    """A planted link had a file outside the folder replaced, and the message named the link alone."""
    thesis = inputs / "thesis.txt"
    thesis.write_bytes(THESIS)
    os.symlink(thesis, "a.npy")
    words = ["run", "p.cb", "--target", "numpy", "-o", "a.npy"]
    assert main(words) == 2 and thesis.read_bytes() == THESIS
    sentence = f"rayfold: a.npy: is a link to {thesis}, which holds what Rayfold did not write; --force replaces it\n"
    assert capsys.readouterr().err == sentence
    thesis.unlink()
    assert main(words) == 0 and np.array_equal(np.load(thesis), [0, 1, 2])
    assert f"rayfold: a.npy: is a link to {thesis}, which is written\n" in capsys.readouterr().err
    assert os.path.islink("a.npy")


@pytest.mark.filterwarnings("ignore:Stored array in format 2.0")
def test_an_array_of_the_user_stays_and_ours_is_read_by_numpy(tmp_path):
    """NumPy itself is the witness: what it writes is not ours, and what is ours it reads, whatever shape and type."""
    record = np.dtype([("größe", "f4"), ("n", "i4", (2,))])
    arrays = [np.arange(6.0), np.float32(3), np.zeros((0, 2)), np.asfortranarray(np.eye(3)[:2]), np.ones(2, record)]
    arrays += [np.zeros(1, [(f"field_{index}" * 9, "f8") for index in range(900)])]  # a header above 64 KiB
    for index, array in enumerate(arrays):
        path = tmp_path / f"{index}.npy"
        np.save(path, array)
        assert not is_own(path)
        write_arrays(path, np.asarray(array))
        again = np.load(path, max_header_size=1 << 20)
        assert is_own(path) and again.dtype == array.dtype and again.shape == np.shape(array)
        assert again.tobytes() == np.asarray(array).tobytes()
        assert np.isfortran(again) == np.isfortran(np.asarray(array))
    assert 84 < MARK_SPACES  # NumPy ends a header by at most 20 and 64 spaces
    np.savez(tmp_path / "two.npz", a=np.arange(3), b=1)
    assert not is_own(tmp_path / "two.npz")
    write_arrays(tmp_path / "two.npz", {"a": np.arange(3), "b": np.array(1)})
    with np.load(tmp_path / "two.npz") as found:
        assert is_own(tmp_path / "two.npz") and sorted(found) == ["a", "b"] and found["a"].tolist() == [0, 1, 2]


def test_marks_of_pictures_and_pages(tmp_path):
    page = tmp_path / "page.html"
    write_text(page, "<p>ours</p>\n", is_sealed=True)
    assert is_own(page)
    page.write_text(page.read_text().replace("ours", "mine"))  # edited since
    assert not is_own(page)
    write_text(page, "", is_sealed=True)
    assert is_own(page)
    write_png(tmp_path / "a.png", np.zeros((2, 2, 3), "u1"))
    write_exr(tmp_path / "a.exr", {"RGBA": np.zeros((2, 2, 4), "f4")})
    assert is_own(tmp_path / "a.png") and is_own(tmp_path / "a.exr")
    Image.open(tmp_path / "a.png").save(tmp_path / "b.png")
    Image.new("RGB", (2, 2)).save(tmp_path / "b.gif")
    assert not is_own(tmp_path / "b.png") and not is_own(tmp_path / "b.gif")
    assert is_own(tmp_path / "none") and is_own(tmp_path)  # no file: nothing to lose
    badge = {"schemaVersion": 1, "label": "bench", "message": "", "color": ""}
    (tmp_path / "badge.json").write_text(json.dumps(badge))
    assert is_own(tmp_path / "badge.json")


def _first_value(path):
    array = np.load(path, mmap_mode="r+")
    array[0] = 7.0
    array.flush()


def _last_byte(path):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def _member(path):
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", THESIS)


CHANGES = {"a.npy": _first_value, "a.exr": _last_byte, "a.npz": _member}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_with_a_mark_that_was_changed_since_takes_force(tmp_path, monkeypatch, name):
    """These three were replaced without a word: their marks stay when their content changes."""
    path = tmp_path / name

    def write():
        if path.suffix == ".exr":
            write_exr(path, {"RGBA": np.zeros((2, 2, 4), "f4")})
        else:
            write_arrays(path, np.arange(3.0) if path.suffix == ".npy" else {"a": np.ones(2)})

    write()
    before = path.read_bytes()
    CHANGES[name](path)
    with pytest.raises(UserError, match=f"{name}: was changed since Rayfold wrote it; --force replaces it"):
        check_own(path)
    path.write_bytes(before)
    assert is_own(path)
    write()
    monkeypatch.setattr(outputs, "_record_file", lambda: -1)  # another machine, or no cache folder: the mark decides
    CHANGES[name](path)
    assert is_own(path)


def test_records_of_outputs(tmp_path, monkeypatch):
    """A record holds the last two contents: a process killed between record and file leaves the one before."""
    monkeypatch.setattr(outputs, "MAX_SEALED_BYTES", 99)  # above it size and time of change stand for the content
    path, link = tmp_path / "a.csv", tmp_path / "link.csv"
    link.symlink_to(path)
    for text in ("1\n", "2\n", "3\n" * 50):
        assert is_own(path) and is_own(link)
        write_text(path, text)
    monkeypatch.setattr(outputs.os, "replace", lambda *_: pytest.fail("killed"))
    with pytest.raises(pytest.fail.Exception):
        write_text(path, "4\n")
    assert is_own(path) and path.read_text() == "3\n" * 50
    os.utime(path, ns=(0, 0))
    assert not is_own(path)
    path.write_text("2\n")  # two writes ago
    assert not is_own(path) and is_own(tmp_path / "none")
    assert os.name != "posix" or stat.S_IMODE(os.fstat(outputs._record_file()).st_mode) == 0o600


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".mp4", ".webm", ".mkv", ".gif"])
def test_films_bear_the_mark(tmp_path, suffix):
    av = pytest.importorskip("av", reason="films need PyAV")
    scene, film = tmp_path / "julia.toml", tmp_path / f"film{suffix}"
    scene.write_text(SCENE)
    words = ["export", str(scene), "-o", str(film), "--frames", "1-2", "--size", "32x32"]
    assert main(words) == 0 and is_own(film) and main(words) == 0
    with av.open(str(film)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 2
    shutil.copy(film, tmp_path / "copy")
    assert is_own(tmp_path / "copy")
