"""Checked access to the JSON and the buffers of a glTF file, for the other modules of renderer.formats.gltf.

The methods of Container return values of a stated type and range, or raise an InputError that names the item. Every
index, offset and size is checked before it is used.
"""

import base64
import re
import struct
import urllib.parse
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from renderer.errors import InputError
from renderer.formats.gltf import meshopt, usd
from renderer.formats.gltf.extensions import MESHOPT, SUPPORTED, unread
from renderer.plain import Json, format_value, is_finite_number
from renderer.system.files import file_stamp, parse_json, read_file, resolve
from renderer.system.trust import named_file

MAX_FILE_BYTES = 1 << 30  # bytes of the file, and of each file that it names
MAX_JSON_BYTES = 64 << 20  # bytes of JSON
MAX_COUNT = 1 << 26  # items of an array
MAX_ZEROS = 1 << 24  # items of all accessors without a buffer view, which consist of zeros
COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
INDICES = {number: kind for number, kind in COMPONENTS.items() if kind in ("<u1", "<u2", "<u4")}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
MAX_DECODED_BYTES = 1 << 30  # bytes of all compressed buffer views
BUFFER_SUFFIXES = (".bin", ".glbin", ".glbuf")  # as registered for application/gltf-buffer
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".ktx2")
MODES = ("ATTRIBUTES", "TRIANGLES", "INDICES")
JSON_CHUNK, BINARY_CHUNK = 0x4E4F534A, 0x004E4942  # "JSON" and "BIN\0" as little-endian words
REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")  # the beginning of a URI that names no file of a folder


class Container:
    """A glTF file that is being read: its JSON `tree`, its buffers, and its decoded accessors by index.

    In every method `item` names what errors are about, such as "nodes[3]". `ignored` counts the statements of the file
    that have no effect, in the form renderer.plain.format_ignored takes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        is_usd = path.suffix.lower() in usd.SUFFIXES
        data, ignored = usd.as_glb(path) if is_usd else (read_file(path, MAX_FILE_BYTES), Counter[str]())
        self.binary: memoryview | None = None
        self.linked: dict[Path, tuple[int, int] | None] = {}  # stamps of the files that this one refers to
        text = self._chunks(data) if data[:4] == b"glTF" else data
        if len(text) > MAX_JSON_BYTES:
            self.fail("its JSON", f"is larger than the {MAX_JSON_BYTES >> 20} MiB allowed")
        try:
            self.tree = parse_json(text)
        except ValueError as error:
            raise InputError(f"{path}: not a glTF file: {error}") from error
        if not isinstance(self.tree, dict):
            self.fail("its JSON", f"is {format_value(self.tree)}; it must be an object")
        version = self.object_at(self.tree, "asset", "the file").get("version")
        if not isinstance(version, str) or not version.startswith("2."):
            self.fail("asset", f"says version {format_value(version)}; 2.0 can be read")
        for name in self.list_at("extensionsRequired"):
            if not isinstance(name, str) or name not in SUPPORTED:
                self.fail("extensionsRequired", f"names {format_value(name)}, which this program does not read")
        # What was read so far, by index in the file's lists, which item() has checked.
        self.buffers: dict[object, memoryview] = {}
        self.accessors: dict[object, np.ndarray] = {}  # items (count, width)
        self.float_accessors: dict[object, np.ndarray] = {}  # as float32: the accessors that real() returned
        self.decompressed: dict[object, memoryview] = {}  # contents of meshopt-compressed buffer views
        self.taken = Counter[str]()  # what take() has added up: "decoded bytes", "zeros", ...
        self.ignored = unread(self.tree) + ignored

    def fail(self, item: str, what: str) -> NoReturn:
        """Raises an InputError: "PATH: ITEM WHAT"."""
        raise InputError(f"{self.path}: {item} {what}")

    def take(self, what: str, count: int, most: int, item: str) -> None:
        """Adds `count` to the whole file's total of `what`, such as "decoded bytes"; raises InputError above `most`."""
        self.taken[what] += count
        if self.taken[what] > most:
            self.fail(item, f"raises the {what} of the whole file above the {most} allowed")

    # ---- JSON -------------------------------------------------------------------------------------------------------
    def object_at(self, table: Json, key: str, item: str) -> Json:
        """Returns the object at a key of `table`; empty if the key is missing."""
        value = table.get(key, {})
        if not isinstance(value, dict):
            self.fail(item, f"has a {key} that is {format_value(value)}; it must be an object")
        return value

    def extension(self, table: Json, name: str, item: str) -> Json:
        """Returns the object of an extension of `table`; empty if `table` does not have the extension."""
        return self.object_at(self.object_at(table, "extensions", item), name, item)

    def list_at(self, key: str, table: Json | None = None, item: str = "the file", most: int = MAX_COUNT) -> list[Any]:
        """Returns the list at a key of `table` (default: the file's JSON); empty if the key is missing."""
        value = (self.tree if table is None else table).get(key, [])
        if not isinstance(value, list):
            self.fail(item, f"has {key} that are {format_value(value)}; they must be a list")
        if len(value) > most:
            self.fail(item, f"has {len(value)} {key}; {most} are allowed")
        return value

    def objects(
        self, key: str, table: Json | None = None, item: str = "the file", most: int = MAX_COUNT
    ) -> Iterator[tuple[str, Json]]:
        """Yields the objects of the list at a key, each after its name for errors: "meshes[0].primitives[1]"."""
        for index, value in enumerate(self.list_at(key, table, item, most)):
            name = f"{key}[{index}]" if table is None else f"{item}.{key}[{index}]"
            if not isinstance(value, dict):
                self.fail(name, f"is {format_value(value)}; it must be an object")
            yield name, value

    def item(self, group: str, index: object, item: str, table: Json | None = None) -> Json:
        """Returns the object group[index] of `table` (default: the file's JSON)."""
        values = self.list_at(group, table)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(values):
            self.fail(item, f"names {group}[{format_value(index)}]; there are {len(values)}, from 0")
        value = values[index]
        if not isinstance(value, dict):
            self.fail(f"{group}[{index}]", f"is {format_value(value)}; it must be an object")
        return value

    def number(self, table: Json, key: str, default: float | None, low: float, high: float, item: str) -> float:
        """Returns the finite number at a key, which must lie in [low, high]; a `default` of None makes it mandatory."""
        value = table.get(key, default)
        if not is_finite_number(value) or not low <= value <= high:
            self.fail(item, f"has a {key} of {format_value(value)}; it must be {low:g} to {high:g}")
        return value

    def count(self, table: Json, key: str, default: int | None, item: str, most: int = MAX_FILE_BYTES) -> int:
        """Returns the whole number at a key, from 0 to `most`; a `default` of None makes the key mandatory."""
        value: Any = table.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            self.fail(item, f"has a {key} of {format_value(value)}; it must be a whole number from 0 to {most}")
        return value

    def word(self, table: Json, key: str, allowed: Collection[str], item: str, default: object = None) -> str:
        """Returns the text at a key, which must be one of those allowed."""
        value = table.get(key, default)
        if not isinstance(value, str) or value not in allowed:
            self.fail(item, f"has the {key} {format_value(value)}; allowed are {', '.join(allowed)}")
        return value

    def one_of(self, table: Json, key: str, allowed: dict[int, str], item: str, default: int | None = None) -> str:
        """Looks up the number at a key in `allowed` and returns its value there."""
        value = table.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
            self.fail(item, f"has the {key} {format_value(value)}; allowed are {list(allowed)}")
        return allowed[value]

    def numbers(
        self, table: Json, key: str, default: tuple[float, ...], item: str, low: float = -1e18, high: float = 1e18
    ) -> tuple[float, ...]:
        """Returns the list of numbers at a key; it must be as long as `default`, each number in [low, high]."""
        value = table.get(key, default)
        if not isinstance(value, (list, tuple)) or len(value) != len(default):
            self.fail(item, f"has a {key} that is {format_value(value)}; it must be {len(default)} numbers")
        if not all(is_finite_number(v) and low <= v <= high for v in value):
            self.fail(item, f"has a {key} of {format_value(value)}; each must be {low:g} to {high:g}")
        return tuple(float(v) for v in value)

    # ---- bytes ------------------------------------------------------------------------------------------------------
    def _chunks(self, data: bytes) -> bytes:
        """Splits a .glb into chunks: returns the JSON and stores the binary chunk in `binary`.

        A header of 12 bytes ("glTF", version, length) is followed by chunks: size and kind, 8 bytes, then the content.
        """
        if len(data) < 20:
            self.fail("the file", "ends within its header")
        version, length = struct.unpack("<II", data[4:12])
        if version != 2 or length > len(data):
            self.fail("its header", f"says version {version} and {length} bytes; there are {len(data)}")
        text, at = None, 12
        while at + 8 <= length:
            size, kind = struct.unpack("<II", data[at : at + 8])
            if at + 8 + size > length:
                self.fail(f"its chunk at byte {at}", f"says {size} bytes; {length - at - 8} are left")
            chunk = memoryview(data)[at + 8 : at + 8 + size]
            if kind == JSON_CHUNK and text is None:
                text = bytes(chunk)
            elif kind == BINARY_CHUNK and self.binary is None:
                self.binary = chunk
            end = at + 8 + size
            # Chunks are padded to 4 bytes. Some writers omit the padding: then the kind of the binary chunk is found 4
            # bytes after the end, behind that chunk's size.
            is_padded = data[end + 4 : end + 8] != struct.pack("<I", BINARY_CHUNK)
            at = end + (-size % 4 if is_padded else 0)
        if text is None:
            self.fail("the file", "has no chunk of JSON")
        return text

    def content(self, uri: object, item: str) -> bytes:
        """Reads the bytes of a data: URI, or of a file in the glTF file's folder or below."""
        if not isinstance(uri, str):
            self.fail(item, f"has a uri that is {format_value(uri)}; it must be a text")
        if uri[:5].lower() == "data:":
            head, comma, body = uri.partition(",")
            with suppress(ValueError):
                if comma and head.lower().endswith(";base64"):
                    return base64.b64decode(urllib.parse.unquote(body), validate=True)
            self.fail(item, "has a data: URI that is not base64")
        name = urllib.parse.unquote(uri)
        if REMOTE.match(uri) or "\0" in name or "\\" in name:
            self.fail(item, f"has the uri {format_value(uri)}; a file in the same folder or data: is allowed")
        suffixes = IMAGE_SUFFIXES if item.startswith("images") else BUFFER_SUFFIXES
        target = named_file(name, self.path.parent, suffixes, f"{self.path}: {item}: its uri")
        self.linked[target] = file_stamp(target)
        return read_file(target, MAX_FILE_BYTES)

    def lacks(self, uri: object) -> bool:
        """True if a URI names a missing file in the glTF file's folder or below.

        The file is then listed in `linked`, so that the window reloads the glTF file when it appears.
        """
        if not isinstance(uri, str) or REMOTE.match(uri):
            return False
        folder, name = resolve(self.path.parent), urllib.parse.unquote(uri)
        try:
            target = resolve(folder / name)
            if "\\" in name or not target.is_relative_to(folder) or target.exists():
                return False
        except (OSError, ValueError):  # not a valid file name; content() reports it
            return False
        self.linked[target] = file_stamp(target)
        return True

    def buffer(self, index: object, item: str) -> memoryview:
        """Returns the bytes of buffers[index]."""
        entry = self.item("buffers", index, item)
        if index not in self.buffers:
            name = f"buffers[{index}]"
            length = self.count(entry, "byteLength", None, name)
            if "uri" in entry:
                data = memoryview(self.content(entry["uri"], name))
            elif self.binary is not None and index == 0:
                data = self.binary
            else:
                self.fail(name, "has no uri, and the file has no binary chunk for it")
            if len(data) < length:
                self.fail(name, f"says {length} bytes; there are {len(data)}")
            self.buffers[index] = data[:length]
        return self.buffers[index]

    def view(self, index: object, item: str) -> tuple[memoryview, int]:
        """Returns the bytes of bufferViews[index], decompressed, and its stride in bytes; 0 means contiguous items."""
        entry, name = self.item("bufferViews", index, item), f"bufferViews[{index}]"
        extensions = self.object_at(entry, "extensions", name)
        compressed = next((extensions[key] for key in MESHOPT if key in extensions), None)
        if compressed is not None:
            if index not in self.decompressed:
                self.decompressed[index] = self._decompressed(compressed, name)
            return self.decompressed[index], self.count(entry, "byteStride", 0, name, 252)
        return self._range(entry, name), self.count(entry, "byteStride", 0, name, 252)

    def _range(self, table: Json, name: str) -> memoryview:
        """Returns the bytes of a buffer that a buffer view, or the object of its compression, refers to."""
        data = self.buffer(table.get("buffer"), name)
        start, length = self.count(table, "byteOffset", 0, name), self.count(table, "byteLength", None, name)
        if start + length > len(data):
            self.fail(name, f"goes from byte {start} to {start + length}; its buffer has {len(data)}")
        return data[start : start + length]

    def _decompressed(self, table: object, name: str) -> memoryview:
        """Decompresses a buffer view; `table` is the object of its meshopt extension."""
        if not isinstance(table, dict):
            self.fail(name, f"has a compression that is {format_value(table)}; it must be an object")
        data = self._range(table, name)
        count, stride = self.count(table, "count", None, name, MAX_COUNT), self.count(table, "byteStride", None, name)
        mode, filter_name = self.word(table, "mode", MODES, name), table.get("filter", "NONE")
        if filter_name not in meshopt.STRIDES or (mode != "ATTRIBUTES" and filter_name != "NONE"):
            self.fail(name, f"has the filter {format_value(filter_name)} of {mode}")
        allowed = meshopt.STRIDES[filter_name] if mode == "ATTRIBUTES" else (2, 4)
        if stride not in allowed or (mode == "TRIANGLES" and count % 3):
            elements = f"{count} elements of {stride} bytes"
            self.fail(name, f"has {elements}, which {mode} with the filter {filter_name} cannot")
        self.take("decoded bytes", count * stride, MAX_DECODED_BYTES, name)
        try:
            return memoryview(meshopt.decode(bytes(data), count, stride, mode, filter_name))
        except ValueError as error:
            raise InputError(f"{self.path}: {name} is damaged: {error}") from error

    def array(self, table: Json, count: int, kind: str, width: int, item: str) -> np.ndarray:
        """Views the bytes of the buffer view that `table` refers to as `count` items of `width` numbers of `kind`."""
        data, stride = self.view(table.get("bufferView"), item)
        dtype, offset = np.dtype(kind), self.count(table, "byteOffset", 0, item)
        stride = stride or dtype.itemsize * width
        if stride < dtype.itemsize * width:
            self.fail(item, f"has items of {dtype.itemsize * width} bytes in a view with a byteStride of {stride}")
        if count and offset + (count - 1) * stride + dtype.itemsize * width > len(data):
            self.fail(item, f"has {count} items from byte {offset}; its view has {len(data)} bytes")
        if not count:
            return np.zeros((0, width), dtype)
        return np.ndarray((count, width), dtype, data, offset, (stride, dtype.itemsize))

    def accessor(self, index: object, kinds: tuple[str, ...], item: str) -> np.ndarray:
        """Returns the items (count, width) of accessors[index], whose type must be one of `kinds`.

        Integers keep their type; normalized integers become float32. Floats are checked to be finite.
        """
        entry, name = self.item("accessors", index, item), f"accessors[{index}]"
        if entry.get("type") not in kinds:
            self.fail(item, f"needs {' or '.join(kinds)}; {name} is {format_value(entry.get('type'))}")
        if index in self.accessors:
            return self.accessors[index]
        width, kind = WIDTHS[entry["type"]], self.one_of(entry, "componentType", COMPONENTS, name)
        count = self.count(entry, "count", None, name, MAX_COUNT)
        if "bufferView" in entry:
            values = self.array(entry, count, kind, width, name)
        else:
            self.take("zeros", count, MAX_ZEROS, name)
            values = np.zeros((count, width), kind)
        self.accessors[index] = self._finished(entry, values, name, kind)
        return self.accessors[index]

    def _finished(self, entry: Json, values: np.ndarray, name: str, kind: str) -> np.ndarray:
        """Returns the stored or decoded values of an accessor with its sparse values, normalized and finite."""
        if "sparse" in entry:
            values = self._with_sparse(values, self.object_at(entry, "sparse", name), kind, f"{name}.sparse")
        if entry.get("normalized") is True and values.dtype.kind in "iu":
            values = np.maximum(values / np.float32(np.iinfo(values.dtype).max), np.float32(-1)).astype("f4")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            wrong = np.flatnonzero(~np.isfinite(values).all(1))[0]
            self.fail(name, f"holds {values[wrong].tolist()} as item {wrong}; numbers must be finite")
        return values

    def add_accessor(self, original: object, values: np.ndarray, name: str) -> int:
        """Adds an accessor of values (n, width) that Draco decoded, typed as accessors[original]; returns its index.

        Normalized integers become fractions. Raises InputError if a value is not finite or the width differs.
        """
        entry = self.item("accessors", original, name)
        if WIDTHS.get(str(entry.get("type"))) != values.shape[1]:
            self.fail(name, f"decodes to {values.shape[1]} numbers; its accessor is {format_value(entry.get('type'))}")
        kind = self.one_of(entry, "componentType", COMPONENTS, name)
        return self.add(entry, self._finished(entry, values, name, kind))

    def add(self, entry: Json, values: np.ndarray) -> int:
        """Adds an accessor whose items (count, width) are known; returns its index."""
        accessors = self.tree["accessors"] = self.list_at("accessors")
        accessors.append(entry)
        self.accessors[len(accessors) - 1] = values
        return len(accessors) - 1

    def real(self, index: object, kinds: tuple[str, ...], item: str) -> np.ndarray:
        """Returns the items of an accessor as float32; one array, shared by all who refer to the accessor."""
        values = self.accessor(index, kinds, item)
        if index not in self.float_accessors:
            self.float_accessors[index] = values.astype("f4", copy=False)
        return self.float_accessors[index]

    def per_vertex(self, index: object, key: str, kinds: tuple[str, ...], count: int, item: str) -> np.ndarray:
        """real() of an attribute; fails unless it has `count` items, one for each vertex."""
        values = self.real(index, kinds, item)
        if len(values) != count:
            self.fail(item, f"has {len(values)} items of {key} for {count} vertices")
        return values

    def _with_sparse(self, values: np.ndarray, sparse: Json, kind: str, name: str) -> np.ndarray:
        """The values with some replaced, as the accessor's object `sparse` lists them."""
        count = self.count(sparse, "count", None, name, len(values))
        indices, replaced = self.object_at(sparse, "indices", name), self.object_at(sparse, "values", name)
        index_kind = self.one_of(indices, "componentType", INDICES, f"{name}.indices")
        rows = self.array(indices, count, index_kind, 1, f"{name}.indices")[:, 0]
        if count and rows.max() >= len(values):
            self.fail(name, f"replaces item {rows.max()}; there are {len(values)}, from 0")
        values = values.copy()
        values[rows] = self.array(replaced, count, kind, values.shape[1], f"{name}.values")
        return values
