"""Progress into a pipe: a line every ten seconds for commands, nothing for scripts."""

from renderer.system import progress
from renderer.system.progress import Progress


def test_commands_write_lines_into_a_pipe_and_scripts_none(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for writes, wanted in ((False, ""), (True, "rayfold: box: 3 of 9 in 12 s\nrayfold: box: 6 of 9 in 24 s\n")):
        monkeypatch.setattr(Progress, "writes_lines", writes)
        with Progress(9, "box") as steps:
            for _ in range(8):
                now[0] += 4.0
                steps.advance()
        assert capsys.readouterr().err == wanted
    with Progress(2, "box") as steps:
        steps.parts = 8
        for _ in range(11):
            now[0] += 4.0
            steps.advance()
    lines = "rayfold: box: 0.375 of 2 in 12 s\nrayfold: box: 0.75 of 2 in 24 s\nrayfold: box: 1.125 of 2 in 36 s\n"
    assert capsys.readouterr().err == lines
