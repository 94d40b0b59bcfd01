"""Temporary folders: only this user's, whoever made one of that name before, and pruned."""

import os
import stat
import subprocess
import sys
import tempfile
import time

import pytest

from renderer import paths
from renderer.export import farm_worker

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="temporary folders belong to their users")
WEEK_AGO = time.time() - paths.UNUSED_SECONDS - 60


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """The path of the user's temporary folder, in a /tmp of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for function in (paths._folder_of_process, paths._prune):
        function.cache_clear()
    yield tmp_path / f"rayfold-{os.getuid()}"
    for function in (paths._folder_of_process, paths._prune):
        function.cache_clear()


def mode(path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_all_processes_of_a_user_share_one_private_folder(shared):
    assert paths.private_folder() == paths.private_folder() == shared and mode(shared) == 0o700
    with paths.temporary_directory("verify") as folder:
        assert os.path.dirname(folder) == str(shared) and os.path.basename(folder).startswith("verify-")
    assert os.listdir(shared) == []


def test_a_folder_that_others_may_enter_is_not_used(shared):
    for kind in (0o777, 0o750, 0o701):
        shared.mkdir()
        shared.chmod(kind)
        folder = paths.private_folder()
        assert folder != shared and mode(folder) == 0o700 and paths.private_folder() == folder
        shared.rmdir()


def test_a_link_or_a_file_in_place_of_the_folder_is_not_used(shared, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    shared.symlink_to(tmp_path / "elsewhere")
    folder = paths.private_folder()
    assert not folder.is_symlink() and folder != shared and os.listdir(tmp_path / "elsewhere") == []
    shared.unlink()
    shared.write_text("")
    assert paths.private_folder() == folder


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(shared):
    shared.mkdir(mode=0o700)
    os.chown(shared, 65534, 65534)
    pairs = farm_worker._store_files({"a.obj": b"v 0 0 0"})
    assert os.listdir(shared) == [] and not pairs[0][1].startswith(f"{shared}/")


def test_the_folder_of_a_process_ends_with_it(shared, tmp_path):
    shared.write_text("")
    code = "from renderer.paths import private_folder; print(private_folder())"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert answer.stdout.startswith(f"{shared}-") and os.listdir(tmp_path) == [shared.name]


def age(*files) -> None:
    for path in files:
        os.utime(path, (WEEK_AGO, WEEK_AGO))


def test_leftovers_of_killed_processes_are_pruned(shared, tmp_path):
    stale, fresh, cached = (shared / name for name in ("verify-a/again.png", "frame-b/f.png", "cache/kernel"))
    of_process, foreign = tmp_path / f"{shared.name}-abcdefgh" / "x", tmp_path / "rayfold-my-pictures" / "x"
    shared.mkdir(mode=0o700)
    for path in (stale, fresh, cached, of_process, foreign):
        path.parent.mkdir(mode=0o700)
        path.write_text("")
    age(stale, stale.parent, cached, cached.parent, of_process, of_process.parent, foreign, foreign.parent)
    used = shared / "farm"
    used.mkdir()
    (used / "old.obj").write_text("")
    age(used / "old.obj")
    paths.private_folder()
    assert not stale.parent.exists() and not of_process.parent.exists() and not (used / "old.obj").exists()
    assert fresh.exists() and cached.exists() and foreign.exists()


def test_files_of_a_farm_are_kept_while_they_are_used(shared):
    ((_, path),) = farm_worker._store_files({"a.obj": b"v 0 0 0"})
    age(path)
    assert farm_worker._store_files({"b/a.obj": b"v 0 0 0"}) == (("b/a.obj", path),)
    paths._prune.cache_clear()
    paths.private_folder()
    assert open(path, "rb").read() == b"v 0 0 0"
