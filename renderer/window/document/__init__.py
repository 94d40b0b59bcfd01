"""The document: a scene with the TOML text that it is saved as, and the commands that change its items."""

from renderer.window.document.document import Document as Document
from renderer.window.document.items import Item as Item
