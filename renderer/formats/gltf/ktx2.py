"""Reads KTX 2 files (Khronos) with uncompressed texels: 8 bits a channel, stored, deflated or in Zstandard.

KHR_texture_basisu prescribes Basis Universal, decoded by renderer.formats.codecs, but some writers store plain texels.
"""

import struct
import zlib
from typing import NamedTuple

import numpy as np

from renderer.formats.gltf.container import Container

KTX2 = b"\xabKTX 20\xbb\r\n\x1a\n"
# Channel order by VkFormat, of the 8-bit UNORM and SRGB formats. The material's slot decides whether texels are sRGB.
FORMATS = {
    9: "r", 15: "r", 16: "rg", 22: "rg", 23: "rgb", 29: "rgb", 30: "bgr", 36: "bgr", 37: "rgba", 43: "rgba",
    44: "bgra", 50: "bgra",
}  # fmt: skip
ZSTANDARD = 2
SCHEMES = 0, ZSTANDARD, 3  # supercompression schemes: none, Zstandard, zlib
LEVEL_INDEX = 80  # bytes of the header, in front of the level index


class PlainImage(NamedTuple):
    """The largest image (mip level 0) of a plain KTX 2 file: its size, channel order and bytes.

    `body` is still compressed if the supercompression `scheme` is Zstandard; other schemes are already undone.
    """

    width: int
    height: int
    channels: str
    scheme: int
    body: bytes

    @property
    def byte_count(self) -> int:
        """Bytes of the uncompressed pixels."""
        return self.width * self.height * len(self.channels)


def is_plain(data: bytes) -> bool:
    """True if a KTX 2 file has a VkFormat, hence plain texels; files in Basis Universal have none."""
    return len(data) >= 16 and struct.unpack_from("<I", data, 12)[0] != 0


def plain_image(file: Container, data: bytes, max_pixels: int, name: str) -> PlainImage:
    """Reads the largest image of a plain KTX 2 file; errors name it `name`."""
    if len(data) < LEVEL_INDEX + 24:
        file.fail(name, f"is a KTX 2 file of {len(data)} bytes; its header alone has {LEVEL_INDEX + 24}")
    vk_format, _, width, height, depth, layers, faces, _, scheme = struct.unpack_from("<9I", data, 12)
    offset, size, _ = struct.unpack_from("<3Q", data, LEVEL_INDEX)
    if vk_format not in FORMATS:
        allowed = ", ".join(map(str, FORMATS))
        file.fail(name, f"is a KTX 2 file of the VkFormat {vk_format}; allowed are {allowed}, and Basis Universal")
    if scheme not in SCHEMES:
        known = {1: "1 (BasisLZ)"}.get(scheme, str(scheme))
        allowed = "0 (none), 2 (Zstandard) and 3 (zlib)"
        file.fail(name, f"is a KTX 2 file of supercompression scheme {known}; allowed are {allowed}")
    if width < 1 or height < 1 or depth > 1 or layers > 1 or faces != 1:
        file.fail(name, f"is no plain picture: {width} x {height} x {depth}, {layers} layers, {faces} faces")
    if width * height > max_pixels:
        file.fail(name, f"has {width} x {height} pixels; {max_pixels} are allowed")
    if offset > len(data) or size > len(data) - offset:
        file.fail(name, f"ends before byte {offset + size} of its pixels; it has {len(data)}")
    image = PlainImage(width, height, FORMATS[vk_format], scheme, data[offset : offset + size])
    if scheme != 3:
        return image
    try:
        return image._replace(body=zlib.decompressobj().decompress(image.body, image.byte_count + 1))
    except zlib.error as error:
        file.fail(name, f"is damaged: {error}")


def pixels_of(file: Container, image: PlainImage, name: str) -> np.ndarray:
    """Expands an image with an uncompressed body to pixels (height, width, 4) uint8; errors name it `name`."""
    width, height, channels, _, body = image
    wanted = image.byte_count
    if len(body) != wanted:
        file.fail(name, f"has {len(body)} bytes of pixels; {width} x {height} of {len(channels)} channels are {wanted}")
    pixels = np.frombuffer(body, "u1").reshape(height, width, len(channels))
    out = np.zeros((height, width, 4), "u1")
    out[..., 3] = 255
    for number, channel in enumerate(channels):
        out[..., "rgba".index(channel)] = pixels[..., number]
    return out
