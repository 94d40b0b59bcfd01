"""Reads polygon files (.ply, G. Turk 1994), as text and binary in both byte orders.

Vertices, normals, colors, texture coordinates, polygons and triangle strips are read; other elements and properties are
counted as ignored. Rows of one size are viewed as one NumPy array; lists of different lengths are read row by row.
"""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from renderer.formats.gltf.model import Material, Texture, TextureSlot
from renderer.formats.meshes.contents import MeshError, MeshFile, fans, numbers_in, plain_primitive, strips
from renderer.plain import format_value, parse_whole

MAX_HEADER_BYTES = 1 << 20
MAX_ROWS = 1 << 30
TYPES = {"char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2", "ushort": "u2",
         "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4", "float": "f4", "float32": "f4",
         "double": "f8", "float64": "f8"}  # fmt: skip
ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
LISTS = ("vertex_indices", "vertex_index")
COLORS = (("red", "green", "blue", "alpha"), ("r", "g", "b", "a"),
          ("diffuse_red", "diffuse_green", "diffuse_blue", "diffuse_alpha"))  # fmt: skip
SPLAT = {"opacity", "scale_0", "rot_0", "f_dc_0"}  # properties of a Gaussian (B. Kerbl et al. 2023)
TEXCOORDS = (("s", "t"), ("u", "v"), ("texture_u", "texture_v"))
KNOWN = {"x", "y", "z", "nx", "ny", "nz", *(name for names in (*COLORS, *TEXCOORDS) for name in names)}


@dataclass(frozen=True)
class Property:
    """A property of an element: a number of NumPy type `kind`, or a list of them after a count of `count_kind`."""

    name: str
    kind: str
    count_kind: str = ""


@dataclass(frozen=True)
class Element:
    """An element of the header: its name, number of rows, and properties."""

    name: str
    count: int
    properties: list[Property]


@dataclass
class Rows:
    """The rows of an element by property: numbers (n,); lists as all items (m,) and each row's list length (n,)."""

    numbers: dict[str, np.ndarray]
    lists: dict[str, tuple[np.ndarray, np.ndarray]]


def read_ply(data: bytes, textures: dict[str, Texture] | None = None) -> MeshFile:
    """Parses a .ply file; raises MeshError. `textures` holds the pictures by the names in its TextureFile comments."""
    elements, order, body = _header(data)
    source: _Text | _Binary = _Text(data[body:]) if order == "=" else _Binary(memoryview(data)[body:], order)
    rows: dict[str, Rows] = {}
    ignored: dict[str, int] = {}
    for element in elements:
        read = source.rows(element)
        if element.name in rows or element.name not in ("vertex", "face", "tristrips"):
            ignored[f"element {element.name} rows"] = element.count
        else:
            rows[element.name] = read
            known = KNOWN if element.name == "vertex" else set(LISTS)
            unread = [p.name for p in element.properties if p.name not in known]
            ignored |= {f"property {element.name}.{name} values": element.count for name in unread if element.count}
    if "vertex" not in rows:
        raise MeshError("has no element named vertex")
    names = texture_names(data)
    file = (textures or {}).get(names[0]) if names else None
    if names and file is None:
        ignored[f"missing {names[0]} files"] = 1
    ignored |= {f"TextureFile {name} comments": 1 for name in names[1:]}
    return _mesh(rows, ignored, file)


def texture_names(data: bytes) -> list[str]:
    """Returns the names of pictures in the TextureFile comments of a .ply file's header."""
    head = data[:MAX_HEADER_BYTES].split(b"end_header")[0]
    return [m.decode("utf-8", "replace").strip() for m in re.findall(rb"\ncomment TextureFile ([^\r\n]+)", head)]


def _header(data: bytes) -> tuple[list[Element], str, int]:
    """Parses the header: elements, byte order as NumPy's character, and the offset of the first row."""
    end = re.search(rb"(^|[\r\n])end_header[ \t]*(\r\n|\n|\r)", data[:MAX_HEADER_BYTES])
    if not data.startswith(b"ply") or not end:
        raise MeshError("its header does not go from ply to end_header")
    elements: list[Element] = []
    order = ""
    for line in data[: end.start()].decode("utf-8", "replace").splitlines()[1:]:
        words = line.split()
        if not words or words[0] in ("obj_info", "comment"):
            continue
        if words[0] == "format" and len(words) == 3 and words[1] in ORDERS:
            order = ORDERS[words[1]]
        elif words[0] == "element" and len(words) == 3:
            count = parse_whole(words[2], 0, MAX_ROWS)
            if count is None:
                raise MeshError(f"says {format_value(line)}; 0 to {MAX_ROWS} rows can be read")
            elements.append(Element(words[1], count, []))
        elif words[0] == "property" and elements and (made := _property(words)):
            elements[-1].properties.append(made)
        else:
            raise MeshError(f"has the line {format_value(line)} in its header, which cannot be read")
    if not order:
        raise MeshError(f"has no line with its format; allowed are {', '.join(ORDERS)}")
    return elements, order, end.end()


def _property(words: list[str]) -> Property | None:
    if len(words) == 3 and words[1] in TYPES:
        return Property(words[2], TYPES[words[1]])
    if len(words) == 5 and words[1] == "list" and TYPES.get(words[2], "f")[0] != "f" and words[3] in TYPES:
        return Property(words[4], TYPES[words[3]], TYPES[words[2]])
    return None


class _Binary:
    """Reads the rows of a binary file, element by element."""

    def __init__(self, data: memoryview, order: str):
        self._data, self._order, self._place = data, order, 0

    def rows(self, element: Element) -> Rows:
        """The rows of the next element."""
        left = len(self._data) - self._place
        least = sum(np.dtype(p.count_kind or p.kind).itemsize for p in element.properties)
        if element.count * least > left:
            raise MeshError(f"says {element.count} rows of {element.name}; {left} bytes of them cannot be read")
        if not element.count or not least:
            return _no_rows(element)
        return self._equal_rows(element) or self._different_rows(element)

    def _equal_rows(self, element: Element) -> Rows | None:
        """Views the rows as one array if every list is as long as the first row's; else returns None."""
        fields, place = [], self._place
        for index, p in enumerate(element.properties):
            if p.count_kind:
                kind = np.dtype(self._order + p.count_kind)
                if place + kind.itemsize > len(self._data):
                    return None
                length = int(np.frombuffer(self._data, kind, 1, place)[0])
                item = np.dtype(self._order + p.kind)
                if not 0 <= length * item.itemsize <= len(self._data):
                    return None
                fields += [(f"n{index}", kind), (f"p{index}", item, (length,))]
                place += kind.itemsize + length * item.itemsize
            else:
                fields.append((f"p{index}", np.dtype(self._order + p.kind)))
                place += np.dtype(p.kind).itemsize
        row = np.dtype(fields)
        if element.count * row.itemsize > len(self._data) - self._place:
            return None
        array = np.frombuffer(self._data, row, element.count, self._place)
        counted = [index for index, p in enumerate(element.properties) if p.count_kind]
        if any((array[f"n{index}"] != array[f"n{index}"][0]).any() for index in counted):
            return None
        self._place += array.nbytes
        out = _no_rows(element)
        for index, p in enumerate(element.properties):
            if p.count_kind:
                values = array[f"p{index}"]
                out.lists[p.name] = values.reshape(-1), np.full(element.count, values.shape[1])
            else:
                out.numbers[p.name] = array[f"p{index}"]
        return out

    def _different_rows(self, element: Element) -> Rows:
        """Reads rows of different sizes: locates each property of each row, then gathers lists of equal length."""
        sizes = [(np.dtype(p.kind).itemsize, np.dtype(p.count_kind).itemsize if p.count_kind else 0)
                 for p in element.properties]  # fmt: skip
        begins = [np.zeros(element.count, "i8") for _ in sizes]
        lengths = [np.ones(element.count, "i8") for _ in sizes]
        data, place = self._data, self._place
        byte_order: Literal["little", "big"] = "little" if self._order == "<" else "big"
        for number in range(element.count):
            for column, (item, counter) in enumerate(sizes):
                length = 1
                if counter:
                    length = int.from_bytes(data[place : place + counter], byte_order)
                    place += counter
                begins[column][number], lengths[column][number] = place, length
                place += item * length
            if place > len(data):
                raise MeshError(f"says {element.count} rows of {element.name}; row {number} cannot be read")
        self._place = place
        out = _no_rows(element)
        bytes_ = np.frombuffer(data, "u1")
        for column, p in enumerate(element.properties):
            values = _gather(bytes_, begins[column], lengths[column], np.dtype(self._order + p.kind))
            if p.count_kind:
                out.lists[p.name] = values, lengths[column]
            else:
                out.numbers[p.name] = values
        return out


def _gather(data: np.ndarray, begins: np.ndarray, lengths: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Concatenates the items of all rows; row i has lengths[i] items from byte begins[i] on."""
    out = np.zeros(int(lengths.sum()), kind)
    first = np.cumsum(lengths) - lengths
    for length in np.unique(lengths[lengths > 0]):
        rows = np.flatnonzero(lengths == length)
        found = data[begins[rows][:, None] + np.arange(length * kind.itemsize)].view(kind)
        out[first[rows][:, None] + np.arange(length)] = found
    return out


class _Text:
    """Reads the rows of a text file, whose numbers are parsed at once."""

    def __init__(self, body: bytes):
        self._numbers = numbers_in(body, "f8")
        self._words = len(self._numbers)
        self._place = 0

    def rows(self, element: Element) -> Rows:
        """The rows of the next element."""
        out, columns = _no_rows(element), len(element.properties)
        if element.count * columns > self._words - self._place:
            raise MeshError(f"says {element.count} rows of {element.name}, not all of which can be read")
        if not any(p.count_kind for p in element.properties):
            table = self._numbers[self._place : self._place + element.count * columns].reshape(element.count, columns)
            self._place += table.size
            out.numbers = {p.name: table[:, k] for k, p in enumerate(element.properties)}
            return out
        numbers: list[list[float]] = [[] for _ in element.properties]
        lengths = [np.zeros(element.count, "i8") for _ in element.properties]
        for row in range(element.count):
            for column, p in enumerate(element.properties):
                length = 1
                if p.count_kind:
                    length = self._count(element, row)
                lengths[column][row] = length
                if self._place + length > self._words:
                    raise MeshError(f"says {element.count} rows of {element.name}; row {row} cannot be read")
                numbers[column].append(self._place)
                self._place += length
        for column, p in enumerate(element.properties):
            begins = np.array(numbers[column], "i8")
            values = _gather(self._numbers.view("u1"), begins * 8, lengths[column], np.dtype("f8"))
            if p.count_kind:
                out.lists[p.name] = values, lengths[column]
            else:
                out.numbers[p.name] = values
        return out

    def _count(self, element: Element, row: int) -> int:
        if self._place >= self._words or not 0 <= self._numbers[self._place] <= self._words:
            raise MeshError(f"says {element.count} rows of {element.name}; row {row} cannot be read")
        self._place += 1
        return int(self._numbers[self._place - 1])


def _no_rows(element: Element) -> Rows:
    numbers = {p.name: np.zeros(0) for p in element.properties if not p.count_kind}
    lists = {p.name: (np.zeros(0, "i8"), np.zeros(0, "i8")) for p in element.properties if p.count_kind}
    return Rows(numbers, lists)


def _mesh(rows: dict[str, Rows], ignored: dict[str, int], texture: Texture | None) -> MeshFile:
    """Builds the mesh from the rows of vertices, faces and triangle strips."""
    numbers = rows["vertex"].numbers
    missing = [axis for axis in "xyz" if axis not in numbers]
    if missing:
        raise MeshError(f"has no property {missing[0]} of its vertices")
    if SPLAT <= numbers.keys():
        raise MeshError(
            "holds Gaussian splats, blurred ellipsoids without surfaces, which are not drawn; SuGaR and 2DGS make a "
            "mesh of such a scene"
        )
    vertices, colors = _stacked(numbers, "xyz"), _colors(numbers)
    normals = _stacked(numbers, ("nx", "ny", "nz")) if {"nx", "ny", "nz"} <= numbers.keys() else None
    names = next((names for names in TEXCOORDS if set(names) <= numbers.keys()), None)
    texcoords = _stacked(numbers, names) * (1, -1) + (0, 1) if names else None  # PLY has v upwards
    faces = [np.zeros((0, 3), "i4")]
    for element in ("face", "tristrips"):
        lists = rows[element].lists if element in rows else {}
        name = next((name for name in LISTS if name in lists), None)
        if name is None:
            continue
        corners, lengths = lists[name]
        corners = _whole(corners)
        if element == "tristrips":
            faces += [strips(strip) for strip in np.split(corners, np.cumsum(lengths)[:-1])] if len(lengths) else []
        elif len(lengths) and (lengths == 3).all():
            faces.append(corners.reshape(-1, 3))
        else:
            faces.append(corners[fans(lengths)[0]])
    all_faces = max(faces, key=len) if sum(map(bool, map(len, faces))) < 2 else np.concatenate(faces)
    part = plain_primitive(vertices, all_faces, normals, texcoords, colors)
    if texture is None or texcoords is None:
        return MeshFile(part, ignored=ignored)
    material = Material("texture", metallic=0.0, textures={"base_color": TextureSlot(0)})
    return MeshFile(part, np.zeros(len(all_faces), "i4"), [material], [texture], ignored)


def _whole(corners: np.ndarray) -> np.ndarray:
    """Converts vertex indices to native integers; raises MeshError for fractions."""
    if corners.dtype.kind == "f":
        if not (np.abs(corners) < 2**53).all() or (corners != np.floor(corners)).any():
            raise MeshError("a face names a vertex by what is no whole number")
        return corners.astype("i8")
    return corners.astype("i4" if corners.dtype.itemsize < 4 or corners.dtype.kind == "i" else "i8", copy=False)


def _stacked(numbers: dict[str, np.ndarray], names: tuple[str, ...] | str) -> np.ndarray:
    """Stacks k properties into an array (n, k) float32."""
    out = np.empty((len(numbers[names[0]]), len(names)), "f4")
    for column, name in enumerate(names):
        out[:, column] = numbers[name]
    return out


def _colors(numbers: dict[str, np.ndarray]) -> np.ndarray | None:
    """Extracts colors (n, 3 or 4) float32 from 0 to 1; integers are divided by their type's maximum."""
    four = next((names for names in COLORS if set(names[:3]) <= numbers.keys()), None)
    if four is None:
        return None
    names = four if four[3] in numbers else four[:3]
    kind = numbers[names[0]].dtype
    colors = _stacked(numbers, names)
    if kind.kind in "iu":
        return colors / np.float32(np.iinfo(kind).max)
    return colors / 255 if kind.itemsize == 8 and (colors > 1).any() else colors  # in text files all are floats


def ply_bytes(columns: dict[str, np.ndarray], faces: np.ndarray) -> bytes:
    """A binary .ply file of vertices, whose properties are the columns (n,), and of triangles (m, 3)."""
    count = len(columns["x"])
    lines = ["ply", "format binary_little_endian 1.0", f"element vertex {count}"]
    lines += [f"property float {name}" for name in columns]
    lines += [f"element face {len(faces)}", "property list uchar int vertex_indices", "end_header\n"]
    rows = np.empty(len(faces), np.dtype([("count", "u1"), ("corners", "<i4", (3,))]))
    rows["count"], rows["corners"] = 3, faces
    vertices = np.stack(list(columns.values()), axis=1).astype("<f4")
    return "\n".join(lines).encode() + vertices.tobytes() + rows.tobytes()
