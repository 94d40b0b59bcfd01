"""The palette of a <flame>, in all the forms that files have."""

import numpy as np

from renderer.flames.palettes import between, installed, named, numbered
from renderer.flames.xml.attributes import Reader
from renderer.scene.scene import told

WHITE = np.full((256, 3), 255.0)
NOT_INSTALLED = "is one of flam3's, which are not installed here; another one is taken"


def palette_of(reader: Reader, element, number: int, hue: float) -> tuple[np.ndarray, tuple[float, ...]]:
    """(256, 3) colours 0 to 255 and 256 alphas (none when all are 1). What no entry sets lies on lines between entries;
    palette `number`, if not negative, wins over all elements.
    """
    colours, alphas = np.full((256, 3), np.nan), np.ones(256)
    for child in element:
        if child.tag == "color":
            _one_colour(reader, child, colours, alphas)
        elif child.tag == "colors":
            _hex(reader, child.get("data", ""), "00RGB", colours, alphas, "colors")
        elif child.tag == "palette" and child.get("index0") is not None:
            _two_numbered(reader, child, colours)
        elif child.tag == "palette":
            form = "RGBA" if child.get("format", "RGB").upper() == "RGBA" else "RGB"
            _hex(reader, (child.text or "") + child.get("data", ""), form, colours, alphas, "palette")
    if number >= 0 and installed():
        colours, alphas = _numbered(reader, number, hue).copy(), np.ones(256)
    elif number >= 0:
        if np.isnan(colours).all():
            colours = named("spectrum").copy()
        reader.warn(f"palette {number} {NOT_INSTALLED}")
    colours, alphas = _filled(reader, colours, alphas)
    return colours, () if (alphas == 1).all() else tuple(alphas.tolist())


def _one_colour(reader: Reader, child, colours: np.ndarray, alphas: np.ndarray) -> None:
    index = int(reader.number("color index", child.get("index", "")))
    if not 0 <= index < 256:
        reader.fail(f"color index is {index}; it must be 0 to 255")
    alpha = 255.0
    if child.get("rgba") is not None:
        *rgb, alpha = reader.numbers("color rgba", child.get("rgba"), 4)
    else:
        rgb = reader.numbers("color rgb", child.get("rgb", ""), 3)
        if child.get("a") is not None:
            alpha = reader.number("color a", child.get("a"))
    colours[index], alphas[index] = np.clip(rgb, 0, 255), min(max(alpha / 255, 0.0), 1.0)


def _hex(reader: Reader, text: str, form: str, colours: np.ndarray, alphas: np.ndarray, what: str) -> None:
    """Colours in bytes: RGB, 00RGB, or RGBA, of which the colours are those times alpha, unlike elsewhere."""
    digits, channels = "".join(text.split()), 3 if form == "RGB" else 4
    try:
        data = np.frombuffer(bytes.fromhex(digits), "u1")
    except ValueError:
        reader.fail(f"{what}: not hexadecimal digits in pairs: {told(digits)}")
    if len(data) % channels or len(data) > 256 * channels:
        count = len(data) / channels
        reader.fail(f"{what}: {count:g} colours; at most 256 whole ones of {2 * channels} digits are allowed")
    entries = data.reshape(-1, channels).astype("f8")
    if form == "RGBA":
        alphas[: len(entries)] = entries[:, 3] / 255
        colours[: len(entries)] = entries[:, :3] * 255 / np.maximum(entries[:, 3:], 1)
    else:
        colours[: len(entries)] = entries[:, -3:]


def _numbered(reader: Reader, number: int, hue: float) -> np.ndarray:
    """One of flam3's palettes; of a number that it has not, white, as it has it."""
    found = numbered(number, hue)
    if found is None:
        reader.warn(f"palette {number} is none of flam3's; white is taken")
    return WHITE if found is None else found


def _two_numbered(reader: Reader, child, colours: np.ndarray) -> None:
    """The old form: a blend of two of flam3's palettes."""
    blend = reader.number("palette blend", child.get("blend", "0.5"))
    said = [
        (int(reader.number("palette index", child.get(f"index{k}", "0"))),
         reader.number("palette hue", child.get(f"hue{k}", "0")))
        for k in (0, 1)
    ]  # fmt: skip
    if installed():
        colours[:] = between([_numbered(reader, *each) for each in said], (1 - blend, blend))
    else:
        colours[:] = named("spectrum")
        reader.warn(f"palette {said[0][0]} {NOT_INSTALLED}")


def _filled(reader: Reader, colours: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entries that nothing set lie on lines between their neighbours, around the end too: light and alpha do."""
    known = np.flatnonzero(~np.isnan(colours[:, 0]))
    if len(known) == 0:
        reader.warn("has no palette; another one is taken")
        return named("spectrum").copy(), np.ones(256)
    unknown = np.flatnonzero(np.isnan(colours[:, 0]))
    around = np.concatenate([known - 256, known, known + 256])
    light = np.concatenate([colours[known] * alphas[known, None], alphas[known, None]], 1)
    filled = np.stack([np.interp(unknown, around, np.tile(light[:, k], 3)) for k in range(4)], 1)
    colours[unknown] = filled[:, :3] / np.maximum(filled[:, 3:], 1e-9)
    alphas[unknown] = filled[:, 3]
    return colours, alphas
