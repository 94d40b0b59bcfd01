"""Three kills of tests/kills.py at random moments; `python -m tests.kills` makes as many as are wanted."""

import os
import random
import subprocess
import sys

import pytest

from tests import kills
from tests.bench.helpers import in_git

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals and process groups")
QUICK = ("still", "film", "session")


@pytest.mark.parametrize(
    "name", [pytest.param(kind.name, marks=[] if kind.name in QUICK else pytest.mark.slow) for kind in kills.KINDS]
)
def test_a_killed_command_goes_on_to_the_same_end(name, tmp_path, rng):
    (kind,) = [kind for kind in kills.KINDS if kind.name == name]
    if name == "film":
        pytest.importorskip("av", reason="films need av")
    if name == "bench ab" and not in_git():
        pytest.skip("an A/B run needs the git history, which this copy has not")
    kills.measure(kind, tmp_path / "reference")
    row = kills.kill(kind, kills.prepare(tmp_path / "killed", kind), random.Random(int(rng.integers(1 << 30))))
    print(row)


def test_a_loss_is_found(tmp_path):
    """The witness works: a torn frame, and frames that are drawn again."""
    (kind,) = [kind for kind in kills.KINDS if kind.name == "frames"]
    kills.measure(kind, tmp_path / "reference")
    folder = tmp_path / "reference"
    (folder / "f_03.png").write_bytes(b"torn")
    with pytest.raises(AssertionError, match="f_03.png is torn"):
        kills.check_files(kind, folder)
    forgetful = kills.Kind("frames", lambda folder: ["export", *kind.words(folder)[1:], "--overwrite"], "f_*.png")
    forgetful.reference = kind.reference
    (folder / "f_03.png").write_bytes(kind.reference["f_03.png"])
    with pytest.raises(AssertionError, match="was done and drawn again"):
        kills.check_files(forgetful, folder)


def test_a_process_that_is_left_is_found(monkeypatch):
    monkeypatch.setattr(kills, "ORPHAN_SECONDS", 0.2)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        with pytest.raises(AssertionError, match="is left"):
            kills.wait_for_group(sleeper.pid)
    finally:
        sleeper.kill()
        sleeper.wait()
