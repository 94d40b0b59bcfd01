"""A film of the active panel's scene, exported by a child process of `rayfold export`: its options, progress, cancel.

A canceled film keeps its frames; the next export of it goes on from them.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from renderer.errors import UserError
from renderer.export.frames import VIDEO_SUFFIXES
from renderer.records import dataclass
from renderer.scene.animation import DEFAULT_DURATION
from renderer.scene.schema import setting
from renderer.window.panels.panel import Panel
from renderer.window.state.command_child import CommandChild

CANCEL_SECONDS = 5.0  # after which a canceled child is killed
DEFAULT_SIZE = (1280, 720)


@dataclass(frozen=True)
class FilmOptions:
    """The options of the film dialog."""

    width: int = setting(DEFAULT_SIZE[0], 16, 8192, "pixels")
    height: int = setting(DEFAULT_SIZE[1], 16, 8192, "pixels")
    fps: int = setting(24, 1, 240, "frames a second of scene time")
    samples: int = setting(64, 1, 1 << 20, "a pixel of each frame", logarithmic=True)
    seconds: float = setting(DEFAULT_DURATION, 0.01, 1e5, "of scene time, from the start")
    denoise: bool = setting(False, help="guided by albedo and normal; needs pyoidn")

    @property
    def frames(self) -> int:
        """The number of frames."""
        return max(1, round(self.seconds * self.fps))


def options_for(panel: Panel) -> FilmOptions:
    """The default options for a panel's scene."""
    scene = panel.scene
    width, height = scene.size or DEFAULT_SIZE
    duration = scene.animation.duration if scene.animation and scene.animation.duration else DEFAULT_DURATION
    samples = getattr(scene.settings, "samples", None)
    samples = samples if isinstance(samples, int) else 64
    return FilmOptions(min(max(width, 16), 8192), min(max(height, 16), 8192), 24, samples, duration)


@dataclass
class FilmExport:
    """A running or finished export of one film."""

    output: Path
    options: FilmOptions
    child: CommandChild
    message: str = ""  # the result, once the export has ended
    is_canceled: bool = False

    @classmethod
    def start(cls, panel: Panel, output: Path, options: FilmOptions, device: str) -> "FilmExport":
        """Starts the export of a panel's scene as it is now; raises UserError for an output that is no film."""
        if output.suffix.lower() not in VIDEO_SUFFIXES:
            raise UserError(f"{output.name} is no film; allowed are {', '.join(VIDEO_SUFFIXES)}")
        folder = TemporaryDirectory(prefix="rayfold-film-")
        scene = Path(folder.name) / "scene.toml"
        scene.write_text(panel.document.text_for(scene).text, encoding="utf-8")
        arguments = ["export", str(scene), "-o", str(output.absolute()), "--json"]
        arguments += ["--size", f"{options.width}x{options.height}", "--fps", str(options.fps)]
        arguments += ["--frames", f"1-{options.frames}", "--samples", str(options.samples), "--device", device]
        arguments += ["--denoise"] if options.denoise else []
        arguments += [word for file in panel.scene.files for word in ("--allow", str(file))]  # the text lies elsewhere
        return cls(output, options, CommandChild(folder, arguments, "the export"))

    @property
    def is_running(self) -> bool:
        """True until the export has ended."""
        return not self.message

    def frames_done(self) -> int:
        """The number of frames that are drawn."""
        frames = self.output.with_name(f"{self.output.name}.frames")
        return min(len(list(frames.glob("*.png"))), self.options.frames) if frames.is_dir() else 0

    @property
    def fraction(self) -> float:
        """The fraction of the film that is done."""
        return self.frames_done() / self.options.frames

    def poll(self) -> None:
        """Sets the message once the child has ended."""
        if self.is_running and self.child.poll() is not None:
            self.message = self._ending(self.output.name)
            self.child.close()

    def _ending(self, name: str) -> str:
        if self.is_canceled:
            return f"{name} is canceled; its frames are kept, and the next export goes on from them"
        if self.child.poll() == 0:
            seconds = float(json.loads(self.child.output())["seconds"])
            return f"wrote {name}: {self.options.frames} frames in {seconds:.1f} s"
        return f"{name}: {self.child.failure()}"

    def cancel(self) -> None:
        """Asks the child to end; its frames stay."""
        if self.is_running and not self.is_canceled:
            self.is_canceled = True
            self.child.terminate()

    def close(self) -> None:
        """Ends the child: the window closes."""
        if self.is_running:
            self.cancel()
            self.child.close(CANCEL_SECONDS)
            self.message = "the window was closed"
