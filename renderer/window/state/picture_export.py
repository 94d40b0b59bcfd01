"""A picture or a film of the active panel's scene, written by a child process of `rayfold export`: progress, cancel.

What the command line does for its outputs holds here, too: locks, recipes, and pictures of others, which stay. A
canceled picture keeps its samples; the next export of a canceled film goes on from its frames.
"""

import json
import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from renderer.errors import UserError
from renderer.export.frames import VIDEO_SUFFIXES
from renderer.export.plan import DEFAULT_SIZE
from renderer.records import dataclass, field
from renderer.scene.animation import DEFAULT_DURATION
from renderer.scene.schema import setting
from renderer.system import drafts
from renderer.system.outputs import is_own
from renderer.window.panels.panel import Panel
from renderer.window.state.command_child import CommandChild

CANCEL_SECONDS = 5.0  # after which a canceled child is killed
FILM_SUFFIXES = (*VIDEO_SUFFIXES, ".png")  # .png: a file for each frame
STILL_SUFFIXES = (".png", ".exr")
MAX_SIDE = 32768
PROGRESS = re.compile(r": ([\d.]+) of (\d+) in [\d.]+ s(?:[,;].*)?$")  # a line of system/progress.py


@dataclass(frozen=True)
class StillOptions:
    """The options of a picture."""

    width: int = setting(DEFAULT_SIZE[0], 16, MAX_SIDE, "pixels", logarithmic=True)
    height: int = setting(DEFAULT_SIZE[1], 16, MAX_SIDE, "pixels", logarithmic=True)
    samples: int = setting(0, 0, 1 << 20, "a pixel, of each frame; 0: as many as the scene asks for", logarithmic=True)
    denoise: bool = setting(False, help="guided by albedo and normal; needs pyoidn")
    frames: ClassVar[int] = 0  # a picture; FilmOptions has the number of a film


@dataclass(frozen=True)
class FilmOptions(StillOptions):
    """The options of a film."""

    fps: int = setting(24, 1, 240, "frames a second of scene time")
    seconds: float = setting(DEFAULT_DURATION, 0.01, 1e5, "of scene time, from the start")

    @property
    def frames(self) -> int:  # type: ignore[override]
        """The number of frames."""
        return max(1, round(self.seconds * self.fps))


def options_for(panel: Panel, is_film: bool) -> StillOptions:
    """The default options for a panel's scene: what `rayfold export` takes."""
    scene = panel.scene
    shown = panel.draw_loop.size if panel.keeps_pixels else DEFAULT_SIZE  # strokes have a width in pixels
    width, height = (min(max(side, 16), MAX_SIDE) for side in scene.size or shown)
    samples = scene.samples or getattr(scene.settings, "samples", 0)
    samples = samples if isinstance(samples, int) else 0
    if not is_film:
        return StillOptions(width, height, samples)
    duration = scene.animation.duration if scene.animation and scene.animation.duration else DEFAULT_DURATION
    return FilmOptions(width, height, samples, fps=24, seconds=duration)


@dataclass
class PictureExport:
    """A running or finished export of one picture or film."""

    output: Path
    options: StillOptions
    child: CommandChild
    message: str = ""  # the result, once the export has ended
    is_canceled: bool = False
    fraction: float = 0.0  # part of the samples that is drawn
    status: str = "starting"  # the fraction and the time left, in words
    _began: tuple[float, float] | None = field(default=None, repr=False)  # time and fraction of the first progress

    @classmethod
    def start(cls, panel: Panel, output: Path, options: StillOptions, device: str) -> "PictureExport":
        """Starts the export of a panel's scene as it is now.

        UserError for an output of another kind, a picture that another program drew, and code that is not saved.
        """
        kind, suffixes = ("film", FILM_SUFFIXES) if options.frames else ("picture", STILL_SUFFIXES)
        if output.suffix.lower() not in suffixes:
            raise UserError(f"{output.name} is no {kind}; allowed are {', '.join(suffixes)}")
        if options.frames and output.suffix.lower() == ".png" and "#" not in output.name:
            output = output.with_stem(f"{output.stem}_####")
        if not is_own(output):
            raise UserError(f"{output.name} holds what Rayfold did not write: choose another name")
        for file in sorted({panel.original.path, *panel.scene.files} & drafts.texts.keys()):
            if file.suffix != ".toml":  # the panel's scene has the unsaved text of the file
                raise UserError(f"{file.name} has code that is not saved, and a picture names its code: save it first")
        folder = TemporaryDirectory(prefix="rayfold-export-")
        scene = Path(folder.name) / "scene.toml"
        scene.write_text(panel.document.text_for(scene).text, encoding="utf-8")
        arguments = ["export", str(scene), "-o", str(output.absolute()), "--json", "--device", device]
        arguments += ["--size", f"{options.width}x{options.height}"]
        arguments += ["--samples", str(options.samples)] if options.samples else []
        if isinstance(options, FilmOptions):
            arguments += ["--fps", str(options.fps), "--frames", f"1-{options.frames}"]
        else:
            arguments += ["--time", repr(panel.scene_time)]
        arguments += ["--denoise"] if options.denoise else []
        arguments += [word for file in panel.scene.files for word in ("--allow", str(file))]  # the text lies elsewhere
        return cls(output, options, CommandChild(folder, arguments, "the export"))

    @property
    def is_running(self) -> bool:
        """True until the export has ended."""
        return not self.message

    def poll(self) -> str:
        """Follows the progress; sets the message when the child has ended, and returns it that once."""
        if not self.is_running:
            return ""
        if self.child.poll() is not None:
            self.message = self._ending(self.output.name)
            self.child.close()
        elif match := PROGRESS.search(self.child.last_line()):
            self.fraction, now = min(float(match[1]) / int(match[2]), 1.0), time.monotonic()
            began, before = self._began = self._began or (now, self.fraction)
            drawn, self.status = self.fraction - before, f"{self.fraction:.0%}"
            if drawn > 0:
                left = round((now - began) * (1 - self.fraction) / drawn)
                self.status += f", {left // 60}:{left % 60:02} left"
        return self.message

    def _ending(self, name: str) -> str:
        """The message after the child's end: what was written, kept or refused."""
        output = self.child.output()
        answer = json.loads(output) if output else {}
        if self.is_canceled and self.options.frames:
            return f"{name} is canceled; its frames are kept, and the next export goes on from them"
        if self.is_canceled:
            kept = f"{Path(answer['output']).name} has the {answer['samples']} samples so far" if answer else ""
            return f"canceled: {kept or f'{name} is not written'}"
        if self.child.poll() == 0:
            what = f"{self.options.frames} frames" if self.options.frames else f"{answer['samples']} samples"
            return f"wrote {name}: {what} in {answer['seconds']:.1f} s"
        return f"{name}: {self.child.failure()}"

    def cancel(self) -> None:
        """Asks the child to end; its frames stay."""
        if self.is_running and not self.is_canceled:
            self.is_canceled, self.status = True, "ending"
            self.child.terminate()

    def close(self) -> None:
        """Ends the child: the window closes."""
        if self.is_running:
            self.cancel()
            self.child.close(CANCEL_SECONDS)
            self.message = "the window was closed"
