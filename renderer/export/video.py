"""Encodes PNG frames as a video by PyAV: H.264 in .mp4 and .mkv, VP9 in .webm, AV1 for 10 bits; GIF by Pillow.

run.py calls encode_video() after the last frame. No other module imports av.
"""

import json
import os
from pathlib import Path
from types import ModuleType

import numpy as np

from renderer.errors import import_optional
from renderer.formats.images import read_pixels, read_samples, write_gif
from renderer.plain import Json
from renderer.system.install import pip_install
from renderer.system.outputs import atomic_write

CODECS = {
    ".mp4": ("libx264", "yuv420p", {"crf": "16", "preset": "medium"}),
    ".mkv": ("libx264", "yuv420p", {"crf": "16", "preset": "medium"}),
    ".webm": ("libvpx-vp9", "yuv420p", {"crf": "24", "b": "0", "row-mt": "1"}),
}
# AV1 in all of them: libx265 of PyAV's wheels writes past its memory at 48 x 32 pixels.
_AV1 = ("libsvtav1", "yuv420p10le", {"crf": "20", "preset": "7"})
CODECS_10_BITS = {".mp4": _AV1, ".mkv": _AV1, ".webm": _AV1}
MIN_AV1_SIDE = 16  # pixels; the encoder refuses smaller pictures
FILM_SUFFIXES = tuple(CODECS_10_BITS)

# Code points of ITU-T H.273.
BT709 = 1  # primaries, transfer curve and matrix
BT2020, BT2020_MATRIX, PQ = 9, 9, 16
LIMITED_RANGE = 1  # AVCOL_RANGE_MPEG: black is 16 and white 235 of 255


def import_av() -> ModuleType:
    """Imports PyAV; raises UnavailableError if it is not installed. make_plan() calls it before any frame is drawn."""
    return import_optional("av", f"videos, but .gif, need PyAV: {pip_install('film')}")


def encode_video(
    frames: list[Path], output: Path, fps: int, recipe: Json, bit_depth: int = 8, transfer: str = "srgb"
) -> None:
    """Writes the video of PNG frames, all of one size, at `fps` frames a second, with the recipe as its comment.

    A video of 10 bits per channel is made from PNGs of 16. `transfer` says how the frames are encoded: srgb or pq.
    """
    suffix = output.suffix.lower()
    with atomic_write(output) as temporary:
        if suffix == ".gif":
            write_gif(temporary, frames, fps)
        else:
            _write_film(temporary, suffix, frames, fps, recipe, bit_depth, transfer)


def _write_film(
    path: Path, suffix: str, frames: list[Path], fps: int, recipe: Json, bit_depth: int, transfer: str
) -> None:
    """Writes a film in the container and codec of an output's suffix; the temporary file at `path` may have none."""
    os.environ.setdefault("SVT_LOG", "1")  # the encoder of AV1 prints errors alone, not its settings
    av = import_av()
    encoder, pixel_format, options = (CODECS if bit_depth == 8 else CODECS_10_BITS)[suffix]
    more = {"movflags": "+faststart+use_metadata_tags"} if suffix == ".mp4" else {}
    with av.open(
        str(path), "w", format={".mkv": "matroska"}.get(suffix, suffix[1:]), container_options=more
    ) as container:
        container.metadata["comment"] = json.dumps(recipe)
        stream = container.add_stream(encoder, rate=fps, options=options)
        stream.pix_fmt = pixel_format
        read = read_pixels if bit_depth == 8 else read_samples  # PNGs of 8 or 16 bits per channel
        stream.height, stream.width = _even(read(frames[0])).shape[:2]
        context = stream.codec_context
        is_pq = transfer == "pq"
        # H.273 tags: BT.2020 with PQ for high dynamic range, else BT.709, which has the primaries of sRGB.
        context.color_primaries, context.color_trc = (BT2020, PQ) if is_pq else (BT709, BT709)
        context.colorspace, context.color_range = BT2020_MATRIX if is_pq else BT709, LIMITED_RANGE
        for path_of_frame in frames:
            pixels = np.ascontiguousarray(_even(read(path_of_frame)[..., :3]))
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24" if pixels.itemsize == 1 else "rgb48le").reformat(
                format=pixel_format, dst_colorspace=context.colorspace, src_color_range="JPEG", dst_color_range="MPEG"
            )
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))  # the frames that the encoder still holds


def _even(pixels: np.ndarray) -> np.ndarray:
    """Repeats the last row or column of pixels where a side is odd, because 4:2:0 needs even sides."""
    height, width = pixels.shape[:2]
    return np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
