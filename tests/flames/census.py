"""How much of a folder's .flame files is drawn: `python -m tests.flames.census FOLDER...`.

A flame is whole (everything that changes the picture is drawn), partly drawn (with the list of what is ignored) or
refused. Counts are of <flame> elements; a file that cannot be read counts as one refused flame.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from renderer.errors import InputError
from renderer.flames.xml.read import FileEntry, read_library


@dataclass
class Census:
    """Counts of flames; `ignored` and `refusals`: label -> number of flames that have it."""

    whole: int = 0
    partly: int = 0
    refused: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def add(self, entry: FileEntry) -> None:
        """Count one flame."""
        if entry.keyframe is None:
            self.refused += 1
            self.refusals[entry.error.partition(": ")[2]] += 1
        elif entry.ignored:
            self.partly += 1
            self.ignored.update(entry.ignored.keys())
        else:
            self.whole += 1

    def __str__(self) -> str:
        total = max(self.whole + self.partly + self.refused, 1)
        parts = [f"{n} {name} ({n / total:.1%})" for name, n in self._counts()]
        rows = [f"  {n:5} {label}" for label, n in (self.ignored + self.refusals).most_common()]
        return "\n".join([f"{total} flames: " + ", ".join(parts), *rows])

    def _counts(self) -> Iterator[tuple[str, int]]:
        yield from (("whole", self.whole), ("partly", self.partly), ("refused", self.refused))


def count(folder: Path) -> Census:
    """The census of all .flame, .flam3 and .xml files below a folder, or of one file."""
    census = Census()
    paths = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
    for path in paths:
        if path.suffix in (".flame", ".flam3", ".xml"):
            try:
                entries, _ = read_library(path)
            except InputError as error:
                entries = [FileEntry(0, path.name, None, str(error))]
            for entry in entries:
                census.add(entry)
    return census


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, count(Path(name)), sep=": ")
