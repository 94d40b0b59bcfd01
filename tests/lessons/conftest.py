"""A small lesson of one panel, as a teacher would write it."""

import pytest

TOML = """title = "A small lesson"
paper = "A paper of 1999"
summary = "Two steps."

[panels.set]
scene = "set.toml"
samples = 1

[[steps]]
title = "First"
show = ["set"]
set.set = { max_iterations = 30 }

[steps.question]
ask = "Which?"
answers = ["this", "that <b>"]
right = 1
because = "It is & was."

[[steps]]
title = "Second"
set.set = { "view.height" = 1.5 }

[steps.measure]
kind = "frame_rate"
panel = "set"
key = "max_iterations"
values = [10, 20]
size = [32, 24]

[steps.paper]
source = "Table 1"
x = [10, 20]
x_name = "iterations"
unit = "frames/s"
series = { then = [30.0, 20.0] }
"""
WORDS = """# A small lesson

Two words of *introduction*.

## First

Text with `code` and a [link](https://example.org/a).

- one
- two

## Second

| a | b |
| --- | --- |
| 1 | 2 |

```
a block
```
"""
SCENE = """title = "set"
picture = "fractal"
size = [64, 48]
settings = { max_iterations = 40, samples = 2 }
"""


@pytest.fixture
def folder(tmp_path):
    """The folder of the lesson; tests change its files."""
    path = tmp_path / "small"
    path.mkdir()
    for name, text in (("lesson.toml", TOML), ("lesson.md", WORDS), ("set.toml", SCENE)):
        (path / name).write_text(text)
    return path
