"""Caches of read files: what makes a result anew, counted by the calls of the reader."""

import os
from pathlib import Path

import pytest

from renderer.formats.linked import cached_by_file, remember_links
from renderer.system.files import file_stamp


@pytest.fixture
def reader(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "linked.txt").write_text("b")
    calls: list[tuple[Path, str]] = []

    @cached_by_file(2)
    def read(path: Path, end: str = "") -> str:
        """The text of a file and of the file that it refers to."""
        calls.append((path, end))
        linked = path.parent / "linked.txt"
        remember_links(path, {linked: file_stamp(linked)})
        return path.read_text() + linked.read_text() + end

    return tmp_path / "a.txt", read, calls


def test_a_result_is_kept_by_path_and_arguments(reader):
    path, read, calls = reader
    assert [read(path), read(str(path)), read(path, "!"), read(path, "!")] == ["ab", "ab", "ab!", "ab!"]
    assert calls == [(path, ""), (path, "!")]


@pytest.mark.parametrize("name", ["a.txt", "linked.txt"])
def test_a_changed_file_is_read_again(reader, name):
    path, read, calls = reader
    read(path)
    (path.parent / name).write_text("changed")
    os.utime(path.parent / name, ns=(1, 1))  # whatever the clock's resolution
    assert "changed" in read(path) and "changed" in read(path)
    assert len(calls) == 2


def test_the_oldest_result_is_forgotten_and_errors_are_not_kept(reader):
    path, read, calls = reader
    for end in ("1", "2", "3", "1"):
        read(path, end)
    assert len(calls) == 4
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            read(path.parent / "missing.txt")
    assert len(calls) == 6
