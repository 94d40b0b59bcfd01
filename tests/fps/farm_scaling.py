"""How a farm of local workers scales: frames of a scene by 1, 2, 4, ... workers, bits compared, then frames a second.

    python tests/fps/farm_scaling.py [SCALING_KEYS ...] [-- EXPORT ARGUMENTS]

Every number of workers draws the same frames; a first round that is not timed starts the workers, opens their devices
and compiles kernels. Prints one JSON line for each number: seconds, frames a second, the ratio to the first number's
rate, the devices, and whether all files have the bits of the first number's.
"""

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from renderer.cli import build_parser  # noqa: E402
from renderer.export.command import options_of  # noqa: E402
from renderer.export.farm import Farm, open_client, render_frames  # noqa: E402
from renderer.export.frames import file_hash  # noqa: E402
from renderer.export.plan import make_plan  # noqa: E402

DEFAULT = ["scenes/mirrors.toml", "--frames", "1-16", "--size", "3840x2160", "--samples", "512"]


def main() -> int:
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    counts, asked = [int(word) for word in words[:cut]] or [1, 2, 4], words[cut + 1 :] or DEFAULT
    first = None
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            seconds, devices, hashes, frames = drawn(count, asked, Path(folder))
            first = first or (frames / seconds, hashes)
            rate = frames / seconds
            row = {
                "workers": count,
                "frames": frames,
                "seconds": round(seconds, 3),
                "frames_per_second": round(rate, 3),
            }
            row |= {"ratio": round(rate / first[0], 3), "same_bits": hashes == first[1], "devices": devices}
            print(json.dumps(row), flush=True)
            if hashes != first[1]:
                return 1
    return 0


def drawn(count: int, asked: list[str], folder: Path) -> tuple[float, str, list[str], int]:
    """Seconds, devices, the files' hashes and the number of frames that `count` workers draw."""
    where = folder / str(count)
    where.mkdir()
    args = build_parser().parse_args(
        ["export", *asked, "-o", str(where / "frame_####.png"), "--farm", f"local:{count}"]
    )
    options = options_of(args)
    plan = make_plan(options)
    with open_client(Farm("", count, options.device)) as client:
        warm = replace(plan, output=where / "warm_####.png", numbers=plan.numbers[: max(2 * count, 2)])
        render_frames(client, Farm("", count, options.device), warm, options)
        began = time.perf_counter()
        _, devices, _ = render_frames(client, Farm("", count, options.device), plan, options)
        seconds = time.perf_counter() - began
    return seconds, devices, [file_hash(path) for path in sorted(where.glob("frame_*.png"))], len(plan.numbers)


if __name__ == "__main__":
    sys.exit(main())
