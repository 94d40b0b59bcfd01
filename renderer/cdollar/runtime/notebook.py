"""The cell magic `%%cdollar` of notebooks: runs a program and shows its picture or its value under the cell."""

import re
from collections.abc import Callable
from typing import Protocol

from renderer.cdollar.frontend.diagnostics import ArgumentError, ProgramError
from renderer.cdollar.runtime.array import Array, Results
from renderer.cdollar.runtime.evaluate import is_picture
from renderer.cdollar.runtime.function import Function
from renderer.cdollar.runtime.pictures import srgb_pixels
from renderer.errors import UserError
from renderer.formats.images import png_bytes

ARGUMENT = re.compile(r"\s*(\w+)=")
PICTURE_SIDE = 512  # pixels, unless width= and height= say otherwise


class Shell(Protocol):
    """IPython's InteractiveShell."""

    user_ns: dict[str, object]  # the notebook's variables

    def register_magic_function(self, function: Callable[..., object], kind: str, name: str) -> None:
        """Add a magic."""


class Picture:
    """A picture that notebooks show."""

    def __init__(self, png: bytes) -> None:
        self._png = png

    def _repr_png_(self) -> bytes:
        return self._png


def run_cell(line: str, cell: str, names: dict[str, object]) -> Array | Results | Picture:
    """The value of a cell's program, or its Picture; `line` holds NAME=EXPRESSION arguments in terms of `names`.

    `target=` and `strict=` are as in cdollar.function(). Raises UserError.
    """
    given = {name: eval(text, names) for name, text in split_arguments(line).items()}
    program = Function(cell, given.pop("target", None), given.pop("strict", False), "main")
    if not is_picture(program.declaration) or {"x", "y"} & given.keys():
        return program(**given)
    width, height = (given.pop(name, PICTURE_SIDE) for name in ("width", "height"))
    result = program.picture(width, height, **given)
    return Picture(png_bytes(srgb_pixels(result.numpy(), result.result)))


def split_arguments(line: str) -> dict[str, str]:
    """The texts of `n=5 a=f(1, 2)` by name: a text ends where the next NAME= outside of brackets begins."""
    starts, depth, position = [], 0, 0
    while position < len(line):
        match = ARGUMENT.match(line, position) if depth == 0 and (not position or line[position].isspace()) else None
        if match and not line[match.end() :].startswith("="):  # `a==b` is part of an expression
            starts.append((position, match.end(), match[1]))
            position = match.end()
            continue
        depth += (line[position] in "([{") - (line[position] in ")]}")
        position += 1
    if line[: starts[0][0] if starts else None].strip():
        raise ArgumentError(f"%%cdollar {line.strip()}: arguments are NAME=EXPRESSION")
    ends = [start for start, _, _ in [*starts, (len(line), 0, "")][1:]]
    return {name: line[first:end].strip() for (_, first, name), end in zip(starts, ends, strict=True)}


def register_magic(shell: Shell) -> None:
    """Register the magic; IPython calls this for `%load_ext renderer.cdollar`."""

    def cdollar(line: str, cell: str) -> Array | Results | Picture | None:
        try:
            return run_cell(line, cell, shell.user_ns)
        except (UserError, ProgramError) as error:
            print(error)
            return None

    shell.register_magic_function(cdollar, "cell", "cdollar")
