"""Outputs being written: by one process at a time, whole or not at all, through links, never onto pipes."""

import errno
import os
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from renderer.bench.records import RecordFile
from renderer.cdollar.runtime.run_program import run_program
from renderer.errors import DiskFullError, UserError, is_disk_full
from renderer.formats.images import write_exr, write_png
from renderer.paths import ROOT
from renderer.system.outputs import append_line, atomic_write, check_output, claimed, write_text
from tests.children import python_path

HOLD = """import sys
from pathlib import Path
from renderer.system.outputs import atomic_write, claimed
with {held}:
    print("held", flush=True)
    sys.stdin.read()
"""
posix = pytest.mark.skipif(os.name != "posix", reason="needs signals, links or pipes of POSIX")


@contextmanager
def holder(held, *words):
    """A process in the context `held`, an expression; leaves it when its stdin ends."""
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    code = HOLD.format(held=held)
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], env={**os.environ, "PYTHONPATH": python_path()}, **pipes
    )
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 128 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may mount no small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@posix
def test_a_second_process_is_refused_and_told_who_writes(tmp_path, capsys):
    path, link = tmp_path / "a.npy", tmp_path / "link.npy"
    link.symlink_to(path)
    with holder(f"claimed({str(path)!r})", "some words") as process:
        for name in (path, link, tmp_path / "b" / ".." / "a.npy"):
            with pytest.raises(UserError, match=rf"process {process.pid} on .*some words.* is writing it; wait"):
                with claimed(name, seconds=0.05):
                    pytest.fail("claimed twice")
        with pytest.raises(UserError, match=f"process {process.pid}"), atomic_write(path, seconds=0):
            pytest.fail("written by two")
        with claimed(tmp_path / "other.npy", seconds=0), claimed(path, force=True, seconds=0):
            assert f"a.npy: process {process.pid} on" in capsys.readouterr().err
            with atomic_write(path, seconds=0) as temporary:  # it was refused: --force wrote nothing
                temporary.write_bytes(b"forced")
        process.stdin.close()  # it leaves its block and ends
        assert process.wait(60) == 0
    with claimed(path, seconds=0):
        pass


@posix
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_writer_leaves_the_old_file_no_claim_and_no_litter(tmp_path, number):
    path = tmp_path / "a.txt"
    path.write_text("old")
    writer = f"atomic_write({str(path)!r}) as temporary, open(temporary, 'w') as file, claimed({str(path)!r})"
    with holder(writer) as process:
        process.send_signal(number)
        process.wait(60)
    if hasattr(os, "O_TMPFILE"):
        assert os.listdir(tmp_path) == ["a.txt"]
    assert path.read_text() == "old"
    with atomic_write(path, seconds=0) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


@posix
def test_records_are_appended_by_one_process(tmp_path):
    path = tmp_path / "r.jsonl"
    with holder(f"claimed({str(path)!r})") as process:
        with pytest.raises(UserError, match=f"process {process.pid} on"):
            RecordFile(path)
    RecordFile(path).add({"a": 1})
    assert path.read_text() == '{"a": 1}\n'
    for device in filter(os.path.exists, ("/dev/full",)):
        with pytest.raises(DiskFullError, match="/dev/full: cannot be written: No space left"):
            RecordFile(Path(device)).add({"a": 1})


def test_file_systems_without_nameless_files(tmp_path, monkeypatch):
    """A named temporary file takes their place, which is gone after success and after failure."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "a.txt"
    with atomic_write(path) as temporary:
        assert temporary.parent == tmp_path and temporary.suffix == ".txt"
        temporary.write_text("new")
    with pytest.raises(UserError, match="a.txt: cannot be written: reason"), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise OSError("reason")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["a.txt"]


def test_claims_of_one_process_nest(tmp_path):
    path = tmp_path / "a.txt"
    with claimed(path, None, tmp_path, seconds=0), claimed(path, seconds=0):
        with atomic_write(path, seconds=0) as temporary:
            temporary.write_text("whole")
    assert path.read_text() == "whole"


@posix
def test_links_are_written_through_and_other_kinds_refused(tmp_path):
    target, link, far = tmp_path / "target.txt", tmp_path / "link.txt", tmp_path / "far.txt"
    link.symlink_to("target.txt")
    far.symlink_to(link)
    for path, text in ((link, "made"), (far, "replaced")):
        with atomic_write(path) as temporary:
            temporary.write_text(text)
        assert path.is_symlink() and not target.is_symlink() and target.read_text() == text
    append_line(link, " and more")
    assert link.is_symlink() and target.read_text() == "replaced\n and more\n"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/null")
    (tmp_path / "nowhere").symlink_to("no/such/file")
    (tmp_path / "loop").symlink_to("loop")
    before = {path.name: (path.lstat().st_mode, path.lstat().st_ino) for path in tmp_path.iterdir()}
    named = {"pipe": "is a pipe", "device": "is a device", "nowhere": "the folder .*/no/such does not exist"}
    for name, words in {**named, "loop": "symbolic links", ".": "is a folder", "a\0b": "no file can have"}.items():
        with pytest.raises(UserError, match=words), atomic_write(tmp_path / name):
            pytest.fail("must not begin")
        if name != "device":
            with pytest.raises(UserError, match=words):
                append_line(tmp_path / name, "line")
    assert {path.name: (path.lstat().st_mode, path.lstat().st_ino) for path in tmp_path.iterdir()} == before


@posix
def test_modes_are_kept_and_read_only_files_refused(tmp_path):
    path = tmp_path / "a.txt"
    for mode in (None, 0o600, 0o640):
        if mode:
            path.chmod(mode)
        with atomic_write(path) as temporary:
            temporary.write_text("text")
        umask = os.umask(0)
        os.umask(umask)
        assert stat.S_IMODE(path.stat().st_mode) == (mode or 0o666 & ~umask)
    path.chmod(0o400)  # root may write it all the same
    with pytest.raises(UserError, match="Permission denied"):
        check_output(path)
    path.chmod(0o644)
    write_text(path, "private", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_disk_is_told_by_every_kind_of_writer(small_disk):
    big = np.random.default_rng(1).random((200, 200, 4), "f4")

    def write_npy(path):
        with atomic_write(path) as temporary, open(temporary, "wb") as file:
            np.save(file, big)  # it raises an OSError without an errno

    def write_records(path):
        for _ in range(100):
            append_line(path, "x" * 4000)

    writers = {"a.npy": write_npy, "a.exr": lambda path: write_exr(path, {"RGBA": big}), "a.jsonl": write_records}
    writers["a.png"] = lambda path: write_png(path, (big * 255).astype("u1"))
    for name, write in writers.items():
        path = small_disk / name
        path.write_text("old\n")
        with pytest.raises(DiskFullError, match=rf"{name}: cannot be written: No space left"):
            write(path)
        assert path.read_text().startswith("old\n") and os.listdir(small_disk) == [name]
        path.unlink()


@posix
def test_a_limit_of_file_sizes_is_told_as_a_full_disk(tmp_path):
    """By commands: `run` and `solve` exited with 2 and NumPy's words."""
    (tmp_path / "p.cb").write_text("float[] main() { var f(i : 0..599999) = 1.0 * i; return f; }\n")
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "band.npz", ab=rng.random((3, 300_000)) + np.array([[0], [3], [0]]), kl=1, ku=1)
    np.save(tmp_path / "rhs.npy", rng.random(300_000))
    solve = f"solve {tmp_path}/band.npz {tmp_path}/rhs.npy -o {tmp_path}/x.npy"
    for words in (f"run {tmp_path}/p.cb --target numpy -o {tmp_path}/x.npy", solve):
        (tmp_path / "x.npy").write_text("old")
        command = f"ulimit -f 2048; exec {sys.executable} main.py {words} --force"
        answer = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert answer.returncode == 3, answer
        said = [line for line in answer.stderr.splitlines() if "kernels may compile first" not in line]  # after 2 s
        assert said == [f"rayfold: {tmp_path}/x.npy: cannot be written: {os.strerror(errno.EFBIG)}"]
        assert (tmp_path / "x.npy").read_text() == "old"
        assert sorted(os.listdir(tmp_path)) == ["band.npz", "p.cb", "rhs.npy", "x.npy"]
    command = f"ulimit -f 8; exec {sys.executable} main.py run {tmp_path}/p.cb --target numpy"
    answer = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 3 and "no place for compiled kernels" in answer.stderr  # it was 4
    assert is_disk_full(OSError(errno.EDQUOT, "")) and not is_disk_full(OSError(errno.EIO, ""))


def test_long_values_in_messages_are_cut(tmp_path):
    name, program = "x" * 3000, tmp_path / "a.cb"
    program.write_text(f'float main() => sum(file("{name}"));')
    with pytest.raises(UserError) as caught:
        run_program(program, target="numpy")
    assert 160 < len(str(caught.value)) < 1000 and "CS0502" in str(caught.value)
    assert str(UserError(f"-o {name}: no; --in {name}: no")).count("x ... x") == 2
    assert str(UserError(f"-o {name[:159]}: no")) == f"-o {name[:159]}: no"


def test_lines_are_appended_behind_a_torn_one(tmp_path):
    path = tmp_path / "r.jsonl"
    append_line(path, "one")
    path.write_text(path.read_text() + "to")
    append_line(path, "three")
    assert path.read_text() == "one\nto\nthree\n"
