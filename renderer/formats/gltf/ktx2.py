"""Pictures of KTX 2 files (Khronos) that are not compressed for a GPU: 8 bits a channel, plain or deflated.

The extension KHR_texture_basisu asks for Basis Universal, which renderer.formats.codecs decodes; some writers put plain
pixels there.
"""

import struct
import zlib

import numpy as np

from renderer.formats.gltf.container import Container

KTX2 = b"\xabKTX 20\xbb\r\n\x1a\n"
# Channels as they stand, by VkFormat: UNORM and SRGB of 8 bits each. Materials know which textures are sRGB.
FORMATS = {
    9: "r", 15: "r", 16: "rg", 22: "rg", 23: "rgb", 29: "rgb", 30: "bgr", 36: "bgr", 37: "rgba", 43: "rgba",
    44: "bgra", 50: "bgra",
}  # fmt: skip
SCHEMES = 0, 3  # of supercompression: none, zlib
LEVEL_INDEX = 80  # bytes of the header


def is_plain(data: bytes) -> bool:
    """Whether a KTX 2 file holds pixels of a VkFormat; Basis Universal has none."""
    return len(data) >= 16 and struct.unpack_from("<I", data, 12)[0] != 0


def plain_pixels(file: Container, data: bytes, max_pixels: int, name: str) -> np.ndarray:
    """Pixels (height, width, 4) uint8 of the largest image of a KTX 2 file that is_plain; InputError naming `name`."""
    if len(data) < LEVEL_INDEX + 24:
        file.fail(name, f"is a KTX 2 file of {len(data)} bytes; its header alone has {LEVEL_INDEX + 24}")
    vk_format, _, width, height, depth, layers, faces, _, scheme = struct.unpack_from("<9I", data, 12)
    offset, size, _ = struct.unpack_from("<3Q", data, LEVEL_INDEX)
    if vk_format not in FORMATS:
        allowed = ", ".join(map(str, FORMATS))
        file.fail(name, f"is a KTX 2 file of the VkFormat {vk_format}; allowed are {allowed}, and Basis Universal")
    if scheme not in SCHEMES:
        known = {1: "1 (BasisLZ)", 2: "2 (Zstandard)"}.get(scheme, str(scheme))
        file.fail(name, f"is a KTX 2 file of supercompression scheme {known}; allowed are 0 (none) and 3 (zlib)")
    if width < 1 or height < 1 or depth > 1 or layers > 1 or faces != 1:
        file.fail(name, f"is no plain picture: {width} x {height} x {depth}, {layers} layers, {faces} faces")
    if width * height > max_pixels:
        file.fail(name, f"has {width} x {height} pixels; {max_pixels} are allowed")
    channels = FORMATS[vk_format]
    wanted = width * height * len(channels)
    if offset > len(data) or size > len(data) - offset:
        file.fail(name, f"ends before byte {offset + size} of its pixels; it has {len(data)}")
    body = data[offset : offset + size]
    if scheme == 3:
        try:
            body = zlib.decompressobj().decompress(body, wanted + 1)
        except zlib.error as error:
            file.fail(name, f"is damaged: {error}")
    if len(body) != wanted:
        file.fail(name, f"has {len(body)} bytes of pixels; {width} x {height} of {len(channels)} channels are {wanted}")
    pixels = np.frombuffer(body, "u1").reshape(height, width, len(channels))
    out = np.zeros((height, width, 4), "u1")
    out[..., 3] = 255
    for number, channel in enumerate(channels):
        out[..., "rgba".index(channel)] = pixels[..., number]
    return out
