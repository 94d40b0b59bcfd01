"""Frames to a video by PyAV: H.264 in .mp4 and .mkv, VP9 in .webm, and GIF. The only user of av."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import import_optional
from renderer.formats.images import atomic_write, read_pixels

CODECS = {
    ".mp4": ("libx264", "yuv420p", {"crf": "16", "preset": "medium"}),
    ".mkv": ("libx264", "yuv420p", {"crf": "16", "preset": "medium"}),
    ".webm": ("libvpx-vp9", "yuv420p", {"crf": "24", "b": "0", "row-mt": "1"}),
}


BT709 = 1  # of primaries, curve and matrix alike (ITU-T H.273); as a range, 1 is limited


def import_av() -> Any:
    """PyAV; UnavailableError where it is not installed, which a plan asks before the first frame is drawn."""
    return import_optional("av", "videos need PyAV: pip install av")


def encode_video(frames: list[Path], output: Path, fps: int, recipe: dict) -> None:
    """Writes the video of PNG frames, all of one size, at `fps` frames a second, with the recipe as its comment."""
    with atomic_write(output) as temporary:
        if output.suffix.lower() == ".gif":
            _encode_gif(frames, temporary, fps)
        else:
            _encode_video(frames, temporary, fps, output.suffix.lower(), recipe)


def _encode_video(frames, path: Path, fps: int, suffix: str, recipe: dict) -> None:
    av = import_av()
    codec, pixel_format, options = CODECS[suffix]
    more = {"movflags": "+faststart+use_metadata_tags"} if suffix == ".mp4" else {}
    with av.open(
        str(path), "w", format={".mkv": "matroska"}.get(suffix, suffix[1:]), container_options=more
    ) as container:
        container.metadata["comment"] = json.dumps(recipe)
        stream = container.add_stream(codec, rate=fps, options=options)
        stream.pix_fmt = pixel_format
        stream.height, stream.width = _even(read_pixels(frames[0])).shape[:2]
        context = stream.codec_context
        context.color_primaries = context.color_trc = context.colorspace = context.color_range = BT709
        for path_of_frame in frames:
            pixels = _even(read_pixels(path_of_frame)[..., :3])
            frame = av.VideoFrame.from_ndarray(pixels, "rgb24").reformat(
                format=pixel_format, dst_colorspace="ITU709", src_color_range="JPEG", dst_color_range="MPEG"
            )
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def _encode_gif(frames, path: Path, fps: int) -> None:
    av = import_av()
    first = read_pixels(frames[0])[..., :3]
    height, width = first.shape[:2]
    graph = av.filter.Graph()
    source = graph.add_buffer(width=width, height=height, format="rgb24", time_base=f"1/{fps}")
    halves, palette = graph.add("split"), graph.add("palettegen", "stats_mode=diff")
    use, sink = graph.add("paletteuse", "dither=sierra2_4a"), graph.add("buffersink")
    source.link_to(halves)
    halves.link_to(palette, 0)
    halves.link_to(use, 1, 0)
    palette.link_to(use, 0, 1)
    use.link_to(sink)
    graph.configure()
    for number, path_of_frame in enumerate(frames):
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(read_pixels(path_of_frame)[..., :3]), "rgb24")
        frame.pts, frame.time_base = number, Fraction(1, fps)
        graph.push(frame)
    graph.push(None)
    with av.open(str(path), "w", format="gif") as container:
        stream = container.add_stream("gif", rate=fps)
        stream.width, stream.height, stream.pix_fmt = width, height, "pal8"
        for _ in frames:
            container.mux(stream.encode(graph.pull()))
        container.mux(stream.encode(None))


def _even(pixels: np.ndarray) -> np.ndarray:
    """The pixels with their last row and column doubled where a side is odd, as 4:2:0 needs."""
    height, width = pixels.shape[:2]
    return np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
