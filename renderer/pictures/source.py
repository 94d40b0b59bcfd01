"""The base of pictures that process another picture or an image file (laplacian.py, reduction.py)."""

from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from renderer.errors import InputError
from renderer.formats.images import IMAGE_SUFFIXES, read_image
from renderer.gpu import DeviceContext
from renderer.pictures import SCENE_SUFFIXES, load, open_picture
from renderer.pictures.picture import AnyPicture, Picture, Size
from renderer.scene.scene import Scene
from renderer.scene.schema import PictureSettings

SOURCE_SUFFIXES = (*SCENE_SUFFIXES, *IMAGE_SUFFIXES, ".exr")


class SourceSettings(PictureSettings):
    """Settings with the `source`: the path of a scene or an image file."""

    source: str


class Source(NamedTuple):
    """The scene that is processed, and its picture."""

    scene: Scene
    picture: AnyPicture


AnySourceSettings = TypeVar("AnySourceSettings", bound=SourceSettings)


class SourcePicture(Picture[AnySourceSettings]):
    """A picture made of another picture or of an image. `kind` is its value of `picture` in scene files."""

    drawn_whole = True
    kind: ClassVar[str]
    image_suffixes: ClassVar[tuple[str, ...]]

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self._path = ""
        self._source: Source | None = None
        self._pixels = np.zeros((0, 0, 4), "f4")  # (height, width, 4) of an image

    def open_source(self, path: str) -> Source | None:
        """The scene and picture of the source; None for an image, whose pixels are then in _pixels."""
        if self._path != path:
            if Path(path).suffix.lower() in self.image_suffixes:
                self._source, self._pixels = None, read_image(Path(path))
            else:
                scene = load(Path(path))
                if scene.picture in (self.kind, "layout"):
                    wanted = f"the source of a {self.kind} must be a picture of another kind"
                    raise InputError(f"{path}: is a {scene.picture}; {wanted}")
                self._source = Source(scene, open_picture(scene, self.gpu))
            self._path = path
        return self._source

    def restart(self) -> None:
        """Restart the source."""
        if self._source:
            self._source.picture.restart()

    def sample_count(self, settings: AnySourceSettings, size: Size) -> int:
        """The samples of the source; 1 for an image."""
        source = self.open_source(settings.source)
        return source.picture.sample_count(source.scene.settings, size) if source else 1

    def depends_on_time(self, settings: AnySourceSettings) -> bool:
        """True if the source depends on time."""
        source = self.open_source(settings.source)
        return bool(source and source.picture.depends_on_time(source.scene.settings))
