"""Every bundled scene at its own size and samples: its seconds, and FLIP against a converged reference.

python -m tests.fps.quality [SCENE ...] [--device cuda:0] [--reference-seconds 1.5] [--limit 140] [-o records.jsonl]

Seconds are those of the scene's own size. FLIP is that of the web size, FLIP_SIDE pixels the longer side: the noise of
a pixel does not depend on it. The reference has another seed, where the picture has one, and all samples that the
seconds allow, at least MIN_REFERENCE times the scene's own; its own noise is part of the figure. A picture of one
sample is exact and has no FLIP.

`--samples N` times N samples, from which the seconds of the scene's own are extrapolated: for CPUs. These are the
process's CPU seconds over the number of cores, so that other work on the machine does not count.
`--table FILE ...` prints records as the table of assets/guides/gallery.md.
"""

import argparse
import json
import os
import time
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import fields, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from renderer.gpu import open_context
from renderer.images.flip import flip_map
from renderer.images.tone_mapping import ExposureMeter, tonemap
from renderer.paths import ROOT
from renderer.pictures import load, open_picture

MIN_REFERENCE = 4
FLIP_SIDE = 512
FIREFLY = 64  # of 255: how far a firefly is above its neighbors and the reference
DEFAULT_SIZE = (640, 360)
NOT_MEANS = ("ink", "lightfield")  # whose samples are steps of one result
LEFT_OUT = ("demo",)  # shows other scenes


def bundled() -> list[str]:
    """The names of the scenes that come along and are pictures."""
    found = {path.stem for suffix in ("toml", "flame") for path in (ROOT / "scenes").glob(f"*.{suffix}")}
    return sorted(found - set(LEFT_OUT))


def measure(name: str, gpu: Any, reference_seconds: float, few: int | None) -> tuple[dict, list[np.ndarray]]:
    """Facts about a scene, and its displayed picture with that of the reference; none of an exact or timed one."""
    scene = load(name)
    size, picture = scene.size or DEFAULT_SIZE, open_picture(scene, gpu)
    wanted = scene.samples or picture.sample_count(scene.settings, size)
    row: dict[str, Any] = {"scene": name, "size": list(size), "samples": wanted}
    begin = time.perf_counter()
    draw(picture, scene.settings, size, 1)  # compiles and uploads
    row["first_seconds"] = round(time.perf_counter() - begin, 3)
    drawn = min(few or wanted, wanted)
    clock, cores = (time.process_time, os.cpu_count() or 1) if few else (time.perf_counter, 1)
    begin = clock()
    draw(picture, scene.settings, size, drawn)
    seconds = (clock() - begin) / cores
    row |= {"seconds": round(seconds * wanted / drawn, 3), "timed_samples": drawn} | (
        {"clock": "processor"} if few else {}
    )
    if wanted == 1 or few or scene.picture in NOT_MEANS:
        return row, []
    facts, shown = displayed(scene, picture, size, reference_seconds)
    return row | facts, shown


def displayed(scene: Any, picture: Any, size: tuple[int, int], seconds: float) -> tuple[dict, list[np.ndarray]]:
    """Facts about a scene's reference, and both displayed pictures (height, width, 3) uint8 at the web size."""
    scale = min(1.0, FLIP_SIDE / max(size))
    small, settings = (max(1, round(size[0] * scale)), max(1, round(size[1] * scale))), scene.settings
    wanted = scene.samples or picture.sample_count(settings, small)
    draw(picture, settings, small, 1)
    begin = time.perf_counter()
    frame = draw(picture, settings, small, wanted)
    took = time.perf_counter() - begin
    meter = ExposureMeter() if scene.tone.exposure == "manual" else ExposureMeter().add(frame.read())
    shown = [tonemap(frame, scene.tone, meter=meter)[..., :3]]
    if "seed" in [f.name for f in fields(settings)]:
        settings = replace(settings, seed=settings.seed + 1)
    count = min(max(MIN_REFERENCE * wanted, int(wanted * seconds / max(took, 1e-3))), 1 << 14)
    shown.append(tonemap(draw(picture, settings, small, count), scene.tone, meter=meter)[..., :3])
    return {"flip_size": list(small), "flip_samples": wanted, "reference_samples": count}, shown


def draw(picture: Any, settings: Any, size: tuple[int, int], samples: int) -> Any:
    """The frame after so many samples, when it is done."""
    picture.restart()
    for _ in range(samples):
        frame = picture.draw(settings, size, 0.0)
    frame.read()
    return frame


def compare(shown: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """FLIP's mean, and the fraction of pixels that stand out."""
    error = flip_map(reference, shown)
    outliers = {"above_half": round(float((error > 0.5).mean()), 6), "fireflies": fireflies(shown, reference)}
    return {"flip": round(float(error.mean()), 4)} | outliers


def fireflies(shown: np.ndarray, reference: np.ndarray) -> int:
    """The number of pixels above the median of their 3 x 3 neighbors and all 3 x 3 of the reference, by FIREFLY.

    What the reference has too, as the glint of a jewel, is none.
    """
    height, width = shown.shape[:2]
    bright, true = (np.pad(image.astype("f4").mean(-1), 1, "edge") for image in (shown, reference))
    shifts = [(slice(y, y + height), slice(x, x + width)) for y in range(3) for x in range(3)]
    median = np.median([bright[shift] for shift in shifts], axis=0)
    highest = np.max([true[shift] for shift in shifts], axis=0)
    return int((bright[1:-1, 1:-1] > np.maximum(median, highest) + FIREFLY).sum())


def table(paths: list[Path]) -> str:
    """The records of files as a table: FLIP and fireflies of the first that has them, and seconds of each file."""
    files = [[json.loads(line) for line in path.read_text().splitlines()] for path in paths]
    devices = [rows[0]["device"].split(" (")[0] for rows in files]
    lines = ["| scene | size | samples | FLIP | fireflies | " + " | ".join(f"s, {device}" for device in devices) + " |"]
    lines.append("| --- | --- | --- | --- | --- |" + " --- |" * len(files))
    for name in sorted({row["scene"] for rows in files for row in rows}):
        found = [next((row for row in rows if row["scene"] == name), None) for rows in files]
        some = next(row for row in found if row)
        unknown = "exact" if some["samples"] == 1 else ""
        flip = next((f"{row['flip']:.3f}" for row in found if row and "flip" in row), unknown)
        specks = next((str(row["fireflies"]) for row in found if row and "fireflies" in row), "")
        cells = [f"{row['seconds']:.3g}" if row else "" for row in found]
        size = f"{some['size'][0]} x {some['size'][1]}"
        lines.append(f"| `{name}` | {size} | {some['samples']} | {flip} | {specks} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure the scenes, or print the table of records."""
    parser = argparse.ArgumentParser(prog="python -m tests.fps.quality")
    parser.add_argument("scenes", nargs="*")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--reference-seconds", type=float, default=1.5)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which no scene is begun")
    parser.add_argument("--samples", type=int)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--table", type=Path, nargs="+")
    args = parser.parse_args()
    if args.table:
        print(table(args.table))
        return
    begin, gpu = time.perf_counter(), open_context(args.device)
    device, rows, waiting = f"{gpu.device.name}", [], []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for name in args.scenes or bundled():
            if time.perf_counter() - begin > args.limit:
                print(f"{name}: not measured, the time is over", flush=True)
                continue
            row, shown = measure(name, gpu, args.reference_seconds, args.samples)
            rows.append(row | {"device": device})
            future: Future | None = pool.submit(compare, *shown) if shown else None
            waiting.append(future)
            print(name, row, flush=True)
        for row, future in zip(rows, waiting, strict=True):
            row |= future.result() if future else {}
            print(f"{row['scene']:18} {row['samples']:6} {row['seconds']:8.2f} s  {row.get('flip', '')}", flush=True)
    if args.output:
        args.output.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
