"""Variations that a user adds: files in the grammar of shaders/flames/variation.h, named by RAYFOLD_VARIATIONS.

This environment variable names a file or a folder, whose *.h files are read in the order of their names. catalog.py
adds their variations to its table. The files are code that runs on the device (assets/guides/trust.md).
"""

import os
import re
from collections.abc import Container, Mapping
from pathlib import Path

from renderer.errors import UserError
from renderer.system.files import read_text

VARIABLE = "RAYFOLD_VARIATIONS"
MAX_FILES = 256
MAX_BYTES = 1 << 20  # limit of one file
MAX_PARAMETERS = 64  # limit of one variation
# The kinds of variations in a file; shaders/flames/variation.h describes them.
KINDS = ("VARIATION", "VARIATION_3D", "VARIATION_Z", "REPLACING", "REPLACING_3D", "PRE", "POST_3D", "STAMP",
         "PALETTE_STAMP", "PIXEL_STAMP", "ESCAPE", "SOLID")  # fmt: skip
# The begin of a variation's head, `PRE(`; also of a misspelled one, `PRE_3D(`, which check_user_file() refuses.
HEAD = rf"(?:{'|'.join(sorted({kind.partition('_')[0] for kind in KINDS}))})\w*\("
HEAD_RE = re.compile(rf"^{HEAD}(\w*)", re.MULTILINE)


def user_files() -> list[Path]:
    """The files that RAYFOLD_VARIATIONS names; UserError if it names none."""
    named = os.environ.get(VARIABLE)
    if not named:
        return []
    path = Path(named)
    if path.is_dir():
        files = sorted(path.glob("*.h"))
        if len(files) > MAX_FILES:
            raise UserError(f"{VARIABLE}: {path} has {len(files)} files of variations; at most {MAX_FILES} are read")
        return files
    if not path.is_file():
        raise UserError(f"{VARIABLE} is {named}; it must be a file or a folder of .h files")
    return [path]


def read_user_file(path: Path) -> str:
    """The text of a file of variations; UserError if it has preprocessor lines."""
    text = read_text(path, MAX_BYTES)
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            raise UserError(f"{path}:{number}: preprocessor lines are not allowed in variations")
    return text.replace("\r\n", "\n").rstrip("\n") + "\n"


def check_user_file(path: Path, text: str, parameter_counts: Mapping[str, int], known: Container[str]) -> None:
    """Raise UserError for a head that the grammar does not accept, a name in `known`, or too many parameters.

    `parameter_counts`: name -> number of parameters, of the variations that were parsed from `text`.
    """
    heads = [(match[1], text.count("\n", 0, match.start()) + 1) for match in HEAD_RE.finditer(text)]
    if not heads:
        raise UserError(f"{path}: has no variation; one begins with VARIATION(name, parameter = default) {{")
    for name, line in heads:
        if name not in parameter_counts:
            raise UserError(
                f"{path}:{line}: variation {name!r} is not of the form VARIATION(name, parameter = default) {{ ... }} "
                "with its closing brace at the start of a line"
            )
        if name in known or name.startswith(("pre_", "post_")):
            raise UserError(f"{path}:{line}: a variation cannot be called {name!r}; that name is taken")
        if parameter_counts[name] > MAX_PARAMETERS:
            raise UserError(f"{path}:{line}: variation {name!r} has more than {MAX_PARAMETERS} parameters")
