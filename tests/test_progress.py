"""Progress into a pipe: a line every ten seconds for commands, nothing for scripts."""

import io
import sys
import time

import pytest

from renderer.system import progress
from renderer.system.progress import Progress


def test_commands_write_lines_into_a_pipe_and_scripts_none(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = ["1 of 9 in 4 s, about 32 s left", "4 of 9 in 16 s, about 20 s left", "7 of 9 in 28 s, about 8 s left"]
    for writes, wanted in ((False, ""), (True, "".join(f"rayfold: box: {line}\n" for line in lines))):
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
    lines = [
        "0.125 of 2 in 4 s, about 60 s left",
        "0.5 of 2 in 16 s, about 48 s left",
        "0.875 of 2 in 28 s, about 36 s left",
    ]
    lines.append("1.25 of 2 in 40 s, about 24 s left")
    assert capsys.readouterr().err == "".join(f"rayfold: box: {line}\n" for line in lines)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_steps_of_an_unknown_number_are_counted(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0)
    monkeypatch.setattr(Progress, "writes_lines", True)
    with Progress(0, "loops") as steps:
        steps.advance(3)
    lines = capsys.readouterr().err.splitlines()
    assert "rayfold: loops: 3 in 0 s" in lines and " of " not in "".join(lines)


@pytest.mark.parametrize(("is_terminal", "reported"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_call_that_is_silent_says_so(monkeypatch, is_terminal, reported):
    """Scripts: a bar in a terminal, a line where progress= is given, nothing else; before any step has ended."""
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    stderr = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    calls, stops = [], []
    report = lambda *step: calls.append(step) or len(calls) < 2  # noqa: E731
    with Progress(9, "box", report if reported else None, lambda: stops.append(0)) as steps:
        end = time.monotonic() + 20
        while (is_terminal or reported) and "compile first" not in stderr.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        steps.advance()
        steps.advance(2)
    text = stderr.getvalue()
    assert calls == ([(1, 9), (3, 9)] if reported else []) and len(stops) == reported
    if reported:
        assert text == "rayfold: box: 0 of 9 in 0 s; kernels may compile first (`rayfold warm` compiles ahead)\n"
    else:
        assert ("box: kernels may compile" in text and "3/9" in text) if is_terminal else not text
