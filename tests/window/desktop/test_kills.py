"""Windows that are killed while they are edited lose nothing that was noted long ago."""

from tests.window.desktop.kills import kills


def test_killed_windows_are_restored():
    """A quick share of `python -m tests.window.desktop.kills`; a loaded machine may take long over a frame."""
    rows = kills(1, 3, within=60.0)
    assert not any("lost" in row for row in rows), rows
