"""Saves flames into a .flame file that holds others: every byte outside of the replaced <flame> elements stays."""

import codecs
from collections.abc import Sequence
from pathlib import Path

from renderer.errors import UserError
from renderer.flames.genome import read_only
from renderer.flames.interpolation import KeyFrame
from renderer.flames.settings import FLIPPED
from renderer.flames.xml.elements import flame_spans
from renderer.flames.xml.read import MAX_FILE_BYTES, read_library
from renderer.flames.xml.write import flame_text
from renderer.records import replace
from renderer.system.files import read_file

CAMERA = ("flame", "size", "center", "scale", "zoom", "rotate", "pixel_aspect")


def merged(path: Path, keyframes: Sequence[KeyFrame], numbers: Sequence[int]) -> bytes:
    """The bytes of the file with the flames of these `numbers` replaced by the key frames; appended without numbers.

    `numbers` ascend. One flame keeps the time and the unknown attributes of the flame that it replaces. Raises
    UserError if the file does not have these flames, or none can be found in its text.
    """
    data, (entries, _) = read_file(path, MAX_FILE_BYTES), read_library(path)
    text = data.decode("latin-1")  # a character for each byte: tags are ASCII, except in UTF-16
    spans = flame_spans(text)
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or len(spans) != len(entries):
        raise UserError(f"{path.name}: its flames cannot be replaced one by one; save under another name")
    if max(numbers, default=0) >= len(spans):
        raise UserError(f"{path.name} has {len(spans)} flames, and no number {max(numbers)}; save under another name")
    keys = list(keyframes)
    if len(keys) == len(numbers) == 1 and (old := entries[numbers[0]].keyframe):
        # FLIPPED, the attribute y_axis: whether the flame was mirrored for the file. The new flame has one if it is.
        kept = {name: value for name, value in old.extra.items() if name not in FLIPPED}
        camera = {name: getattr(keys[0], name) for name in CAMERA}
        extra = read_only(kept | dict(keys[0].extra))
        keys = [replace(old, **camera, palette_number=-1, hue=0.0, extra=extra)]
    texts = list(map(flame_text, keys))
    if numbers:  # each flame's text replaces one; the last one is replaced by all texts that are left, or by none
        places, last = [spans[number] for number in numbers], len(numbers) - 1
        texts = [*texts[:last], *[""] * (last - len(texts)), "\n".join(texts[last:])]
    else:
        places, texts = [(spans[-1][1], spans[-1][1])], ["\n".join(["", *texts])]
    for (begin, end), new in reversed(list(zip(places, texts, strict=True))):  # so that the places before still hold
        text = text[:begin] + new.encode("ascii", "xmlcharrefreplace").decode() + text[end:]
    return text.encode("latin-1")
