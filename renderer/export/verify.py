"""`rayfold verify PICTURE.png`: draw a picture again from the recipe inside it, and compare the samples bit for bit."""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from renderer.errors import IncompleteError
from renderer.export.options import ExportOptions
from renderer.export.plan import make_plan
from renderer.export.render import InterruptHandler
from renderer.export.run import carry_out, ignored_statements, print_ignored
from renderer.formats.images import read_digest, read_recipe, read_samples, sample_digest
from renderer.paths import temporary_directory
from renderer.plain import Json
from renderer.system import arguments, trust
from renderer.system.files import open_input
from renderer.system.process import supervise

TIME_LIMIT = 600.0  # seconds


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the options of `rayfold verify`."""
    add = command.add_argument
    add("picture", metavar="PICTURE.png", type=Path, help="a picture that Rayfold wrote")
    add("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    add("--farm", metavar="CLUSTER", help="local:N processes, or a scheduler at tls://HOST:PORT or tcp://HOST:PORT")
    add("--insecure", action="store_true", help="allow a tcp:// farm, where whoever reaches it can run code")
    limit = f"give up, with exit code 3, when drawing will take longer (default {TIME_LIMIT:g})"
    add("--time-limit", type=arguments.duration, default=TIME_LIMIT, metavar="SECONDS", help=limit)
    add("--json", action="store_true", help="print exactly one JSON object")
    trust.add_arguments(command, ("picture",))


def command(args: argparse.Namespace) -> int:
    """Run `rayfold verify`: exit code 0 for the same bits, 1 for others."""
    if args.farm:
        supervise()
    answer = verify(args.picture, args.device, args.farm, args.insecure, args.time_limit)
    print_ignored(args.picture, answer["ignored"])
    if args.json:
        print(json.dumps(answer))
    else:
        print(describe(args.picture, answer))
        print(f"drawn on {answer['device']} in {answer['seconds']:.2f} s", file=sys.stderr)
    return 0 if answer["same"] else 1


def verify(
    path: Path, device: str, farm: str | None = None, insecure: bool = False, time_limit: float = TIME_LIMIT
) -> Json:
    """Draws the recipe of a picture again; returns the keys of compare(), the devices and seconds.

    If the shapes are equal, the answer has `digest` and `digest_again` too. `intact` is False if the samples differ
    from the digest in the file. Raises UserError or InputError, and IncompleteError as soon as the drawing will take
    longer than `time_limit` seconds.
    """
    start = time.monotonic()
    open_input(path).close()
    recipe, samples = read_recipe(path), read_samples(path)
    noted, found, interrupt = read_digest(path), sample_digest(samples), InterruptHandler()
    is_intact = noted == found if noted else None  # None: the file holds no digest
    with temporary_directory("verify") as folder:
        again = Path(folder, "again.png")
        bit_depth, denoise = 8 * samples.itemsize, recipe.get("denoise") is True
        # A farm's workers share no clock, so it takes no time limit.
        limit, transfer = None if farm else time_limit, "pq" if recipe.get("transfer") == "pq" else "srgb"
        settings: Json = {"bit_depth": bit_depth, "denoise": denoise, "time_limit": limit, "transfer": transfer}
        plan = make_plan(ExportOptions(path, again, device=device, farm=farm, insecure=insecure, **settings))
        shapes = [list(samples.shape), [plan.size[1], plan.size[0], samples.shape[2]]]
        if shapes[0] != shapes[1]:  # nothing needs to be drawn
            answer = compare(samples, np.broadcast_to(samples[:1, :1], shapes[1]))
            return answer | {"intact": is_intact, "device": "none", "seconds": 0.0, "ignored": []}
        drawn = carry_out(plan, start, interrupt, all_or_nothing=True)
        if interrupt.requested and not drawn.is_complete:
            raise KeyboardInterrupt
        if not drawn.is_complete:
            allowed = f"--time-limit is {time_limit:g} s; a larger one allows more"
            raise IncompleteError(f"{path}: its {plan.samples} samples take longer to draw again; {allowed}")
        answer = compare(samples, read_samples(again))
        answer |= {"digest": found, "digest_again": read_digest(again)}
    answer |= {"intact": is_intact, "device": drawn.device, "device_before": recipe.get("device")}
    answer["ignored"] = ignored_statements(plan.scene)
    return answer | {"seconds": time.monotonic() - start}


def compare(before: np.ndarray, after: np.ndarray) -> Json:
    """Compares two pictures, (height, width, channels) samples each.

    Keys: same, worst (largest difference), where ([x, y] of the worst), pixels (number that differ), max (white).
    """
    facts = {"same": False, "worst": None, "where": None, "pixels": None, "max": int(np.iinfo(before.dtype).max)}
    if before.shape != after.shape:
        return facts | {"shapes": [list(before.shape), list(after.shape)]}
    differences = np.abs(before.astype("i4") - after).max(axis=2)
    y, x = np.unravel_index(int(differences.argmax()), differences.shape)
    worst, pixels = int(differences[y, x]), int(np.count_nonzero(differences))
    return facts | {"same": not worst, "worst": worst, "where": [int(x), int(y)] if worst else None, "pixels": pixels}


def describe(path: Path, answer: Json) -> str:
    """Formats the result of verify() as a sentence."""
    changed = " (its samples were changed after it was written)" if answer["intact"] is False else ""
    if answer["same"]:
        return f"{path}: same bits, digest {answer['digest']}{changed}"
    if answer["where"] is None:
        return f"{path}: differs in height, width or channels: {answer['shapes'][0]}, drawn again {answer['shapes'][1]}"
    x, y = answer["where"]
    text = f"{answer['pixels']} pixels differ, most by {answer['worst']} of {answer['max']} at pixel ({x}, {y})"
    return f"{path}: differs: {text}{changed}"
