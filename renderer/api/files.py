"""Films as files, and pictures drawn again from their recipes: what `rayfold export` and `rayfold verify` do.

Keywords of film() and verify() become the options of these commands, so that the same code draws.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from renderer.api.scenes import Source, as_scene, checked_count, checked_path, checked_size, checked_time, with_settings
from renderer.errors import UserError
from renderer.export.frames import VIDEO_SUFFIXES
from renderer.export.options import ExportOptions
from renderer.export.plan import make_plan
from renderer.export.verify import TIME_LIMIT
from renderer.export.verify import verify as verify_picture
from renderer.paths import ensure_cache
from renderer.plain import Json
from renderer.system.progress import OnProgress, checked_progress
from renderer.system.trust import allowing

__all__ = ["film", "verify"]
# Options of commands, as errors name them, and the keywords of film() and verify(); texts are replaced in this order.
PYTHON_WORDS = {
    "--frames A-B": "frames=(A, B)", "--frames": "frames", "--force": "force=True", "--allow FOLDER": "allow=[FOLDER]",
    "--allow": "allow", "--time-limit": "time_limit",
}  # fmt: skip


@contextmanager
def _python_words() -> Iterator[None]:
    """Raises errors of the block, which name options of commands, with the keywords in their place."""
    try:
        yield
    except UserError as error:
        text = str(error).removeprefix("-o ")  # the option of the output, whose path follows
        for option, keyword in PYTHON_WORDS.items():
            text = text.replace(option, keyword)
        raise type(error)(text) from None


def film(
    source: Source,
    output: str | os.PathLike[str],
    *,
    frames: Sequence[int] | None = None,
    fps: int = 24,
    size: tuple[int, int] | None = None,
    samples: int | None = None,
    time: float = 0.0,
    device: str = "auto",
    tone: object = None,
    force: bool = False,
    progress: OnProgress | None = None,
    **settings: object,
) -> Path:
    """Draws an animated scene to `output`: a film (.mp4, .webm, .mkv, .gif), or frames (`out_####.png`).

    `frames` are the numbers of the first and the last frame (default: as long as the scene's animation), `fps` frames a
    second of scene time; the first drawn shows `time`. The rest is as for `render`. Returns the output's path. An
    interrupted film goes on where it stopped when it is drawn again; `progress` is called with frames done and all, and
    cancels by returning False. `force` replaces frames of other scenes, settings or sizes, and files of others.

        scene = renderer.Scene(
            spheres=[{"material": "gold"}],
            materials=[{"name": "gold", "color": [1.0, 0.7, 0.3], "metallic": 1.0}],
            environment={"preset": "studio"},
            animation={
                "duration": 2.0,
                "keyframes": [
                    {"time": 0.0, "set": {"view.position": [0, 1, 5]}},
                    {"time": 2.0, "set": {"view.position": [4, 1, 3]}},
                ],
            },
        )
        renderer.film(scene, "turning.mp4", fps=24)

    Raises:
        UserError: an option that is not allowed; InputError: a bad file; UnavailableError: a missing device, or PyAV,
            which .gif does without; IncompleteError: `progress` cancelled the film, and so many frames are kept.
    """
    from renderer.export.run import draw_film  # with the encoder

    ensure_cache()
    path = checked_path("film writes to a path", output)
    scene = with_settings(as_scene(source), settings, tone)
    if frames is not None:
        low, high = frames if isinstance(frames, Sequence) and len(frames) == 2 else (None, None)
        if not (isinstance(low, int | np.integer) and isinstance(high, int | np.integer) and 0 <= low <= high):
            raise UserError(f"frames is {frames!r}; it must be the numbers of the first and the last frame, from 0")
    options = ExportOptions(
        scene.path, path, size=None if size is None else checked_size(size), fps=checked_count("fps", fps),
        samples=None if samples is None else checked_count("samples", samples), time=checked_time(time), device=device,
        frames=None if frames is None else f"{low}-{high}", force=force,
    )  # fmt: skip
    if path.suffix.lower() not in VIDEO_SUFFIXES and "#" not in path.name:
        allowed = f"{', '.join(VIDEO_SUFFIXES)}, and frames as out_####.png"
        raise UserError(f"film {output}: is no film; allowed are {allowed}")
    with _python_words():
        draw_film(replace(make_plan(options, scene), report=checked_progress(progress)))
    return path


def verify(
    picture: str | os.PathLike[str],
    *,
    device: str = "auto",
    time_limit: float = TIME_LIMIT,
    allow: Iterable[str | os.PathLike[str]] = (),
) -> Json:
    """Draws a PNG again from the recipe inside it and compares every sample.

    Returns a table: `same` is True for the same bits; else `worst` is the largest difference, `where` its pixel [x, y]
    and `pixels` the number that differ. `intact` says whether the file still holds what was written. The scene may name
    files of the picture's folder and below, and of the folders that `allow` lists.

    Raises:
        InputError: a file without a recipe; IncompleteError: drawing takes longer than `time_limit` seconds.
    """
    ensure_cache()
    path = checked_path("verify takes the path of a PNG", picture)
    with _python_words(), allowing(checked_path("allow lists folders", folder) for folder in allow):
        return verify_picture(path, device, time_limit=time_limit)
