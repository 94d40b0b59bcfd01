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
