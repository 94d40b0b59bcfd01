"""Texts that stand for a file's own: what an editor shows and has not saved yet, and a copy of a file of the program.

The window's code panel writes them; read_file() and the shaders' reader ask text_of().
"""

from pathlib import Path

texts: dict[Path, str] = {}  # unsaved texts by their file
copies: dict[Path, Path] = {}  # files of the program -> the user's copies that are read in their place


def text_of(path: Path | str) -> str | None:
    """The unsaved text of a file; None if its readers read the file."""
    return texts.get(Path(path)) if texts else None


def file_of(path: Path) -> Path:
    """The file that is read for a file of the program: the user's copy, if there is one."""
    return copies.get(path, path)
