"""The picture `flame_sheet`: a contact sheet of a file of flames, with a thumbnail, number and name of each flame.

Of a folder, each file has a cell with its first flame, so that a file is read when its cell is drawn. A draw adds the
next flame, which flame.py draws at the size of its cell with few samples. A flame that cannot be read or drawn has a
crossed cell.
"""

import hashlib
import math
from collections import Counter, OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from renderer.errors import UserError
from renderer.flames.settings import settings_from_keyframe
from renderer.flames.xml.read import FileEntry, read_library
from renderer.formats.text import text_mask
from renderer.gpu import Buffer, DeviceContext
from renderer.pictures import flame
from renderer.pictures.picture import AccumulatingPicture, Frame, Size, Tile
from renderer.plain import printable
from renderer.records import dataclass, replace
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import PictureSettings, required_file, setting
from renderer.system.files import resolve

CELL = (240, 200)  # pixels of a cell of an exported sheet
MAX_SHEET = 8192  # pixels along each side of an exported sheet
MARGIN, LABEL = 0.03, 0.09  # fractions of a cell's smaller side
TEXT, PAPER, CROSS = 0.55, 0.012, (0.25, 0.02, 0.02)  # linear colors; CROSS marks a flame that cannot be drawn
MIN_LABEL = 9  # height in pixels; smaller labels are left out
MAX_FLAMES = 4096
KEPT_BYTES = 128 << 20  # bytes of thumbnails kept for later sheets of this process
SUFFIXES = (".flame", ".flam3")
_kept: OrderedDict[str, np.ndarray] = OrderedDict()  # thumbnails by the hash of flame and settings


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The file, and the layout of the sheet."""

    file: str = required_file((*SUFFIXES, ""), "the .flame file, or a folder of them")
    columns: int = setting(0, 0, 1024, "flames in a row; 0 chooses for the picture's shape")
    quality: float = setting(50.0, 1e-3, 1e5, "samples per pixel", logarithmic=True)
    labels: bool = setting(True, help="number and name under each flame")
    seed: int = 0


def holds_flames(folder: Path) -> bool:
    """True if a file of flames lies in the folder."""
    return any(file.suffix.lower() in SUFFIXES for file in folder.iterdir())


def open_file(path: Path) -> Scene:
    """The Scene of the contact sheet of a .flame file, or of a folder of them."""
    if not Path(path).is_dir():
        flame.print_problems(path, *read_library(path))
    settings = Settings(str(resolve(Path(path))), quality=50.0)
    count = len(_cells(settings))
    columns = math.ceil(math.sqrt(count))
    shape = columns * CELL[0], math.ceil(count / columns) * CELL[1]
    shrink = min(1.0, MAX_SHEET / max(shape))
    size = round(shape[0] * shrink), round(shape[1] * shrink)
    return Scene(Path(path), Path(path).stem, "flame_sheet", settings, Picture.tone, size)


def _cells(settings: Settings) -> Sequence[tuple[Path, FileEntry | None]]:
    """The file and the flame of each cell; None for the first flame of a folder's file."""
    path = Path(settings.file)
    if path.is_dir():
        return [(file, None) for file in sorted(path.iterdir()) if file.suffix.lower() in SUFFIXES][:MAX_FLAMES]
    return [(path, entry) for entry in read_library(path)[0][:MAX_FLAMES]]


def _first_entry(file: Path) -> FileEntry:
    """The first readable flame of a file, under the file's name; the index -1 keeps a number off its label."""
    try:
        entries = read_library(file)[0]
    except UserError as error:
        return FileEntry(-1, file.name, None, str(error))
    name = file.name + (f" ({len(entries)} flames)" if len(entries) > 1 else "")
    return replace(next(entry for entry in entries if entry.keyframe), index=-1, name=name)


def cell_rectangle(settings: Settings, count: int, size: Size, index: int) -> Tile:
    """Left, top, width and height of a flame's cell."""
    columns = settings.columns or _columns(count, size)
    rows = -(-count // columns)
    row, column = divmod(index, columns)
    left, right = (size[0] * k // columns for k in (column, column + 1))
    top, bottom = (size[1] * k // rows for k in (row, row + 1))
    return left, top, right - left, bottom - top


def _columns(count: int, size: Size) -> int:
    """The columns that make the cells' smaller side largest."""

    def side(columns: int) -> float:
        return min(size[0] / columns / CELL[0], size[1] / -(-count // columns) / CELL[1])

    return max(range(1, count + 1), key=side)


class Picture(AccumulatingPicture[Settings]):
    """Draws contact sheets of .flame files."""

    drawn_whole = True
    settings_type: ClassVar[type] = Settings
    tone = ToneMapping("manual")
    can_open = True

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self._flame = flame.Picture(gpu)
        self._pixels = np.zeros((1, 1, 4), "f4")
        self._buffer: Buffer
        self._entries: Sequence[tuple[Path, FileEntry | None]] = []

    @classmethod
    def ignored(cls, settings: Settings) -> dict[str, int]:
        """Counts of the attributes of all flames of the file that are not drawn."""
        total = Counter[str]()
        for file, entry in _cells(settings):
            total.update((entry or _first_entry(file)).ignored)
        return dict(total)

    def sample_count(self, settings: Settings, size: Size) -> int:
        """The number of cells."""
        return len(_cells(settings))

    def begin(self, settings: Settings, size: Size, time: float, tile: Tile) -> None:
        """Read the file or list the folder, and clear the sheet."""
        self._entries = _cells(settings)
        self._flame.prefer_generic(len(self._entries))
        self._pixels = np.full((size[1], size[0], 4), PAPER, "f4")
        self._pixels[..., 3] = 1.0
        self._buffer = self.gpu.device.buffer((size[1], size[0], 4))

    def add_sample(self, settings: Settings, size: Size, time: float, tile: Tile) -> Frame:
        """Draw the next flame into its cell; further draws leave the sheet as it is."""
        if self.samples < len(self._entries):
            cell = cell_rectangle(settings, len(self._entries), size, self.samples)
            file, entry = self._entries[self.samples]
            self._draw_cell(settings, entry or _first_entry(file), cell)
        return self._buffer.write(self._pixels)

    def _draw_cell(self, settings: Settings, entry: FileEntry, cell: Tile) -> None:
        """Draws the thumbnail of a flame with its label into a cell (left, top, width, height)."""
        left, top, width, height = cell
        margin = max(1, round(MARGIN * min(width, height)))
        label = round(LABEL * min(width, height)) if settings.labels else 0
        label = label if label >= MIN_LABEL else 0
        room = width - 2 * margin, height - 2 * margin - label
        if min(room) < 1:
            return
        try:
            thumbnail = self._thumbnail(settings, entry, room) if entry.keyframe else _crossed(room)
        except (UserError, ValueError):  # a number that no picture can have
            thumbnail = _crossed(room)
        rows, columns = thumbnail.shape[:2]
        x, y = left + (width - columns) // 2, top + margin + (room[1] - rows) // 2
        self._pixels[y : y + rows, x : x + columns, :3] = thumbnail[..., :3]
        if label:
            text = printable(entry.name if entry.index < 0 else f"{entry.index} {entry.name}", 80)
            mask = text_mask(text, label, room[0])[..., None]
            y, x = top + height - margin - label, left + margin
            paper = self._pixels[y : y + label, x : x + room[0], :3]
            paper[:] = paper * (1 - mask) + TEXT * mask

    def _thumbnail(self, settings: Settings, entry: FileEntry, room: Size) -> np.ndarray:
        """The picture (height, width, 4) of a flame, as large as fits into `room` with the flame's aspect ratio."""
        assert entry.keyframe
        wide, high = entry.keyframe.size
        scale = min(room[0] / wide, room[1] / high)
        size = max(1, int(wide * scale)), max(1, int(high * scale))
        one = settings_from_keyframe(entry.keyframe)
        one = replace(one, quality=settings.quality, seed=settings.seed, passes=1, temporal_samples=1)
        key = hashlib.sha256(repr((self.gpu.device.name, size, one)).encode()).hexdigest()
        thumbnail = _kept.pop(key, None)
        if thumbnail is None:
            for _ in range(self._flame.sample_count(one, size)):
                frame = self._flame.draw(one, size, 0.0)
            thumbnail = frame.read()
        _kept[key] = thumbnail  # at the end, because it was used last; the first ones go
        while sum(kept.nbytes for kept in _kept.values()) > KEPT_BYTES:
            _kept.popitem(last=False)
        return thumbnail

    def scene_at(self, settings: Settings, size: Size, x: float, y: float) -> Scene | None:
        """The flame whose cell contains the pixel (x, y); None outside of cells, and if the flame cannot be read."""
        cells = _cells(settings)
        for index, (file, entry) in enumerate(cells):
            left, top, width, height = cell_rectangle(settings, len(cells), size, index)
            if left <= x < left + width and top <= y < top + height:
                if entry is None:
                    return open_file(file) if flame.flame_count(file) > 1 else flame.open_file(file)
                return flame.scene_of_entry(file, entry) if entry.keyframe else None
        return None


def _crossed(size: Size) -> np.ndarray:
    """(height, width, 3): a dark cell with both diagonals."""
    v, u = np.mgrid[: size[1], : size[0]]
    u, v = (u + 0.5) / size[0], (v + 0.5) / size[1]
    is_on_diagonal = np.minimum(abs(u - v), abs(u + v - 1)) < 1.5 / min(size)
    return np.where(is_on_diagonal[..., None], np.array(CROSS, "f4"), np.float32(2 * PAPER))
