"""The options of `rayfold export`: each is declared once, as a field of ExportOptions with its argparse settings."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from renderer.errors import UserError
from renderer.plain import Json
from renderer.records import dataclass, field, fields
from renderer.system import arguments, trust

INPUT_HELP = "scene .toml, mesh, .flame, .cb program, light field, or a PNG that Rayfold wrote"
OUTPUT_HELP = ".png, .exr, a video, or frames as out_####.png"
SAMPLES_HELP = (
    "samples to accumulate (default: from the scene file); of a flame, batches of up to 16 million points or a 64th of"
    " its points: --quality says how many it has"
)
NOISE_HELP = (
    "draw until the noise is below this: 1%% of white in a flame, of each pixel's luminance in a ray traced picture"
)


def _option(
    help: str, metavar: str | None = None, type: object = None, default: object = None, **settings: object
) -> Any:
    """Returns a field of ExportOptions whose metadata are the keywords of add_argument() for this option."""
    given = {"metavar": metavar, "type": type} | settings
    keywords = {name: value for name, value in given.items() if value is not None}
    return field(default=default, metadata={"help": help, "default": default, **keywords})


def _flag(help: str) -> bool:
    return field(default=False, metadata={"help": help, "default": False, "action": "store_true"})


@dataclass(frozen=True)
class ExportOptions:
    """The options of one export; None for an option that is not given."""

    input: Path = field(metadata={"metavar": "INPUT", "type": Path, "help": INPUT_HELP})
    output: Path = field(metadata={"metavar": "OUT", "type": arguments.output, "required": True, "help": OUTPUT_HELP})
    size: tuple[int, int] | None = _option("in pixels (default: from the scene file)", "WxH", arguments.size)
    samples: int | None = _option(SAMPLES_HELP, "N", arguments.positive)
    quality: str | None = _option("samples per pixel of a flame (default: from its file)", "Q")
    time: float | None = _option("seconds into an animated scene (default 0)", "T", arguments.seconds)
    frames: str | None = _option("frame numbers of a video or of out_####.png, as 1-48; the first shows --time", "A-B")
    fps: int = _option("frames a second of scene time (default 24)", "FPS", arguments.positive, 24)
    animation: str | None = _option("of a model: name or number, from 0, of what plays (default: the first)", "NAME")
    variant: str | None = _option("of a model: its material variant (default: the file's own materials)", "NAME")
    seed: int | None = _option("of the random numbers; the same seed gives the same picture", "S", arguments.seed)
    device: str = _option("cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto", default="auto")
    environment: str | None = _option(
        "light of a model or scene: studio, overcast, sunset, none, or an .exr or .hdr file", "NAME"
    )
    set: Sequence[str] = _option("a setting of the scene; repeatable", "KEY=VALUE", action="append", default=())
    bit_depth: int = _option(
        "bits per channel: 8 or 16 of a PNG, 8 or 10 of a film (default 8)", type=int, default=8, choices=(8, 10, 16)
    )
    transfer: str = _option(
        "pq writes high dynamic range: Rec. 2020 in PQ, radiance 1 at 203 nits (default srgb)",
        default="srgb",
        choices=("srgb", "pq"),
    )
    tile: int = _option("draw in tiles of N x N (default: only large pictures)", "N", arguments.positive, 0)
    time_limit: float | None = _option(
        "stop drawing after this time (10 s more at most); exit code 3 if samples are missing",
        "SECONDS",
        arguments.duration,
    )
    denoise: bool = _flag("denoise, guided by albedo and normal, by density or by color alone (pyoidn)")
    overwrite: bool = _flag("draw frames again that are already done")
    force: bool = _flag(
        "write though another process writes there, and over finished files and files that this program did not write"
    )
    dry_run: bool = _flag("print the plan and the memory it takes, and stop")
    light_field: tuple[int, int] | None = _option(
        "export a light field: OUT is a folder of its views", "ROWSxCOLUMNS", arguments.grid
    )
    baseline: float | None = _option(
        "distance of neighboring cameras, in scene units (default: a disparity of 2 pixels at the target)", "B", float
    )
    farm: str | None = _option("local:N processes, or a scheduler at tls://HOST:PORT or tcp://HOST:PORT", "CLUSTER")
    insecure: bool = _flag("allow a tcp:// farm, where whoever reaches it can run code")
    split: str | None = _option("what a farm distributes of one picture (default: tiles)", choices=("tiles", "samples"))
    noise: float | None = _option(NOISE_HELP, "N%", arguments.fraction)
    flame: str = _option("which flame of a file, from 0; all: numbered pictures", "N|NAME|all", default="")
    film: bool = _flag("the flames of a file are key frames; frame N shows time N")
    loop: int | None = _option("a film of N frames in which a flame's xforms turn once around", "N", arguments.positive)
    sheet: bool = _flag("a contact sheet of all flames of a file")
    json: bool = _flag("print exactly one JSON object")
    profile: bool = _flag("say on stderr, or in --json, what each stage took since the start")

    def refuse(self, what: str, *names: str) -> None:
        """UserError for the first option of `names` that was given: these options do not go together with `what`."""
        for name in names:
            if getattr(self, name):
                raise UserError(f"--{name.replace('_', '-')}: not together with {what}")

    def picture_facts(self) -> Json:
        """Keys that these options add to a picture's recipe (pictures.make_recipe, which leaves out None)."""
        return {"denoise": self.denoise or None, "transfer": None if self.transfer == "srgb" else self.transfer}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the options of `rayfold export`."""
    names = {"input": ("input",), "output": ("-o", "--output")}
    for option in fields(ExportOptions):
        keywords = dict(option.metadata)
        if option.name == "set":
            keywords["default"] = []  # a list, to which argparse appends
        command.add_argument(*names.get(option.name, (f"--{option.name.replace('_', '-')}",)), **keywords)
    # --max-memory, --untrusted and --allow: limits of the process, no fields of ExportOptions. Named are the arguments
    # that may hold paths.
    trust.add_arguments(command, ("input", "output", "environment", "set"))


def parse_options(args: argparse.Namespace) -> ExportOptions:
    """Converts argparse's namespace to ExportOptions."""
    return ExportOptions(**{option.name: getattr(args, option.name) for option in fields(ExportOptions)})
