"""Reads polygon files (.ply, G. Turk 1994), as text and binary in both byte orders.

Vertices, normals, colors, texture coordinates, polygons and triangle strips are read; other elements and properties are
counted as ignored. Rows of one size are viewed as one NumPy array; lists of different lengths are located row by row.
"""

import re
from array import array
from struct import Struct

import numpy as np

from renderer.formats.gltf.model import Material, Texture, TextureSlot
from renderer.formats.meshes.contents import (
    MeshError,
    MeshFile,
    as_indices,
    check_polygons,
    fans,
    numbers_in,
    plain_primitive,
    strips,
)  # fmt: skip
from renderer.plain import format_value, parse_whole
from renderer.records import dataclass, replace

MAX_HEADER_BYTES = 1 << 20
MAX_ROWS = 1 << 30
TYPES = {"char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2", "ushort": "u2",
         "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4", "float": "f4", "float32": "f4",
         "double": "f8", "float64": "f8"}  # fmt: skip
TEXT_ORDER = "="
ORDERS = {"ascii": TEXT_ORDER, "binary_little_endian": "<", "binary_big_endian": ">"}
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

    def as_float64(self) -> "Property":
        """The property with numbers and counts of float64."""
        return Property(self.name, "f8", self.count_kind and "f8")


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
    if order == TEXT_ORDER:  # the numbers, parsed at once, are binary data whose properties are all float64
        elements = [replace(e, properties=[p.as_float64() for p in e.properties]) for e in elements]
        source = _Reader(numbers_in(data[body:], "f8").view("u1").data, order)
    else:
        source = _Reader(memoryview(data)[body:], order)
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


class _Reader:
    """Reads the rows of elements one after another from `data`, in the byte `order` of NumPy's and struct's types."""

    def __init__(self, data: memoryview, order: str):
        self._data, self._order, self._offset = data, order, 0

    def rows(self, element: Element) -> Rows:
        """The rows of the next element."""
        properties, left = element.properties, len(self._data) - self._offset
        least = sum(np.dtype(p.count_kind or p.kind).itemsize for p in properties)  # bytes of a row of empty lists
        if element.count * least > left:
            raise MeshError(f"says {element.count} rows of {element.name}; at most {left // least} can be read")
        # `values` holds the items of each property, all rows together; `lengths` their number, by row and property.
        values, lengths = [np.zeros(0)] * len(properties), np.zeros((1, len(properties)), "i8")
        if element.count and least:
            _, lengths, _ = self._locate(element, 1)
            values = self._equal_rows(element, lengths[0].tolist())  # if all lists are as long as the first row's
            if not values:  # they differ
                begins, lengths, self._offset = self._locate(element, element.count)
                columns = zip(properties, begins.T, lengths.T, strict=True)
                values = [self._gather(begin, length, p.kind) for p, begin, length in columns]
        out = Rows({}, {})
        for p, items, length in zip(properties, values, lengths.T, strict=True):
            if p.count_kind:
                out.lists[p.name] = items.reshape(-1), np.broadcast_to(length, element.count)
            else:
                out.numbers[p.name] = items.reshape(-1)
        return out

    def _locate(self, element: Element, rows: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Walks over the next rows: byte offsets and lengths (rows, properties) of their items; the end of the last.

        A number has the length 1.
        """
        sizes = [(np.dtype(p.kind).itemsize, np.dtype(p.count_kind) if p.count_kind else None)
                 for p in element.properties]  # fmt: skip
        steps = [(item, Struct(self._order + kind.char) if kind else None) for item, kind in sizes]
        begins, lengths, offset, size = array("q"), array("q"), self._offset, len(self._data)
        for row in range(rows):
            for item, counter in steps:
                length = 1
                if counter:
                    (length,) = counter.unpack_from(self._data, offset) if offset + counter.size <= size else (-1,)
                    if not 0 <= length <= size:
                        raise MeshError(f"says {element.count} rows of {element.name}; row {row} cannot be read")
                    length = int(length)  # in texts all numbers are floats
                    offset += counter.size
                begins.append(offset)
                lengths.append(length)
                offset += item * length
            if offset > size:
                raise MeshError(f"says {element.count} rows of {element.name}; row {row} cannot be read")
        shape = rows, len(steps)
        return np.frombuffer(begins, "i8").reshape(shape), np.frombuffer(lengths, "i8").reshape(shape), offset

    def _equal_rows(self, element: Element, lengths: list[int]) -> list[np.ndarray]:
        """Views the properties (rows, length) as columns of one array; [] unless all lists are as long as `lengths`."""
        fields: list[tuple[str, str, tuple[int]]] = []
        for index, (p, length) in enumerate(zip(element.properties, lengths, strict=True)):
            fields += [(f"n{index}", self._order + p.count_kind, (1,))] if p.count_kind else []
            fields.append((f"p{index}", self._order + p.kind, (length,)))
        row = np.dtype(fields)
        if element.count * row.itemsize > len(self._data) - self._offset:
            return []
        table = np.frombuffer(self._data, row, element.count, self._offset)
        counted = [index for index, p in enumerate(element.properties) if p.count_kind]
        if any((table[f"n{index}"] != lengths[index]).any() for index in counted):
            return []
        self._offset += table.nbytes
        return [table[f"p{index}"] for index in range(len(lengths))]

    def _gather(self, begins: np.ndarray, lengths: np.ndarray, kind: str) -> np.ndarray:
        """Concatenates the items of all rows; row i has lengths[i] items from byte begins[i] on."""
        data, item = np.frombuffer(self._data, "u1"), np.dtype(self._order + kind)
        out = np.zeros(int(lengths.sum()), item)
        first = np.cumsum(lengths) - lengths
        for length in np.unique(lengths[lengths > 0]):
            rows = np.flatnonzero(lengths == length)
            items = data[begins[rows][:, None] + np.arange(length * item.itemsize)].view(item)
            out[first[rows][:, None] + np.arange(length)] = items
        return out


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
        corners = as_indices(corners)
        if element == "tristrips":
            faces += [strips(strip) for strip in np.split(corners, np.cumsum(lengths)[:-1])] if len(lengths) else []
        elif len(lengths) and (lengths == 3).all():
            faces.append(corners.reshape(-1, 3))
        else:
            check_polygons(lengths, len(vertices))
            faces.append(corners[fans(lengths)[0]])
    faces = [array for array in faces if len(array)] or faces[:1]
    all_faces = faces[0] if len(faces) == 1 else np.concatenate(faces)  # a single array is not copied
    part = plain_primitive(vertices, all_faces, normals, texcoords, colors)
    if texture is None or texcoords is None:
        return MeshFile(part, ignored=ignored)
    material = Material("texture", metallic=0.0, textures={"base_color": TextureSlot(0)})
    return MeshFile(part, np.zeros(len(all_faces), "i4"), [material], [texture], ignored)


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
