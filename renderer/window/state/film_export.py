"""A film of the active panel's scene, exported by a child process of `rayfold export`: its options, progress, cancel.

The window goes on meanwhile. A film that was canceled keeps its frames; the next export of it goes on from them.
"""

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from renderer.errors import UserError
from renderer.export.frames import VIDEO_SUFFIXES
from renderer.process import module_child
from renderer.scene.animation import DEFAULT_DURATION
from renderer.scene.schema import setting
from renderer.window.panels.panel import Panel

MAX_LINE = 300  # characters of an error that are shown
CANCEL_SECONDS = 5.0  # for a child to end, before it is killed
DEFAULT_SIZE = (1280, 720)


@dataclass(frozen=True)
class FilmOptions:
    """What the film dialog asks."""

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
    """The options that a scene suggests."""
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
    process: subprocess.Popen
    folder: tempfile.TemporaryDirectory = field(repr=False)
    message: str = ""  # how it ended
    is_canceled: bool = False

    @classmethod
    def start(cls, panel: Panel, output: Path, options: FilmOptions, device: str) -> "FilmExport":
        """Starts the export of a panel's scene as it is now; raises UserError for an output that is no film."""
        if output.suffix.lower() not in VIDEO_SUFFIXES:
            raise UserError(f"{output.name} is no film; allowed are {', '.join(VIDEO_SUFFIXES)}")
        folder = tempfile.TemporaryDirectory(prefix="rayfold-film-")
        scene = Path(folder.name) / "scene.toml"
        scene.write_text(panel.document.text_for(scene).text, encoding="utf-8")
        command, environment = module_child("renderer")
        command += ["export", str(scene), "-o", str(output.absolute()), "--json"]
        command += ["--size", f"{options.width}x{options.height}", "--fps", str(options.fps)]
        command += ["--frames", f"1-{options.frames}", "--samples", str(options.samples), "--device", device]
        command += ["--denoise"] if options.denoise else []
        streams = [open(Path(folder.name) / name, "wb") for name in ("out", "err")]  # a pipe could fill up
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=streams[0], stderr=streams[1], env=environment
            )
        except OSError as error:
            folder.cleanup()
            raise UserError(f"the export cannot be started: {error.strerror}") from error
        finally:
            for stream in streams:
                stream.close()
        return cls(output, options, process, folder)

    @property
    def is_running(self) -> bool:
        """Whether the child works."""
        return not self.message

    def frames_done(self) -> int:
        """The frames that are drawn."""
        found = self.output.with_name(f"{self.output.name}.frames")
        return min(len(list(found.glob("*.png"))), self.options.frames) if found.is_dir() else 0

    @property
    def fraction(self) -> float:
        """The fraction of the film that is done."""
        return self.frames_done() / self.options.frames

    def poll(self) -> None:
        """Takes over how the child ended."""
        if self.message or self.process.poll() is None:
            return
        self.message = self._ending()
        self.folder.cleanup()

    def _ending(self) -> str:
        if self.is_canceled:
            return f"{self.output.name} is canceled; its frames are kept, and the next export goes on from them"
        out, err = ((Path(self.folder.name) / name).read_text("utf-8", "replace") for name in ("out", "err"))
        if self.process.returncode == 0:
            seconds = float(json.loads(out)["seconds"])
            return f"wrote {self.output.name}: {self.options.frames} frames in {seconds:.1f} s"
        last = err.strip().rpartition("\n")[2].removeprefix("rayfold: ").removeprefix("error: ")
        return f"{self.output.name}: {last[:MAX_LINE] or f'the export ended with code {self.process.returncode}'}"

    def cancel(self) -> None:
        """Asks the child to end; its frames stay."""
        if self.is_running and not self.is_canceled:
            self.is_canceled = True
            self.process.terminate()

    def close(self) -> None:
        """Ends the child: the window closes."""
        if self.is_running:
            self.cancel()
            try:
                self.process.wait(CANCEL_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.poll()
