"""Fixture of the tests of toys."""

import pytest

from renderer.gpu import DeviceContext
from renderer.pictures import load
from renderer.pictures.toy import Picture


@pytest.fixture
def opened(gl, tmp_path):
    """Opens a text as a .glsl file: its picture and settings."""

    def open_text(text: str, name: str = "toy.glsl", is_live: bool = False):
        path = tmp_path / name
        path.write_text(text)
        picture = Picture(DeviceContext(gl=gl))
        picture._is_live = is_live
        return picture, load(path).settings

    return open_text
