"""Decompresses buffer views of EXT_meshopt_compression and KHR_meshopt_compression, in NumPy and Python.

Source: appendices A (bitstream) and B (filters) of the two extensions. No native code runs, so damaged bytes can only
raise ValueError. Attributes take about 1 us for 16 bytes, triangles 1 us each. Names follow the specification: deltas,
groups, blocks, control and header bytes, edge and vertex FIFOs. `at` is a byte offset in the compressed data.
"""

from itertools import islice

import numpy as np

GROUP = 16  # elements whose deltas share a header entry
BLOCK_BYTES, BLOCK_ELEMENTS = 8192, 256  # limits of a block of vertices, by the extension's specification
BITS = {0: (0, 2, 4, 8)}, {0: (0, 1, 2, 4), 1: (1, 2, 4, 8)}  # bits a delta: [version][control bits][header bits]
ZERO, LITERAL = 2, 3  # control bits of version 1: all deltas of a column are 0; its deltas are stored as plain bytes
TAIL_BYTES = 32, 24  # smallest tail, by version
STRIDES: dict[str, tuple[int, ...]] = {  # allowed bytes an element, by filter
    "NONE": tuple(range(4, 257, 4)), "OCTAHEDRAL": (4, 8), "QUATERNION": (8,),
    "EXPONENTIAL": tuple(range(4, 257, 4)), "COLOR": (4, 8),
}  # fmt: skip
INDEX_TABLE_BYTES, SEQUENCE_TAIL_BYTES = 16, 4  # bytes at the end of triangles and of index sequences
MAX_VARINT_BYTES = 5
# For each byte: how many of its deltas of 1, 2 or 4 bits are the sentinel (all ones), which stands for an extra byte.
_BIT_COUNT = np.array([bin(i).count("1") for i in range(256)])
_PAIR_COUNT = np.array([sum(i >> s & 3 == 3 for s in (0, 2, 4, 6)) for i in range(256)])
_NIBBLE_COUNT = np.array([(i & 15 == 15) + (i >> 4 == 15) for i in range(256)])
_SENTINELS = {
    bits: bytes(table.astype("u1")) for bits, table in ((1, _BIT_COUNT), (2, _PAIR_COUNT), (4, _NIBBLE_COUNT))
}


def decode(data: bytes, count: int, stride: int, mode: str, filter_name: str = "NONE") -> bytes:
    """Decodes a buffer view of `count` elements of `stride` bytes; raises ValueError if the data are damaged."""
    if mode == "ATTRIBUTES":
        rows = _FILTERS[filter_name](_attributes(data, count, stride))
        return np.ascontiguousarray(rows).tobytes()
    indices = _triangles(data, count) if mode == "TRIANGLES" else _sequence(data, count)
    return np.array(indices, "u4").astype(f"<u{stride}").tobytes()


# ---- attributes -----------------------------------------------------------------------------------------------------
def _attributes(data: bytes, count: int, stride: int) -> np.ndarray:
    """Decodes mode ATTRIBUTES: elements (count, stride) uint8, before the filter."""
    version = data[0] & 15 if data else -1
    if version not in (0, 1) or data[0] & 0xF0 != 0xA0:
        raise ValueError("the header of its attributes is damaged")
    tail = stride + (stride // 4 if version else 0)
    end = len(data) - max(tail, TAIL_BYTES[version])
    if end < 1:
        raise ValueError("its attributes end within their tail")
    # The tail: the element before the first, then in version 1 a channel byte for each four bytes of an element.
    last = np.frombuffer(data, "u1", stride, len(data) - tail)
    channels = data[len(data) - stride // 4 :] if version else bytes(stride // 4)
    out = np.empty((count, stride), "u1")
    block, at = min(BLOCK_BYTES // stride & ~(GROUP - 1), BLOCK_ELEMENTS), 1
    groups = _Groups(data, end)
    for first in range(0, count, block):
        at = groups.add_block(at, first, min(block, count - first), stride, version)
    if at != end:
        raise ValueError(f"its attributes end at byte {at} of {end}")
    groups.write_deltas(out)
    for first in range(0, stride, 4):
        _undo_deltas(out[:, first : first + 4], last[first : first + 4], channels[first // 4])
    return out


class _Groups:
    """The byte offsets of all groups' deltas, found block by block; write_deltas() then decodes all groups at once."""

    def __init__(self, data: bytes, end: int) -> None:
        self.data, self.end = data, end
        # Groups by the bits of their deltas: (byte offset, first element, column).
        self.rows: dict[int, list[tuple[int, int, int]]] = {bits: [] for bits in (1, 2, 4, 8)}
        self.literals: list[tuple[int, int, int, int]] = []  # (byte offset, first element, column, count)

    def add_block(self, at: int, first: int, count: int, stride: int, version: int) -> int:
        """Records the groups of the block at byte `at`, which begins with element `first`; returns the block's end."""
        control = self.data[at : at + stride // 4] if version else b""
        at += len(control)
        groups = -(-count // GROUP)
        for column in range(stride):
            choice = control[column // 4] >> column % 4 * 2 & 3 if version else 0  # two control bits a column
            if choice == ZERO:
                continue
            if choice == LITERAL:
                self.literals.append((at, first, column, count))
                at += count
            else:
                at = self._add_groups(at, first, column, groups, BITS[version][choice])
            if at > self.end:
                raise ValueError("its attributes are cut off")
        return at

    def _add_groups(self, at: int, first: int, column: int, groups: int, choices: tuple[int, ...]) -> int:
        """Records the groups of a column: two header bits each, then their deltas of choices[header bits] bits."""
        data, rows, header = self.data, self.rows, at
        at += -(-groups // 4)
        if at > self.end:
            raise ValueError("its attributes are cut off")
        for group in range(groups):
            bits = choices[data[header + (group >> 2)] >> (group & 3) * 2 & 3]
            if bits:
                rows[bits].append((at, first + GROUP * group, column))
                at += 2 * bits
                if bits < 8:
                    at += sum(data[at - 2 * bits : at].translate(_SENTINELS[bits]))
        return at

    def write_deltas(self, out: np.ndarray) -> None:
        """Writes the deltas to `out` (count, stride)."""
        out[:] = 0
        data = np.frombuffer(self.data + bytes(GROUP), "u1")
        padded = np.zeros((-(-len(out) // GROUP) * GROUP, out.shape[1]), "u1")
        for bits, rows in self.rows.items():
            if rows:
                at, element, column = np.array(rows).T
                deltas = _unpack(data, at, bits)
                padded[element[:, None] + np.arange(GROUP), column[:, None]] = deltas
        out[:] = padded[: len(out)]
        for begin, first, column_, count in self.literals:
            out[first : first + count, column_] = data[begin : begin + count]


def _unpack(data: np.ndarray, at: np.ndarray, bits: int) -> np.ndarray:
    """Unpacks the deltas (n, 16) of groups at bytes `at` (n,); a sentinel is replaced by the next extra byte."""
    packed = data[at[:, None] + np.arange(2 * bits)]
    if bits == 8:
        return packed
    # Single bits begin with the lowest of a byte, wider deltas with the highest.
    shifts = np.arange(0, 8, bits) if bits == 1 else np.arange(8 - bits, -1, -bits)
    deltas = (packed[:, :, None] >> shifts.astype("u1") & np.uint8((1 << bits) - 1)).reshape(len(at), GROUP)
    is_sentinel = deltas == (1 << bits) - 1
    extra = at[:, None] + 2 * bits + np.cumsum(is_sentinel, 1) - 1  # the extra bytes follow the packed ones
    return np.where(is_sentinel, data[np.where(is_sentinel, extra, 0)], deltas)


def _undo_deltas(columns: np.ndarray, last: np.ndarray, channel: int) -> None:
    """Integrates deltas (n, 4) to values in place; `last` (4,) is the element before the first.

    `channel`: its lowest two bits choose zigzag sums of bytes (0) or of 16-bit words (1), or exclusive ors of 32-bit
    words (2), which are first rotated right by its highest four bits.
    """
    kind = channel & 3
    if kind == 3:
        raise ValueError(f"its attributes have a channel of the unknown kind {channel}")
    size = (1, 2, 4)[kind]
    words = np.ascontiguousarray(columns).view(f"<u{size}")
    before = np.ascontiguousarray(last).view(f"<u{size}")
    if size == 4:
        shift = 32 - (channel >> 4) & 31
        rotated = words << np.uint32(shift) | (words >> np.uint32(32 - shift) if shift else np.uint32(0))
        values = np.bitwise_xor.accumulate(rotated, axis=0) ^ before
    else:
        one = words.dtype.type(1)
        signed = words >> one ^ (np.zeros_like(words) - (words & one))
        values = np.add.accumulate(signed, axis=0, dtype=words.dtype) + before
    columns[:] = np.ascontiguousarray(values).view("u1").reshape(columns.shape)


# ---- indices --------------------------------------------------------------------------------------------------------
def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Reads an unsigned LEB128 integer of at most 32 bits at byte `at`; returns it and the offset after it."""
    value = 0
    for shift, byte in enumerate(data[at : min(at + MAX_VARINT_BYTES, end)]):
        value |= (byte & 127) << 7 * shift  # seven bits a byte, the lowest first
        if byte < 128:
            return value & 0xFFFFFFFF, at + shift + 1
    raise ValueError("its indices are cut off")


def _sequence(data: bytes, count: int) -> list[int]:
    """Decodes mode INDICES: each index is a difference to one of the two last ones, which its lowest bit chooses."""
    end = len(data) - SEQUENCE_TAIL_BYTES
    if end < 1 or data[0] not in (0xD0, 0xD1):
        raise ValueError("the header of its indices is damaged")
    last, at, out = [0, 0], 1, []
    for _ in range(count):
        value, at = _varint(data, at, end)
        delta = value >> 2 ^ -(value >> 1 & 1)
        last[value & 1] = last[value & 1] + delta & 0xFFFFFFFF
        out.append(last[value & 1])
    if at != end:
        raise ValueError(f"its indices end at byte {at} of {end}")
    return out


def _triangles(data: bytes, count: int) -> list[int]:
    """Decodes mode TRIANGLES: the vertex indices. Both FIFOs (of edges, of vertices) are lists, newest entry last.

    Each triangle has a code byte. A code below 0xF0 joins a vertex to a known edge: its high four bits choose the edge,
    0 the newest, and its low four bits the vertex: 0 the next vertex that was not used yet, below `limit` one of the
    FIFO, 15 an explicit one, 13 and 14 the one before and after the last explicit one. Other codes have three vertices.
    The choices of the second and third are the halves of a byte, from the table at the end of the data or, for 0xFE and
    0xFF, from the data bytes. Here choices up to 14 mean the next vertex or one of the FIFO, and 15 an explicit one.
    """
    end = len(data) - INDEX_TABLE_BYTES
    if end < 1 + count // 3 or data[0] not in (0xE0, 0xE1):
        raise ValueError("the header of its triangles is damaged")
    reader = _Indices(data, 1 + count // 3, end)
    limit = 13 if data[0] & 15 else 15  # codes from `limit` on encode a vertex relative to the last explicit one
    table, out = data[end:], list[int]()
    edges: list[tuple[int, int]] = [(0, 0)] * 16
    vertices = [0] * 16
    following = 0
    for code in islice(data, 1, 1 + count // 3):
        if code < 0xF0:
            a, b = edges[-1 - (code >> 4)]
            choice = code & 15
            if choice == 0:
                c, following = following, following + 1
                vertices.append(c)
            elif choice < limit:
                c = vertices[-1 - choice]
            else:
                c = reader.explicit() if choice == 15 else reader.after_last(-1 if choice == 13 else 1)
                vertices.append(c)
            edges += (c, b), (a, c)
        else:
            pair = table[code & 15] if code < 0xFE else reader.byte()
            if code >= 0xFE and pair == 0:  # a new part of the mesh, whose vertices are counted from 0 again
                following = 0
            corners: list[int] = []  # -1: explicit, read once all three choices are known
            fresh = []  # True for a vertex that enters the FIFO
            for choice in (15 if code == 0xFF else 0, pair >> 4, pair & 15):
                if choice == 0:
                    corner, following = following, following + 1
                else:
                    corner = vertices[-choice] if choice < 15 else -1
                corners.append(corner)
                fresh.append(choice in (0, 15))
            a, b, c = (reader.explicit() if corner < 0 else corner for corner in corners)
            vertices += [v for v, new in zip((a, b, c), fresh, strict=True) if new]
            edges += (b, a), (c, b), (a, c)
        out += (a, b, c)
        if len(edges) > 4096:  # only the last 16 can be chosen
            del edges[:-16], vertices[:-16]
    if reader.at != end:
        raise ValueError(f"its triangles end at byte {reader.at} of {end}")
    return [index & 0xFFFFFFFF for index in out]


class _Indices:
    """Reads the data bytes of triangles: explicit indices are differences to the last explicit index."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end
        self.last = 0

    def byte(self) -> int:
        if self.at >= self.end:
            raise ValueError("its triangles are cut off")
        self.at += 1
        return self.data[self.at - 1]

    def explicit(self) -> int:
        value, self.at = _varint(self.data, self.at, self.end)
        return self.after_last(value >> 1 ^ -(value & 1))

    def after_last(self, delta: int) -> int:
        """The index `delta` after the last explicit one; it becomes the last one."""
        self.last = self.last + delta & 0xFFFFFFFF
        return self.last


# ---- filters --------------------------------------------------------------------------------------------------------
def _octahedral(rows: np.ndarray) -> np.ndarray:
    """Filter OCTAHEDRAL: decodes unit vectors; the third component holds the value of 1, the fourth is kept."""
    values = rows.view("<i1" if rows.shape[1] == 4 else "<i2")
    x, y, one = (values[:, k].astype("f4") for k in range(3))
    z = one - np.abs(x) - np.abs(y)
    fold = np.minimum(z, 0)
    xyz = np.stack([x + np.where(x >= 0, fold, -fold), y + np.where(y >= 0, fold, -fold), z], 1)
    size = np.linalg.norm(xyz, axis=1, keepdims=True)
    unit = np.divide(xyz, size, out=np.zeros_like(xyz), where=size > 0)
    out = values.copy()
    out[:, :3] = np.trunc(unit * np.iinfo(values.dtype).max + np.copysign(np.float32(0.5), xyz))
    return out


def _quaternion(rows: np.ndarray) -> np.ndarray:
    """Filter QUATERNION: three components; the fourth number holds their scale and, in two bits, the omitted one."""
    values = rows.view("<i2")
    scale = (values[:, 3] | 3).astype("f4") * np.float32(np.sqrt(2))  # the two bits count as ones
    xyz = values[:, :3] / scale[:, None]
    w = np.sqrt(np.maximum(1 - (xyz * xyz).sum(1), 0))
    parts = np.concatenate([w[:, None], xyz], 1)
    rounded = np.clip(np.trunc(parts * 32767 + np.copysign(0.5, parts)), -32768, 32767).astype("<i2")
    # Destination columns, in cyclic order, of the omitted component and the three others.
    order = (values[:, 3:] & 3) + np.arange(4) & 3
    out = np.empty_like(values)
    np.put_along_axis(out, order.astype("i8"), rounded, 1)
    return out


def _exponential(rows: np.ndarray) -> np.ndarray:
    """Filter EXPONENTIAL: float32 from a signed 24-bit mantissa and a signed 8-bit exponent."""
    words = rows.view("<u4")
    mantissa = (words << np.uint32(8)).view("<i4") >> 8
    exponent = words.view("<i4") >> 24
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(mantissa.astype("f4"), exponent), "<f4")


def _color(rows: np.ndarray) -> np.ndarray:
    """Filter COLOR: RGBA from YCoCg; the highest set bit of the fourth component gives the bits of a component."""
    width = rows.shape[1] // 4
    values = rows.view(f"<u{width}").astype("i4")
    y, alpha = values[:, 0], values[:, 3]
    co, cg = (rows.view(f"<i{width}")[:, k].astype("i4") for k in (1, 2))
    one = alpha.copy()
    for shift in (1, 2, 4, 8):
        one |= one >> shift
    # Alpha gets room for the bit that it gave to the mark: it moves up by one, and its lowest bit stands twice.
    red_to_alpha = np.stack([y + co - cg, y + cg, y - co - cg, (alpha << 1 & one) | (alpha & 1)], 1)
    most = (1 << 8 * width) - 1
    scale = np.divide(np.float32(most), one, out=np.zeros(len(one), "f4"), where=one > 0)
    return np.asarray(np.clip(np.trunc(red_to_alpha * scale[:, None] + 0.5), 0, most), f"<u{width}")


_FILTERS = {
    "NONE": lambda rows: rows, "OCTAHEDRAL": _octahedral, "QUATERNION": _quaternion, "EXPONENTIAL": _exponential,
    "COLOR": _color,
}  # fmt: skip
