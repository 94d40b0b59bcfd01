"""Input files, and numbers and texts of strangers: regular files only, bounded sizes, messages of one short line."""

import os
import socket
import time
import tracemalloc
from pathlib import Path

import pytest

from renderer.errors import InputError, UserError
from renderer.export.frames import MAX_FRAMES, frame_numbers
from renderer.export.run import print_ignored
from renderer.paths import ROOT
from renderer.plain import (
    MAX_IGNORED,
    MAX_MESSAGE,
    format_ignored,
    format_value,
    is_finite_number,
    parse_whole,
    printable,
    to_float,
)
from renderer.system import arguments, files
from renderer.system.files import (
    MAX_KEY_NAMES,
    open_input,
    parse_json,
    parse_toml,
    read_file,
    read_json_lines,
    read_toml,
)


def make(kind, path):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind == "No such file":
        path.symlink_to("nowhere")
    elif kind == "Too many levels":
        path.symlink_to(path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "socket", "No such file", "Too many levels"])
def test_only_regular_files_are_opened_and_at_once(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    path = tmp_path.relative_to(tmp_path) / "a.toml"
    make(kind, path)
    began = time.monotonic()
    for read in (open_input, read_file, read_toml, read_json_lines):
        with pytest.raises(InputError, match=f"a.toml: .*{kind}"):
            read(path)
    assert time.monotonic() - began < 2


@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="no /proc here")
def test_files_that_the_system_makes_as_they_are_read_are_refused(tmp_path):
    """Regular files by their kind, of 0 bytes by their size: some, as /proc/kmsg, never end or make readers wait."""
    path = tmp_path / "a.toml"
    path.symlink_to("/proc/version")
    assert Path("/proc/version").read_text() and path.is_file()
    for read in (open_input, read_file, read_toml, read_json_lines):
        with pytest.raises(InputError, match="a.toml: is made by the system as it is read; a file on a disk is wanted"):
            read(path)
    (tmp_path / "empty.toml").write_bytes(b"")
    assert read_toml(tmp_path / "empty.toml") == {}


def test_paths_with_loops_of_links_resolve_and_no_reader_asks_pathlib(tmp_path):
    """Path.resolve() raises RuntimeError for them before Python 3.13, which no reader expects."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert files.resolve(tmp_path / "a" / "c").name == "c"
    own = {"renderer/paths.py", "renderer/gpu/kernel_source.py", "renderer/bench/machine.py"}  # of this program's files
    calls = {str(p.relative_to(ROOT)) for p in (ROOT / "renderer").rglob("*.py") if ".resolve()" in p.read_text()}
    assert calls - own == {"renderer/system/files.py"}  # its docstring


@pytest.mark.parametrize("name", ["a\0b", "a\udc80\ud800b", "x" * 300])
def test_names_that_no_file_can_have_are_input_errors(tmp_path, name):
    with pytest.raises(InputError) as caught:
        open_input(tmp_path / name)
    assert str(caught.value).isprintable()


def test_files_larger_than_their_limit_are_refused_before_they_are_read(tmp_path):
    with open(tmp_path / "a", "wb") as file:
        file.truncate(1 << 40)  # sparse
    with pytest.raises(InputError, match="larger than the 2 MiB"):
        read_file(tmp_path / "a")
    os.truncate(tmp_path / "a", 2 << 20)
    assert len(read_file(tmp_path / "a")) == 2 << 20


def test_toml_that_exhausts_the_parser_is_a_value_error():
    assert parse_toml("a.b.c = [0.5" + ", 0.5" * 500 + "]")["a"]["b"]["c"] == [0.5] * 501
    assert parse_toml(f"# {'.' * 99}\n{'a.' * (MAX_KEY_NAMES - 1)}a = 1")
    for key in ("a." * 120_000, '"\\"".' * 20_000, "'\"' . " * 20_000, f'"{"a" * 99}".' * 1000):
        began = time.process_time()
        with pytest.raises(ValueError, match="more than 32 names in line 2"):
            parse_toml(f"b = 1\n{key}a = 1")
        assert time.process_time() - began < 1
    with pytest.raises(ValueError, match="4300 digits"):
        parse_toml("a = " + "9" * 5000)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_toml("a = " + "[" * 50_000)


def test_json_that_exhausts_the_parser_is_a_value_error():
    for text, words in (("[" * 100_000, "too deeply"), ("9" * 5000, "4300 digits"), ("{", "line 1"), (b"\xff", "utf")):
        with pytest.raises(ValueError, match=words):
            parse_json(text)
    assert parse_json('{"a": [1e999]}')["a"] == [float("inf")]


@pytest.mark.parametrize(
    "text", [r'["\udcff"]', rb'{"\uD800": 1}', '["\\ud800"]'.encode("utf-16"), b'["\xed\xa0\x80"]']
)
def test_json_with_half_of_a_surrogate_pair_is_a_value_error(text):
    """No window and no file can show it: a recipe, a session or a model with one was an internal error each frame."""
    with pytest.raises(ValueError, match="half of a surrogate pair|can't decode"):
        parse_json(text)
    assert parse_json(r'["\ud83d\ude00 \\ud800"]') == ["\U0001f600 \\ud800"]


def test_errors_are_one_short_line_whatever_they_repeat():
    text = str(UserError("begin " + "\x1b[2J\n\0\u202e\ud800" * 5000 + " end"))
    assert text.isprintable() and len(text) <= MAX_MESSAGE and text.startswith("begin ") and text.endswith(" end")
    assert "\\x1b[2J\\n\\x00\\u202e\\ud800" in text
    assert str(UserError("a sentence, é and 日本")) == "a sentence, é and 日本"
    assert printable("a\nb\tc", keep="\n") == "a\nb\\tc"
    assert len(printable("x" * 10_000, 60)) == 60


def test_numbers_of_any_length_have_a_float_and_a_text():
    large = int("f" * 4000, 16)  # str() refuses it
    assert to_float(large) == float("inf") and to_float(-large) == -float("inf") and to_float(3) == 3.0
    assert format_value(large) == "an integer too large to show" and format_value([1, "a"]) == '[1, "a"]'
    values = (1, 1.5, -(10**300), 10**400, float("nan"), True, "1", None)
    assert [is_finite_number(value) for value in values] == [True] * 3 + [False] * 5


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "\u00b2", "\u0661", "9" * 5000, "11", "0x1", "1.0"])
def test_whole_numbers_are_ascii_digits_in_their_range(text):
    assert parse_whole(text, 0, 10) is None


def test_whole_numbers_of_few_digits_are_read():
    assert [parse_whole(text, 0, 10) for text in ("0", "7", "010", "00010")] == [0, 7, 10, 10]


OPTIONS = {
    "size": (arguments.size, "640x480", (640, 480)), "grid": (arguments.grid, "5x3", (5, 3)),
    "port": (arguments.port, "0", 0), "positive": (arguments.positive, "2147483647", 2**31 - 1),
    "seed": (arguments.seed, "7", 7), "seconds": (arguments.seconds, "-1e9", -1e9),
    "duration": (arguments.duration, "0.5", 0.5), "fraction": (arguments.fraction, "2%", 0.02),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_have_maxima_and_short_messages(name):
    parse, good, value = OPTIONS[name]
    assert parse(good) == value
    for bad in ("9" * 5000, "9" * 5000 + "x9", "\u00b2x\u00b2", "1e308", "nan", "\x1b[2J", "2147483648x2147483648"):
        with pytest.raises(arguments.argparse.ArgumentTypeError) as caught:
            parse(bad)
        assert len(str(caught.value)) < 200 and str(caught.value).isprintable()


def test_the_frames_of_all_ranges_have_a_maximum():
    assert frame_numbers("1-3, 7,2") == [1, 2, 3, 7]
    whole = frame_numbers(f"1-{MAX_FRAMES // 2},{MAX_FRAMES}-{MAX_FRAMES // 2 * 3 - 1}")
    assert len(whole) == MAX_FRAMES
    began = time.process_time()
    for text in (",".join(f"{k}000000-{k}999999" for k in range(1, 200)), "0-999999999", "1-1000001"):
        with pytest.raises(UserError, match="more than the 1000000 frames"):
            frame_numbers(text)
    for text in ("\u0661-2", "2-1", "1-", "-1", "1-2-3", "9" * 5000, ""):
        with pytest.raises(UserError, match="must be numbers and ranges"):
            frame_numbers(text)
    with pytest.raises(UserError, match="up to 999999999"):
        frame_numbers("1-99999999999999999")
    assert time.process_time() - began < 3


def test_ignored_things_are_told_by_name_and_count(capsys):
    """The most frequent first, singular for one, bounded in length and number."""
    phrases = format_ignored({"KHR_x materials": 1, "LINES primitives": 3, "a b\n" + "c" * 900 + " meshes": 2})
    assert phrases[::2] == ["LINES (3 primitives)", "KHR_x (1 material)"] and format_ignored({"scenes": 1}) == [
        "1 scene"
    ]
    assert phrases[1].startswith("a b\\nccc") and len(phrases[1]) < 140
    assert format_ignored({"x vertices": 1, "y entries": 1, "z meshes": 1}) == [
        "x (1 vertex)",
        "y (1 entry)",
        "z (1 mesh)",
    ]
    many = format_ignored({f"{n} nodes": 1 for n in range(MAX_IGNORED + 5)})
    assert len(many) == MAX_IGNORED + 1 and many[-1] == "5 further names"
    print_ignored(Path("a.flame"), [f"unknown attribute {phrase}" for phrase in many])
    line = capsys.readouterr().err
    assert len(line) <= MAX_MESSAGE + 1 and line.startswith("rayfold: a.flame: ignored: ") and many[-1] in line


def test_reading_reserves_the_size_of_the_file_and_not_what_is_allowed(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(256)) * 400)
    tracemalloc.start()
    try:
        data = read_file(path, 1 << 30)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data == path.read_bytes() and peak < 400_000


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end_or_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    path.write_bytes(b"0123456789")
    monkeypatch.setattr(files, "file_size", lambda file: 4)  # as it was
    assert read_file(path, 10) == b"0123456789"
    with pytest.raises(InputError, match="larger than"):
        read_file(path, 9)
