"""Writes output files: claimed by one process at a time, complete or not there at all, through links, never onto pipes.

Every writer of the program goes through atomic_write() or append_line(). A command that works for long claims its
outputs first, by claimed(); a second process is then refused with the name of the first. Claims are locks on bytes of
one file in the user's private folder, a byte an output. The system releases them when their process ends, in whatever
way, and no lock file is left beside an output. They bind the processes of one user on one machine.
A command replaces a file that this program did not write, or that was changed since, only with --force: own_outputs().
The user's cache folder keeps the digest of each written output; if it has none, a mark in the file decides.
Sources: fcntl(2) (record locks), open(2) (O_TMPFILE), linkat(2).
"""

import errno
import functools
import os
import platform
import re
import stat
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import IO

from renderer.errors import DiskFullError, UserError, is_disk_full
from renderer.host import try_lock, unlock, unnamed_file
from renderer.paths import CACHE, ensure_cache, private_folder
from renderer.plain import printable
from renderer.system.files import file_kind, file_size, resolve
from renderer.system.trust import Limits, refuse_links

HOLDER_BYTES = 256  # size of a holder's record in the lock file: process, host, time and command
LOCKS_FROM = 1 << 20  # offset of the lock bytes in the lock file; the holders' records lie before it
WAIT_SECONDS = 2.0  # time that a writer waits for another process which writes the same file
PROBE_BYTES = 1 << 20  # bytes that _check_room() writes to get the error of a full disk
SLOTS = 1 << 15  # slots for records of written outputs; outputs that hash to one slot replace each other
RECORD_BYTES = 96  # a record: the SHA-256 of the path, and the _content_id() of the last two writes
# Bytes at both ends of a file that are searched for a mark, and the largest text whose seal is checked. Larger files
# are identified by size and time of change.
HEAD_BYTES, TAIL_BYTES, MAX_SEALED_BYTES = 1 << 20, 1 << 10, 1 << 26
# The marks of files that this program wrote, in the first HEAD_BYTES and last TAIL_BYTES: PNG, EXR, .npy (NumPy writes
# fewer spaces), .npz, .gif, .mp4, .mkv, .webm and the badge for shields.io. A .csv table has no place for a mark.
# They decide for a file without a record: after a move, on another machine, without a cache folder.
_MARKS = (
    rb"\x89PNG.*rayfold:digest\0[0-9a-f]{64}.{4}\0{4}IEND.{4}\Z|v/1\x01.*rayfold_digest\0string\0"
    rb"|\x93NUMPY.{4,6}\{[^\n]* {128}\n|PK.*\x07\0Rayfold\Z|GIF8.*!\xfe\x07Rayfold\0"
    rb'|(....ftyp|\x1aE\xdf\xa3).*\{"rayfold": |\{"schemaVersion": 1, "label": "bench"'
)
_SEAL = "<!-- Rayfold {} -->\n"  # the last line of a text, with the SHA-256 of the lines above it

_held: Counter[int] = Counter()  # claims of this process by their byte: claims nest
_guard = threading.Lock()


@contextmanager
def claimed(*paths: Path | str | None, force: bool = False, seconds: float = WAIT_SECONDS) -> Iterator[list[str]]:
    """Claims outputs (files or folders; None: no output) in the block; claims of one process nest.

    UserError that names the process which still holds an output after `seconds`; with `force` a line on stderr says
    so, and the block runs all the same, with the sentences about other processes as its value. Where the private folder
    cannot be used there are no claims.
    """
    taken, others = list[int](), list[str]()  # bytes that are claimed; sentences about other processes
    try:
        for path in [path for path in paths if path is not None]:
            byte, end = _byte_of(path), time.monotonic() + seconds
            while not (is_taken := _take(byte)) and not force and time.monotonic() < end:
                time.sleep(0.01)
            if not is_taken:
                sentence = f"{path}: {_holder(byte)} is writing it"
                if not force:
                    raise UserError(f"{sentence}; wait until it ends, or name another output")
                print(f"rayfold: {sentence}, too", file=sys.stderr)
                others.append(sentence)
                with _guard:
                    _held[byte] += 1  # so that writers in the block are not refused
            taken.append(byte)
        yield others
    finally:
        for byte in taken:
            _release(byte)


@contextmanager
def own_outputs(*paths: Path | str | None, force: bool = False) -> Iterator[list[str]]:
    """claimed() for the files that a user names; UserError for one that is_own() denies, unless `force`."""
    with claimed(*paths, force=force) as others:
        for path in [path for path in paths if path and not force]:
            check_own(path)
        yield others


def check_own(path: Path | str, option: str = "") -> None:
    """UserError, which begins with `option`, for a file that is_own() denies; a line on stderr where a link leads."""
    link = f"is a link to {_resolved(path)}, which " if os.path.islink(path) else ""
    if reason := _why_foreign(path):
        raise UserError(f"{option}{path}: {link}{reason}; --force replaces it")
    if link:
        print(f"rayfold: {path}: {link}is written", file=sys.stderr)


def is_own(path: Path | str) -> bool:
    """False for a file that this program did not write, by its record or its mark, or that was changed since."""
    return not _why_foreign(path)


def _why_foreign(path: Path | str) -> str:
    """The reason for which is_own() denies a file; empty if it does not."""
    if not os.path.isfile(path) or not os.path.getsize(path):
        return ""  # nothing is lost; check_output() refuses what is no file
    with suppress(OSError), open(path, "rb") as file:
        size, seal, head = file_size(file), len(_SEAL.format("0" * 64)), file.read(HEAD_BYTES)
        file.seek(max(size - TAIL_BYTES, 0))
        tail = file.read(TAIL_BYTES)
        is_marked = re.match(_MARKS, head + tail, re.DOTALL) is not None
        if not is_marked and seal <= size <= MAX_SEALED_BYTES:
            file.seek(0)
            is_marked = tail[-seal:] == _SEAL.format(sha256(file.read(size - seal)).hexdigest()).encode()
        written = _recorded(path)
        if (_content_id(file) in written) if written else is_marked:  # the mark decides for a file without a record
            return ""
        if is_marked:
            return "was changed since Rayfold wrote it"
    return "holds what Rayfold did not write"


def _content_id(file: IO[bytes]) -> bytes:
    """32 bytes that identify an open file's content: its SHA-256; for a large file a hash of size and change time."""
    state = os.fstat(file.fileno())
    if state.st_size > MAX_SEALED_BYTES:
        return sha256(f"{state.st_size} {state.st_mtime_ns}".encode()).digest()
    file.seek(0)
    return file_digest(file, "sha256").digest()  # type: ignore[arg-type]  # a raw file, as Python takes it too


@functools.cache
def _record_file() -> int:
    """The descriptor of the file of records, -1 where there is none."""
    return _open_shared(lambda: ensure_cache() / "rayfold", "outputs.written")


def _open_shared(make_folder: Callable[[], Path], name: str) -> int:
    """Opens a file that all processes of this user read and write; -1 where its folder cannot be used."""
    with suppress(OSError, UserError):
        folder = make_folder()
        folder.mkdir(exist_ok=True)
        return os.open(folder / name, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    return -1


def _recorded(path: Path | str, content: bytes = b"") -> list[bytes]:
    """The _content_id() of the last two writes to a path, newest first, [] if unknown; adds `content` as the newest."""
    key, known = _key(path), list[bytes]()
    with _guard, suppress(OSError):
        offset = int.from_bytes(key[:4], "big") % SLOTS * RECORD_BYTES
        os.lseek(_record_file(), offset, os.SEEK_SET)
        record = os.read(_record_file(), RECORD_BYTES)
        if record[:32] == key:
            known = [record[32:64], record[64:]]
        if content and content not in known[:1]:
            os.lseek(_record_file(), offset, os.SEEK_SET)
            os.write(_record_file(), key + content + (known[0] if known else bytes(32)))
    return known


def _byte_of(path: Path | str) -> int:
    """The number of the byte that stands for an output; links to one file share it.

    It is below 2^30, so that its offset in the lock file has 31 bits at most on every system.
    """
    return int.from_bytes(_key(path)[:4], "big") >> 2


def _key(path: Path | str) -> bytes:
    """The SHA-256 of the path of an output, links followed."""
    return sha256(os.fsencode(os.path.normcase(_resolved(path)))).digest()


@functools.cache
def _lock_file() -> int:
    """The descriptor of the file of locks, which stays open: to close it would release them. -1 where there is none."""
    return _open_shared(lambda: private_folder() / CACHE, "outputs.lock")


def _take(byte: int) -> bool:
    """Locks a byte of the lock file and notes the process beside it; False if another process holds it."""
    with _guard:
        file = _lock_file()
        if file >= 0 and not _held[byte]:
            if not try_lock(file, LOCKS_FROM + byte):
                return False
            command = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
            since = f"{time.strftime('%H:%M:%S')}: {printable(command, 150)}"
            record = f"process {os.getpid()} on {platform.node()[:40]} (since {since})".encode()[:HOLDER_BYTES]
            with suppress(OSError):  # a full disk: the claim holds, its holder stays unnamed
                _seek(file, byte)
                os.write(file, record.ljust(HOLDER_BYTES, b"\0"))
        _held[byte] += 1
        return True


def _release(byte: int) -> None:
    """Ends a claim of this process; the last one of a byte unlocks it."""
    with _guard:
        _held[byte] -= 1
        if not _held[byte] and _lock_file() >= 0:
            unlock(_lock_file(), LOCKS_FROM + byte)


def _holder(byte: int) -> str:
    """The process that holds a byte, in words."""
    with _guard, suppress(OSError):
        _seek(_lock_file(), byte)
        record = os.read(_lock_file(), HOLDER_BYTES).rstrip(b"\0")
        return record.decode(errors="replace") or "another process"
    return "another process"


def _seek(file: int, byte: int) -> None:
    """Moves to the holder's record of a byte. Bytes share records; so a claim may be shown under another's holder."""
    os.lseek(file, byte % (LOCKS_FROM // HOLDER_BYTES) * HOLDER_BYTES, os.SEEK_SET)


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Raises an OSError of the block as DiskFullError or UserError that names the path of the output."""
    try:
        yield
    except OSError as error:
        kind = DiskFullError if is_disk_full(error) else UserError
        raise kind(f"{path}: cannot be written: {error.strerror or error}") from error


def _resolved(path: Path | str) -> Path:
    try:
        with writing(path):
            return resolve(path)
    except ValueError as error:  # a name with NUL or with an unpaired surrogate
        raise UserError(f"{path}: cannot be written: no file can have this name") from error


def check_suffix(option: str, path: Path | str, *allowed: str) -> str:
    """Returns the suffix of an output in lower case; UserError, which begins with `option`, for one not `allowed`."""
    suffix = Path(path).suffix
    if suffix.lower() not in allowed:
        said = f"allowed {'are' if len(allowed) > 1 else 'is'} {', '.join(allowed)}"
        raise UserError(f"{option} {path}: unknown suffix {suffix or '(none)'}; {said}")
    return suffix.lower()


def check_output(path: Path | str, appends: bool = False) -> Path:
    """The file, links followed, that a write to `path` makes or replaces; UserError if the write is not possible.

    Refused are folders, pipes, sockets and devices, which a file must not replace, and files that are read-only. A
    writer that `appends` replaces nothing and may write to character devices. With --untrusted, links out of their
    folder are refused: the folder may hold links that a stranger made.
    """
    if Limits.refuses_links:
        refuse_links(str(path))
    target = _resolved(path)
    with writing(path):
        try:
            state = os.stat(path)
        except FileNotFoundError:
            folder = target.parent if os.path.islink(path) else Path(path).parent
            if not folder.is_dir():  # of `path`: of none/../file, `target` has lost the `none`, but no reader finds it
                raise UserError(f"{path}: cannot be written: the folder {folder} does not exist") from None
            touched = [target.parent]
        else:
            if not stat.S_ISREG(state.st_mode) and not (appends and stat.S_ISCHR(state.st_mode)):
                raise UserError(f"{path}: is {file_kind(state)}; an output file is wanted")
            touched = [target] if appends else [target, target.parent]
            if not state.st_mode & 0o222:  # os.access() lets root write it
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not all(os.access(one, os.W_OK) for one in touched):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return target


@contextmanager
def atomic_write(path: Path | str, seconds: float = WAIT_SECONDS, mode: int | None = None) -> Iterator[Path]:
    """Yields a temporary path whose file replaces `path` if the block ends without an error.

    `mode` holds the permissions; by default they are copied from the replaced file, or 0o666 less the umask.
    An existing file stays intact until its replacement is complete and on the disk. Where the file system has O_TMPFILE
    (Linux) the temporary file has no name until then, so a killed process leaves none. UserError as check_output() and
    claimed() raise it; an OSError of the block is raised as UserError or DiskFullError.
    """
    with claimed(path, seconds=seconds), writing(path):
        target = check_output(path)
        hidden = unnamed_file(target.parent)  # its descriptor, and its path in /proc
        handle, name = hidden or tempfile.mkstemp(dir=target.parent, prefix=".rayfold-", suffix=target.suffix[:20])
        with os.fdopen(handle, "r+b", buffering=0) as file:
            try:
                try:
                    yield Path(name)
                except OSError as error:
                    if error.errno is None:  # NumPy and OpenEXR do not say which error it was
                        _check_room(file)
                    raise
                os.fsync(handle)
                if mode is None:
                    mode = stat.S_IMODE(os.stat(target).st_mode) if target.exists() else 0o666 & ~_umask()
                os.chmod(name, mode)
                _recorded(target, _content_id(file))  # a process killed here leaves the old file, which counts too
                name = _named(handle, name, target)
                file.close()  # Windows renames no open file
                os.replace(name, target)
            finally:
                with suppress(OSError):
                    os.unlink(name)


def write_text(path: Path | str, text: str, is_sealed: bool = False, mode: int | None = None) -> None:
    """Replaces a text file by UTF-8 text, as atomic_write() does; a page or drawing `is_sealed` by a last comment."""
    data = text.encode()
    write_bytes(path, data + _SEAL.format(sha256(data).hexdigest()).encode() if is_sealed else data, mode)


def write_bytes(path: Path | str, data: bytes, mode: int | None = None) -> None:
    """Replaces a file by the bytes, as atomic_write() does."""
    with atomic_write(path, mode=mode) as temporary:
        temporary.write_bytes(data)


def _named(handle: int, name: str, target: Path) -> str:
    """A path of the temporary file in the folder of `target`, which is given one if it has none."""
    if Path(name).parent == target.parent:
        return name
    named = target.with_name(f".rayfold-{os.getpid()}-{handle}")
    named.unlink(missing_ok=True)
    os.link(name, named, src_dir_fd=handle)  # with src_dir_fd Python calls linkat(2), which follows the link in /proc
    return str(named)


def _check_room(file: IO[bytes]) -> None:
    """Raises the OSError of a disk, quota or limit that takes no further bytes; the first write may be cut short."""
    file.seek(0, os.SEEK_END)
    for _ in range(2):
        file.write(bytes(PROBE_BYTES))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def append_line(path: Path | str, line: str) -> None:
    """Appends a line to a text file; ends a last line that a killed process left incomplete. UserError, DiskFullError.

    A killed process loses at most the line that it was writing.
    """
    with claimed(path), writing(path), open(check_output(path, appends=True), "ab+") as file:
        if file.tell():  # at the end of the file; 0 for an empty one and for a character device
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(line.encode() + b"\n")
        file.flush()
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            os.fsync(file.fileno())
