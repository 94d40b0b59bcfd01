"""Reads the textures of a glTF file: PNG, JPEG and WebP by Pillow, KTX 2 by ktx2.py and renderer.formats.codecs.

read_textures() takes the opened file and returns a Texture (uint8 pixels and wrap modes) for each entry of `textures`.
If all images together are too large, the largest are halved until they fit.
"""

import mmap
from pathlib import Path
from typing import Any

import numpy as np

from renderer.formats import codecs
from renderer.formats.gltf.container import Container
from renderer.formats.gltf.ktx2 import KTX2, ZSTANDARD, PlainImage, is_plain, pixels_of, plain_image
from renderer.formats.gltf.model import Texture
from renderer.formats.images import read_pixels
from renderer.plain import Json

MAX_PIXELS = 1 << 26  # pixels of one image: 8,192 x 8,192
MAX_TOTAL_PIXELS = 1 << 28  # pixels of all images of a file, 4 bytes each; beyond it the largest images are halved
MAX_DECODED_PIXELS = 1 << 30  # pixels of all images of a file, before any is halved
MAX_TEXTURES = 1 << 12  # textures of a file
WRAPS = {33071: "clamp", 33648: "mirror", 10497: "repeat"}  # by OpenGL's number, as glTF writes it
# Formats that glTF does not have: such pictures are meant for the extension that names them.
OTHER_FORMATS = {f"image/{word}" for word in ("exr", "vnd.radiance", "vnd-ms.dds", "avif", "tiff", "bmp", "gif", "tga")}
SOURCES = ("KHR_texture_basisu", "EXT_texture_webp")  # in order; their source takes precedence over the texture's


def read_textures(file: Container, missing: set[int]) -> list[Texture]:
    """Reads one Texture for each entry of the file's `textures`; textures of one image share its pixels.

    A texture whose image file is missing, or not of glTF's formats, is white, and its index is added to `missing`.
    Images for which there is no room have less pixels than the file's. All are counted in file.ignored.
    """
    sources = [_source(file, name, entry) for name, entry in file.objects("textures", most=MAX_TEXTURES)]
    wanted = list(dict.fromkeys(source for source in sources if source >= 0))
    absent = {i for i in wanted if file.lacks(file.item("images", i, "a texture").get("uri"))}
    foreign = {i for i in wanted if str(file.item("images", i, "a texture").get("mimeType")) in OTHER_FORMATS}
    file.ignored["picture format textures"] += sum(source in foreign - absent for source in sources)
    file.ignored["missing picture textures"] += sum(source in absent for source in sources)
    absent |= foreign
    missing.update(index for index, source in enumerate(sources) if source in absent)
    sources = [-1 if source in absent else source for source in sources]
    images, reduced = _images(file, [source for source in wanted if source not in absent])
    file.ignored["full resolution textures"] += sum(source in reduced for source in sources)
    out = []
    for source, (name, entry) in zip(sources, file.objects("textures"), strict=True):
        sampler = file.item("samplers", entry["sampler"], name) if "sampler" in entry else {}
        wrap = tuple(file.one_of(sampler, key, WRAPS, f"{name}'s sampler", 10497) for key in ("wrapS", "wrapT"))
        out.append(Texture(images[source], wrap, sampler.get("magFilter", 9729) != 9728))
    return out


def _source(file: Container, name: str, entry: Json) -> int:
    """Returns the image index of a texture."""
    extensions = file.object_at(entry, "extensions", name)
    named = next((file.object_at(extensions, key, name) for key in SOURCES if key in extensions), {})
    source: Any = named.get("source", entry.get("source"))
    if source is None:  # the source is in an unsupported extension, which extensions.py counts as ignored
        return -1
    file.item("images", source, name)
    return int(source)


def _images(file: Container, wanted: list[int]) -> tuple[dict[int, np.ndarray], set[int]]:
    """Reads images by index as read-only pixels (height, width, 4) uint8; index -1 is a white image.

    Also returns the indices of images that were halved because all together had more than MAX_TOTAL_PIXELS.
    """
    out: dict[int, np.ndarray] = {-1: np.full((1, 1, 4), 255, "u1")}
    reduced: set[int] = set()
    jobs: dict[int, codecs.Job] = {}
    packed: dict[int, PlainImage] = {}  # images still compressed by Zstandard
    for index in wanted:
        name = f"images[{index}]"
        data = _content(file, file.item("images", index, "a texture"), name)
        if data.startswith(KTX2) and is_plain(data):
            image = plain_image(file, data, MAX_PIXELS, name)
            file.take("pixels", image.width * image.height, MAX_DECODED_PIXELS, name)
            if image.scheme == ZSTANDARD:
                packed[index], jobs[index] = image, codecs.Job("zstd", name, image.body, image.byte_count)
            else:
                out[index] = pixels_of(file, image, name)
        elif data.startswith(KTX2):
            jobs[index] = codecs.Job("basis", name, data, MAX_PIXELS)
        elif data.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF")):
            out[index] = read_pixels(Path(f"{file.path}: {name}"), MAX_PIXELS, data)
            file.take("pixels", out[index].size // 4, MAX_DECODED_PIXELS, name)
        else:
            file.fail(name, "is neither PNG nor JPEG nor WebP nor KTX 2")
        _make_room(out, reduced)
    for index, arrays in zip(jobs, codecs.decode(file.path, list(jobs.values())), strict=True):
        name = f"images[{index}]"
        if index in packed:
            out[index] = pixels_of(file, packed[index]._replace(body=arrays["bytes"].tobytes()), name)
        else:
            out[index] = arrays["pixels"]
            file.take("pixels", out[index].size // 4, MAX_DECODED_PIXELS, name)
        _make_room(out, reduced)
    for pixels in out.values():
        pixels.flags.writeable = False
    return out, reduced


def _in_own_pages(pixels: np.ndarray) -> np.ndarray:
    """A copy outside the heap, so that a halved image leaves the whole space of its large one to the next image."""
    pages = mmap.mmap(-1, pixels.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE)  # else the first write to each 4 KiB costs as much as decoding them
    copied = np.frombuffer(pages, "u1").reshape(pixels.shape)
    copied[...] = pixels
    return copied


def _make_room(images: dict[int, np.ndarray], reduced: set[int]) -> None:
    """Halves the largest images until all have at most MAX_TOTAL_PIXELS; adds their indices to `reduced`."""
    while sum(pixels.size // 4 for pixels in images.values()) > MAX_TOTAL_PIXELS:
        largest = max(images, key=lambda index: images[index].size)
        height, width = (max(1, side // 2) for side in images[largest].shape[:2])
        fine = images[largest][: 2 * height, : 2 * width]
        below, right = int(fine.shape[0] > 1), int(fine.shape[1] > 1)  # 0 along a side of one pixel, which stays
        sums = fine[::2, ::2].astype("u2")
        for y, x in ((0, right), (below, 0), (below, right)):
            sums += fine[y::2, x::2]
        sums += 2  # rounds
        sums //= 4
        images[largest] = _in_own_pages(sums.astype("u1"))
        reduced.add(largest)


def _content(file: Container, image: Json, name: str) -> bytes:
    if "bufferView" in image:
        return bytes(file.view(image["bufferView"], name)[0])
    return file.content(image.get("uri"), name)
