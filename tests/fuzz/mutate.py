"""Seeded mutations of files, of their bytes and of their structure (text, JSON, PNG, zip, .npy, .glb).

Every function takes the file's bytes and a random.Random, and returns new bytes; the same generator gives the same.
"""

import gzip
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

Mutator = Callable[[bytes, Random], bytes]

MAX_BYTES = 1 << 18  # of a mutated file
INTEGERS = (0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 32767, 32768, 65535, 65536, (1 << 24) - 1, 1 << 24, (1 << 31) - 1,
            1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
NUMBERS = (
    *map(str, INTEGERS), "9" * 400, "9" * 5000, "-" + "9" * 400, "1e308", "-1e308", "1e309", "1e-320", "inf", "-inf",
    "nan", "-0", "-0.0", "-1", "1e", "1e+", ".", "+", "0x10", "0_1", "1_000", "1.5", "1e18", "2000000000", "\u0661",
    "\u00b2", "true", "", "1 2", "1,2", "None",
)  # fmt: skip
SNIPPETS = (
    "\0", "\\u0000", "\ud7ff", "\ufeff", "\r", "\n\n", "\t", "\x1b[2J", "..", "/dev/zero", "../../etc/passwd", "%s%n",
    "{", "}", "[", "]", "(", ")", "<", ">", '"', "'", "\\", "&", "&amp;", "<!--", "]]>", "/*", "//", "#", ";", ",",
    ":", "=", "==", "e", "x" * 300, "\u2603", "\U0001f600", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
)  # fmt: skip
NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
TOKEN = re.compile(rb"[A-Za-z_][\w.-]*|[-+]?\d[\w.+-]*|[^\sA-Za-z_\d]|\s+")
DEPTHS = (3, 3, 40, 40, 150, 150, 500, 500, 1200, 1200, 5000, 20_000, 60_000)


def mutate(data: bytes, rng: Random, mutators: tuple[Mutator, ...]) -> bytes:
    """One to three mutations, mostly one."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(mutators)(data, rng)
    return data[:MAX_BYTES]


# ---- bytes


def bits(data: bytes, rng: Random) -> bytes:
    """Flips one to eight bits."""
    out = bytearray(data or b"\0")
    for _ in range(rng.randint(1, 8)):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def binary(data: bytes, rng: Random) -> bytes:
    """Truncates, deletes, doubles, moves or overwrites some bytes, more often those of the header."""
    size = len(data)
    if not size:
        return bytes(rng.randrange(256) for _ in range(rng.randint(1, 40)))
    reach = size if rng.random() < 0.6 else min(size, 128)
    start = rng.randrange(reach)
    end = min(size, start + rng.choice((1, 2, 4, 8, 16, rng.randint(1, size))))
    kind = rng.randrange(8)
    if kind == 0:
        return data[: rng.choice((start, size - 1, max(0, size - rng.randint(1, 16))))]
    if kind == 1:
        return data[:start] + data[end:]
    if kind == 2:
        return data[:end] + data[start:end] * rng.choice((1, 1, 2, 50)) + data[end:]
    if kind == 3:
        target = rng.randrange(size)
        return data[:target] + data[start:end] + data[target + end - start :]
    if kind == 4:
        return (
            data[:start] + bytes(rng.randrange(256) for _ in range(end - start if end - start < 64 else 4)) + data[end:]
        )
    if kind == 5:
        return data[:start] + rng.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * (end - start) + data[end:]
    if kind == 6:
        return data + data[start:end]
    code = rng.choice("<>") + rng.choice("BHIQ")
    width = struct.calcsize(code)
    number = struct.pack(code, rng.choice(INTEGERS) & ((1 << 8 * width) - 1))
    return data[:start] + number + data[start + width :]


# ---- text


def numbers(data: bytes, rng: Random) -> bytes:
    """Replaces a number of a text by one that is huge, infinite, odd or none."""
    found = list(NUMBER.finditer(data[:50_000]))
    if not found:
        return text(data, rng)
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(NUMBERS).encode() + data[match.end() :]


def text(data: bytes, rng: Random) -> bytes:
    """Deletes, doubles, exchanges or replaces a word or a sign, or inserts something odd."""
    found = list(TOKEN.finditer(data[:20_000]))
    if not found:
        return data + rng.choice(SNIPPETS).encode("utf-8", "surrogatepass")
    first, second = rng.choice(found), rng.choice(found)
    kind = rng.randrange(7)
    if kind == 0:
        return data[: first.start()] + data[first.end() :]
    if kind == 1:
        return data[: first.end()] + first[0] * rng.choice((1, 1, 2, 300)) + data[first.end() :]
    if kind == 2:
        return data[: first.start()] + second[0] + data[first.end() :]
    if kind == 3:
        return data[: first.start()] + rng.choice(SNIPPETS).encode("utf-8", "surrogatepass") + data[first.start() :]
    if kind == 4:
        return data[: first.start()] + rng.choice(NUMBERS).encode() + data[first.end() :]
    if kind == 5:
        return data[: first.start()]
    return data[: first.end()] + data[first.start() :]


def lines(data: bytes, rng: Random) -> bytes:
    """Deletes, doubles or exchanges lines."""
    rows = data.split(b"\n")
    first, second = rng.randrange(len(rows)), rng.randrange(len(rows))
    kind = rng.randrange(3)
    if kind == 0:
        del rows[first]
    elif kind == 1:
        rows[first:first] = [rows[second]] * rng.choice((1, 2, 200))
    else:
        rows[first], rows[second] = rows[second], rows[first]
    return b"\n".join(rows)


def nesting(data: bytes, rng: Random) -> bytes:
    """Inserts many opening brackets, some of them closed again."""
    depth = rng.choice(DEPTHS)
    opening, closing = rng.choice(((b"[", b"]"), (b"(", b")"), (b"{", b"}"), (b'{"a":', b"}"), (b"<a>", b"</a>"),
                                   (b"-", b""), (b"a.", b""), (b"{a=", b"}"), (b"!", b"")))  # fmt: skip
    start = rng.randint(0, min(len(data), 20_000))
    middle = opening * depth + rng.choice((b"", b"1"))
    return data[:start] + middle + (closing * depth if rng.random() < 0.7 else b"") + data[start:]


TEXT: tuple[Mutator, ...] = (numbers, numbers, text, text, text, lines, bits, binary)


def nested(mutators: tuple[Mutator, ...]) -> tuple[Mutator, ...]:
    """The mutators, and now and then deep nesting, which costs more time."""
    return mutators * 8 + (nesting,)


# ---- JSON


def json_tree(data: bytes, rng: Random) -> bytes:
    """Replaces, removes, doubles or renames a value anywhere in a JSON text."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return text(data, rng)
    return json.dumps(change_tree(tree, rng)).encode()


def change_tree(tree: Any, rng: Random) -> Any:
    """The tree with one node changed, chosen on a random way down from the root."""
    if isinstance(tree, (dict, list)) and tree and rng.random() < 0.9:
        key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        out: Any = dict(tree) if isinstance(tree, dict) else list(tree)
        kind = rng.random()
        if kind < 0.8:
            out[key] = change_tree(out[key], rng)
        elif kind < 0.87:
            del out[key]
        elif isinstance(out, dict):
            out[rng.choice(list(out)) + rng.choice(("", "x", "\0"))] = tree[key]
        else:
            out += [out[key]] * rng.choice((1, 2, 40))
        return out
    return odd_value(tree, rng)


def odd_value(value: Any, rng: Random) -> Any:
    """Another value in place of this one."""
    integer = rng.choice(INTEGERS)
    near = [value + d for d in (-1, 1, 2)] if isinstance(value, (int, float)) else []
    return rng.choice(
        (None, True, False, -1, 0, 1, 0.5, -0.0, integer, -integer, 10**400, -(10**400), 1e308, 1e-320, float("inf"),
         float("nan"), "", "a", "\0", "a\0b", "x" * 3000, "\ud800", "../a", [], {}, [value], {"a": value}, [1e308] * 3,
         [[[]]], {"0": 0}, str(value)[:100], *near, *near)
    )  # fmt: skip


def json_lines(data: bytes, rng: Random) -> bytes:
    """Changes the JSON value of one line."""
    rows = data.split(b"\n")
    index = rng.randrange(len(rows))
    rows[index] = json_tree(rows[index], rng)
    return b"\n".join(rows)


# ---- containers


def png_chunks(data: bytes, rng: Random) -> bytes:
    """Changes a chunk of a PNG or the order of chunks; checksums stay right, mostly."""
    chunks, start = [], 8
    while start + 8 <= len(data):
        (length,) = struct.unpack(">I", data[start : start + 4])
        chunks.append((data[start + 4 : start + 8], data[start + 8 : start + 8 + length]))
        start += 12 + length
    if not chunks:
        return binary(data, rng)
    index, kind = rng.randrange(len(chunks)), rng.randrange(6)
    name, body = chunks[index]
    if kind == 0:
        del chunks[index]
    elif kind == 1:
        chunks.insert(rng.randrange(len(chunks)), (name, body))
    elif kind == 2:
        other = rng.choice((b"tEXt", b"iTXt", b"zTXt", b"iCCP", b"eXIf", b"acTL", b"fcTL", b"fdAT", b"gAMA", b"cHRM",
                            b"tRNS", b"PLTE", b"pHYs", b"IEND", b"IHDR", b"caBX"))  # fmt: skip
        chunks[index] = (other, body)
    else:
        chunks[index] = (name, rng.choice((bits, binary))(body, rng))
    return data[:8] + b"".join(png_chunk(*chunk) for chunk in chunks)


def png_chunk(name: bytes, body: bytes) -> bytes:
    """A chunk of a PNG with its length and checksum."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def recipe(data: bytes, rng: Random) -> bytes:
    """Changes the recipe in a PNG that Rayfold wrote."""
    start = data.find(b"iTXtrayfold:recipe\0\1\0\0\0")
    if start < 0:
        return png_chunks(data, rng)
    (length,) = struct.unpack(">I", data[start - 4 : start])
    packed = data[start + 23 : start + 4 + length]
    try:
        inner = zlib.decompress(packed)
    except zlib.error:
        return png_chunks(data, rng)
    inner = rng.choice((json_tree, json_tree, json_tree, text, numbers, nesting))(inner, rng)
    chunk = png_chunk(b"iTXt", b"rayfold:recipe\0\1\0\0\0" + zlib.compress(inner, 1))
    return data[: start - 4] + chunk + data[start + 8 + length :]


def npy_header(data: bytes, rng: Random) -> bytes:
    """Changes the header of a .npy file; its length stays right, mostly."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        return binary(data, rng)
    (length,) = struct.unpack("<H", data[8:10])
    header, body = data[10 : 10 + length], data[10 + length :]
    kind = rng.randrange(6)
    if kind == 0:
        kinds = ("'<f4'", "'>f8'", "'|O'", "'<U9'", "'|V0'", "'<f2'", "'|b1'", "'<c16'", "'<i8'", "'<M8[s]'", "'|S0'",
                 "[('a', '<f4')]", "[('a', '<f4', (3,))]", "'<f4,<f4'",
                 "('<f4', (1000000, 1000000))", "{}", "3")  # fmt: skip
        header = re.sub(rb"'descr': [^,]*,", b"'descr': " + rng.choice(kinds).encode() + b",", header)
    elif kind == 1:
        sides = [
            rng.choice(("0", "1", "2", "3", "-1", "True", "2**31", "'a'", "1e9", *NUMBERS))
            for _ in range(rng.randint(0, 5))
        ]
        header = re.sub(rb"'shape': \([^)]*\)", f"'shape': ({', '.join(sides)},)".encode(), header)
    elif kind == 2:
        header = header.replace(b"False", rng.choice((b"True", b"0", b"None", b"[]")))
    else:
        header = rng.choice((text, numbers, bits, binary) * 4 + (nesting,))(header, rng)
    header = header[:65000]
    return (
        data[:8] + struct.pack("<H", len(header)) + header + (bits(body, rng) if body and rng.random() < 0.1 else body)
    )


def zip_members(inner: tuple[Mutator, ...]) -> Mutator:
    """A mutator of a zip: changes a member by `inner`, its name or its compression, or drops or doubles it."""

    def change(data: bytes, rng: Random) -> bytes:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        except Exception:  # an earlier mutation made it unreadable
            return binary(data, rng)
        if not members:
            return data
        index, kind = rng.randrange(len(members)), rng.randrange(10)
        name, body = members[index]
        if kind == 0:
            del members[index]
        elif kind == 1:
            members.insert(index, (name, body))
        elif kind == 2:
            members[index] = (text(name.encode(), rng).decode("utf-8", "replace")[:300] or "a", body)
        else:
            members[index] = (name, rng.choice(inner)(body, rng))
        out, method = io.BytesIO(), rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with zipfile.ZipFile(out, "w", method, compresslevel=1) as archive:
            for name, body in members:
                archive.writestr(zipfile.ZipInfo(name or "a"), body, method)
        return out.getvalue()

    return change


def gzipped(inner: tuple[Mutator, ...]) -> Mutator:
    """A mutator of a gzip file: changes the content by `inner`."""

    def change(data: bytes, rng: Random) -> bytes:
        try:
            content = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return binary(data, rng)
        return gzip.compress(rng.choice(inner)(content, rng), 1, mtime=0)

    return change


def glb_json(data: bytes, rng: Random) -> bytes:
    """Changes the JSON of a .glb; the lengths in its headers stay right."""
    if len(data) < 20 or data[:4] != b"glTF":
        return json_tree(data, rng)
    (length,) = struct.unpack("<I", data[12:16])
    text_chunk, rest = data[20 : 20 + length], data[20 + length :]
    text_chunk = rng.choice((json_tree, json_tree, json_tree, json_tree, numbers, text))(text_chunk, rng)
    text_chunk += b" " * (-len(text_chunk) % 4)
    body = struct.pack("<II", len(text_chunk), 0x4E4F534A) + text_chunk + rest
    return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body
