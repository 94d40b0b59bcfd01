"""What the tests of exports and farms have in common: a small film, and the command in a process of its own."""

import subprocess
import sys

from renderer.paths import ROOT

SCENE = """title = "Julia in motion"
picture = "fractal"
size = [70, 46]
[settings]
kind = "julia"
samples = 2
max_iterations = 60
[animation]
duration = 0.25
[[animation.keyframes]]
time = 0.0
set = { "color_offset" = 0.0 }
[[animation.keyframes]]
time = 1.0
set = { "color_offset" = 1.0 }
"""


def export(*words, code=0, **more):
    command = [sys.executable, str(ROOT / "main.py"), "export", *map(str, words)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, **more)
    assert answer.returncode == code, answer
    assert "Traceback" not in answer.stderr
    return answer
