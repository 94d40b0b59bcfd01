"""Draco, Basis Universal and Zstandard, decoded in a child process: a crash costs one file, not the program.

The decoders are C and C++ libraries that may crash, loop or exhaust memory on damaged input. The parent (glTF readers,
by decode()) writes jobs into a temporary folder; the child (decode_jobs(), by run_trial()) decodes them in order and
writes each result before it begins the next, so that the parent knows which job ended the child. The child has a time
limit and, where the operating system supports one, a memory limit.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError, import_optional
from renderer.host import limit_memory
from renderer.paths import temporary_directory
from renderer.records import dataclass
from renderer.system.install import pip_install
from renderer.system.process import shorten
from renderer.system.trial import run_trial

SECONDS = 60.0  # time limit of the child for all jobs of a file; each MiB of input adds 1 s
MAX_BYTES = 6 << 30  # limit of the child's memory
PACKAGES = {
    "draco": ("DracoPy", "Draco"), "basis": ("opengl_basisu", "Basis Universal (KTX 2)"),
    "zstd": ("zstandard", "Zstandard (KTX 2)"),
}  # fmt: skip
MAX_WINDOW_BYTES = 1 << 27  # largest back-reference window of Zstandard


@dataclass(frozen=True)
class Job:
    """Bytes to decode by `codec` ("draco", "basis" or "zstd"); errors name them as `item`."""

    codec: str
    item: str
    data: bytes
    max_items: int  # limit of the decoded vertices and triangles (draco), pixels (basis) or bytes (zstd)


def decode(path: Path, jobs: list[Job]) -> list[dict[str, np.ndarray]]:
    """Decodes all jobs in one child process; returns one dict of named arrays a job, as the decode_* functions do.

    Raises InputError that names `path` and the job's item, and UnavailableError if a codec's package is not installed.
    """
    for codec in {job.codec for job in jobs}:
        package, name = PACKAGES[codec]
        import_optional(package, f"{path}: holds data compressed by {name}: {pip_install('models')}")
    if not jobs:
        return []
    with temporary_directory("decode") as folder:
        for number, job in enumerate(jobs):
            Path(folder, f"{number}.in").write_bytes(job.data)
        rows = [[job.codec, job.max_items] for job in jobs]
        Path(folder, "jobs.json").write_text(json.dumps(rows), encoding="utf-8")
        seconds = SECONDS + sum(len(job.data) for job in jobs) / (1 << 20)
        reason = run_trial("renderer.formats.codecs:decode_jobs", folder, seconds=seconds).reason
        return [_result(path, Path(folder), number, job, reason) for number, job in enumerate(jobs)]


def _result(path: Path, folder: Path, number: int, job: Job, reason: str) -> dict[str, np.ndarray]:
    error_file, decoded = folder / f"{number}.error", folder / f"{number}.npz"
    if error_file.exists():
        raise InputError(f"{path}: {job.item} {error_file.read_text(encoding='utf-8')}")
    if not decoded.exists():
        raise InputError(f"{path}: {job.item} is damaged: {reason or 'it was not decoded'}")
    with np.load(decoded, allow_pickle=False) as arrays:
        return dict(arrays)


# ---- the child ------------------------------------------------------------------------------------------------------
class Refused(Exception):
    """The reason why a job cannot be decoded, as a predicate: "is damaged"."""


def decode_draco(data: bytes, max_items: int) -> dict[str, np.ndarray]:
    """Decodes a Draco mesh: `faces` (m, 3) uint32, and each attribute (n, width) under its unique id."""
    import DracoPy

    try:
        mesh = DracoPy.decode(data)
    except Exception as error:  # DracoPy raises errors of many types on damaged data
        raise Refused(f"is damaged: {shorten(str(error))}") from error
    if not hasattr(mesh, "faces"):  # DracoPy has another class for clouds of points
        raise Refused("is a cloud of points; a mesh is wanted")
    arrays = {str(entry["unique_id"]): np.asarray(entry["data"]) for entry in mesh.attributes}
    faces = np.asarray(mesh.faces, "u4").reshape(-1, 3)
    if max(len(faces), *(len(values) for values in arrays.values()), 0) > max_items:
        raise Refused(f"decodes to more than the {max_items} vertices or triangles allowed")
    arrays = {key: values.reshape(len(values), -1) for key, values in arrays.items()}
    return {"faces": faces, **arrays}


def decode_basis(data: bytes, max_items: int) -> dict[str, np.ndarray]:
    """Decodes `pixels` (height, width, 4) uint8 of the largest image of a KTX 2 file with ETC1S or UASTC data."""
    import opengl_basisu

    try:
        texture = opengl_basisu.open(data)
        if texture.width * texture.height > max_items:
            raise Refused(f"has {texture.width} x {texture.height} pixels; {max_items} are allowed")
        if texture.faces != 1 or texture.layers != 1:
            raise Refused(f"has {texture.faces} faces and {texture.layers} layers; a plain picture is wanted")
        return {"pixels": np.asarray(texture.transcode("rgba8").data, "u1")}
    except (opengl_basisu.BasisuError, ValueError) as error:
        raise Refused(f"is damaged or no KTX 2 picture of ETC1S or UASTC: {shorten(str(error))}") from error


def decode_zstd(data: bytes, max_items: int) -> dict[str, np.ndarray]:
    """Decodes one Zstandard frame (RFC 8878): `bytes` (n,) uint8."""
    import zstandard

    decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    try:
        with decoder.stream_reader(data) as reader:
            out = reader.read(max_items + 1)
    except zstandard.ZstdError as error:
        raise Refused(f"is damaged: {shorten(str(error))}") from error
    if len(out) > max_items:
        raise Refused(f"decodes to more than the {max_items} bytes that its header says")
    return {"bytes": np.frombuffer(out, "u1")}


CODECS: dict[str, Callable[[bytes, int], dict[str, np.ndarray]]] = {
    "draco": decode_draco, "basis": decode_basis, "zstd": decode_zstd,
}  # fmt: skip


def decode_jobs(folder: str) -> None:
    """The child's work: decodes the jobs in `folder`."""
    limit_memory(MAX_BYTES)
    rows: list[Any] = json.loads(Path(folder, "jobs.json").read_text(encoding="utf-8"))
    for number, (codec, max_items) in enumerate(rows):
        try:
            arrays = CODECS[codec](Path(folder, f"{number}.in").read_bytes(), max_items)
        except (MemoryError, Refused) as error:
            text = str(error) if isinstance(error, Refused) else "is damaged: it needs too much memory"
            Path(folder, f"{number}.error").write_text(text, encoding="utf-8")
            continue
        unfinished = Path(folder, f"{number}.part.npz")
        np.savez(unfinished, **arrays)  # type: ignore[arg-type]  # none is named allow_pickle
        unfinished.rename(Path(folder, f"{number}.npz"))  # a file of this name is complete
