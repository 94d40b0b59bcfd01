"""Feeds mutated files to the readers: `python -m tests.fuzz.run mtx_band --inputs 100000 --seed 1`.

Input k of a seed is always the same bytes (`--show K` writes it). The readers run in forked processes, a batch of
inputs each, with limited address space; this process watches them, kills one that takes too long over an input and
goes on behind the input that killed it. Findings are kept by mechanism, the smallest input of each.
"""

import argparse
import contextlib
import json
import os
import re
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from mmap import mmap
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any

from renderer.errors import UserError
from tests.fuzz.large import FIFO, LARGE, ZERO
from tests.fuzz.mutate import mutate
from tests.fuzz.targets import TARGETS, Target, Usage, prepare

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
SECONDS = 5.0  # of processor time that an input may take
WALL_SECONDS = 60.0  # for readers that wait instead of computing; other work may slow this machine down
IDLE_SECONDS = 6.0  # for readers that use no processor time at all
MEMORY = 1 << 30  # bytes that reading an input may add to the resident memory
ADDRESS_SPACE = 6 << 30  # bytes beyond those of the process at its start; keeps a mistake from filling the machine
MAX_MESSAGE = 1000  # characters of an error
MAX_SENTENCE = 400  # characters of an error beside the names of folders, for inputs that are made
BATCH = 20_000  # inputs of a process
COUNTS, COUNTS_AT = struct.Struct("<qdqq"), 2048  # inputs refused, slowest input: seconds and index, memory


@dataclass
class Finding:
    """A mechanism: what happened where, how often, and its smallest input."""

    signature: str
    detail: str
    count: int = 0
    index: int = -1
    suffix: str = ""
    data: bytes = b""


@dataclass
class Report:
    """The result of a run over one target; `findings` by their signatures."""

    name: str
    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    memory: int = 0
    slowest: float = 0.0
    slowest_index: int = -1
    findings: dict[str, Finding] = field(default_factory=dict)

    def line(self) -> str:
        """One sentence about the run."""
        kinds = f"{len(self.findings)} mechanisms in {sum(f.count for f in self.findings.values())} findings"
        rate = self.inputs / max(self.seconds, 1e-9)
        work = 1e3 * self.processor_seconds / max(self.inputs, 1)
        return (
            f"{self.name}: {self.inputs} inputs ({self.refused} refused), {rate:.0f}/s, {work:.2f} ms each, {kinds}, "
            f"+{self.memory >> 20} MiB, slowest {self.slowest:.2f} s (input {self.slowest_index})"
        )


# ---- one input


def frames_of(error: BaseException) -> tuple[str, str]:
    """`file:function:line` of the innermost frame of the product, and of the innermost frame of all."""
    ours, last = "", ""
    at: TracebackType | None = error.__traceback__
    while at is not None:
        path = Path(at.tb_frame.f_code.co_filename)
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT / "renderer") else path.name
        last = f"{name}:{at.tb_frame.f_code.co_name}:{at.tb_lineno}"
        if name != path.name:
            ours = last
        at = at.tb_next
    return ours, last


def patience() -> int:
    """Factor of the limits of time and memory: kernels are compiled on a real device."""
    return 20 if os.environ.get("RAYFOLD_FUZZ_DEVICE") == "real" else 1


def judge(target: Target, path: Path) -> tuple[str, str]:
    """Reads the file: ("", "") if it was read, ("refused", message), or the signature and detail of a finding."""
    noise: list[tuple[str, str]] = []

    def note(message: object, category: type, file: str, line: int, *_: object) -> None:
        if not issubclass(category, DeprecationWarning):  # which Python shows to nobody
            noise.append((f"warning {category.__name__}", f"{Path(file).name}:{line}: {message}"))

    warnings.showwarning = note
    try:
        target.read(path)
    except UserError as error:
        message = str(error)
        shown = message.replace(f"{path.parent}/", "") if target.generate else message
        fault = message_fault(
            shown, target.one_line, MAX_SENTENCE if target.generate and target.one_line else MAX_MESSAGE
        )
        if fault:
            where = " of the parser of arguments" if isinstance(error, Usage) else ""
            return fault + where, f"{frames_of(error)[0]}: {len(message)} characters: {message[:200]!r}"
        if not noise:
            return "refused", message
    except BaseException as error:  # KeyboardInterrupt and SystemExit are findings too
        ours, last = frames_of(error)
        told = "".join(traceback.format_exception_only(error)).strip()
        return f"{type(error).__name__}: {ours}", f"{told[:300]} ({last})"
    return (noise[0][0], noise[0][1][:400]) if noise else ("", "")


def message_fault(message: str, one_line: bool, most: int) -> str:
    """What is wrong with the message of an error, if anything is."""
    if len(message) > most:
        return "long message"
    if not message.strip():
        return "empty message"
    if one_line and re.search(r"[\n\r]", message):
        return "message of several lines"
    if re.search(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]", message):
        return "control characters in a message"
    return ""


def made_input(name: str, seeds: list[tuple[str, bytes]], seed: int, index: int) -> tuple[str, bytes]:
    """The suffix and bytes of input `index`; the first ones are the seeds as they are."""
    if generate := TARGETS[name].generate:
        return TARGETS[name].suffix, generate(Random(f"{name}/{seed}/{index}"))
    if index < len(seeds):
        file, data = seeds[index]
    else:
        rng = Random(f"{name}/{seed}/{index}")
        file, data = rng.choice(seeds)
        data = mutate(data, rng, TARGETS[name].mutators)
    return suffix_of(file), data


def suffix_of(name: str) -> str:
    """`.mtx.gz` of a.mtx.gz, `.png` of a.png."""
    return "".join(Path(name).suffixes[-2:] if name.endswith(".gz") else Path(name).suffixes[-1:])


def place(path: Path, data: bytes) -> None:
    """Writes an input, or puts in its place what large.FIFO and large.ZERO stand for."""
    if path.is_symlink() or path.is_fifo():
        path.unlink()
    if data == FIFO:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    elif data == ZERO:
        path.unlink(missing_ok=True)
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(data)


# ---- processes

Inputs = list[tuple[str, bytes]]


def limit(memory: int) -> None:
    """Limits the address space of this process; a crash leaves no core file; no native message is shown."""
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + memory, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def peak() -> int:
    """The largest resident memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def work(name: str, make: Any, indices: range, state: mmap, out: int) -> None:
    """Reads inputs in this (forked) process and writes what is found to the pipe, a JSON line each."""
    limit(ADDRESS_SPACE)
    warnings.simplefilter("always")
    target, folder = TARGETS[name], Path(state_folder(state))
    base = peak()
    refused, slowest, slowest_index = 0, 0.0, -1

    def tell(**row: object) -> None:
        os.write(out, json.dumps(row).encode() + b"\n")

    for index in indices:
        suffix, data = make(index)
        path = folder / f"input{suffix}"
        place(path, data)
        os.utime(path, ns=(index, index), follow_symlinks=False)  # readers that keep files by their time see a new one
        struct.pack_into("<q", state, 0, index)
        began = time.process_time()
        signature, detail = judge(target, path)
        took = time.process_time() - began
        if took > slowest:
            slowest, slowest_index = took, index
        refused += signature == "refused"
        grown = peak() - base
        if signature not in ("", "refused"):
            tell(index=index, signature=signature, detail=detail)
        if took > SECONDS * patience() * (2 if index == indices[0] else 1):  # the first draw compiles
            tell(index=index, signature="slow", detail=f"{took:.1f} s of processor time")
        COUNTS.pack_into(state, COUNTS_AT, refused, slowest, slowest_index, grown)
        if grown > MEMORY * patience():
            tell(index=index, signature="memory", detail=f"+{grown >> 20} MiB")
            tell(done=index + 1)
            os._exit(0)
    tell(done=indices.stop)
    os._exit(0)


def state_folder(state: mmap) -> str:
    (length,) = struct.unpack_from("<q", state, 8)
    return state[16 : 16 + length].decode()


def processor_seconds(pid: int) -> float:
    """The processor time of a process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def children_seconds() -> float:
    """The processor time of all processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def batches(name: str, make: Any, indices: range) -> Iterator[dict[str, Any]]:
    """The rows that the processes report; a process that dies or hangs is a row too, and another one goes on."""
    folder = tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    encoded = folder.encode()
    state = mmap(-1, 4096)
    state[16 : 16 + len(encoded)] = encoded
    struct.pack_into("<q", state, 8, len(encoded))
    first = indices.start
    try:
        while first < indices.stop:
            struct.pack_into("<q", state, 0, first)
            part = range(first, min(indices.stop, first + BATCH))
            first = yield from one_batch(name, make, part, state)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def one_batch(name: str, make: Any, part: range, state: mmap) -> Iterator[dict[str, Any]]:
    """The rows of one process; returns the index at which the next one begins."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        try:
            work(name, make, part, state, write)
        finally:
            os._exit(99)
    os.close(write)
    buffer, killed, done = b"", "", None
    index, since, used = part.start, time.monotonic(), 0.0
    while True:
        ready, _, _ = select.select([read], [], [], 0.25)
        if ready:
            data = os.read(read, 1 << 16)
            if not data:
                break
            buffer += data
            *rows, buffer = buffer.split(b"\n")
            for row in map(json.loads, rows):
                done = row.get("done", done)
                if "index" in row:
                    yield row
        (now,) = struct.unpack_from("<q", state, 0)
        if now != index:
            index, since, used = now, time.monotonic(), processor_seconds(pid)
        elif not killed and time.monotonic() - since > SECONDS * patience():
            seconds, wall, more = processor_seconds(pid) - used, time.monotonic() - since, patience()
            idle = wall > IDLE_SECONDS * more and seconds < 0.1
            if seconds > SECONDS * more + 1 or wall > WALL_SECONDS * more or idle:
                killed = f"killed after {seconds:.1f} s of processor time, {wall:.0f} s of waiting"
                os.kill(pid, signal.SIGKILL)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    yield dict(
        zip(("refused", "slowest", "slowest_index", "memory"), COUNTS.unpack_from(state, COUNTS_AT), strict=True)
    )
    COUNTS.pack_into(state, COUNTS_AT, 0, 0.0, -1, 0)
    if done is not None:
        return done
    (index,) = struct.unpack_from("<q", state, 0)
    if killed:
        yield {"index": index, "signature": "hang", "detail": killed}
    elif os.WIFSIGNALED(status):
        told = signal.Signals(os.WTERMSIG(status)).name
        yield {"index": index, "signature": f"killed by {told}", "detail": told}
    else:
        code = os.waitstatus_to_exitcode(status)
        yield {"index": index, "signature": f"exit {code}", "detail": f"the process ended with code {code}"}
    return index + 1


def seeds_of(name: str) -> list[tuple[str, bytes]]:
    """The good files of a target, made in a process of their own: libraries that write start threads."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.close(read)
            rows = [[file, data.hex()] for file, data in TARGETS[name].seeds().items()]
            with open(write, "w") as pipe:
                json.dump(rows, pipe)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(write)
    with open(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"{name}: the good files could not be made")
    return [(file, bytes.fromhex(data)) for file, data in json.loads(text)]


def run(name: str, make: Any, indices: range) -> Report:
    """Reads all inputs; the report."""
    report, began, used = Report(name), time.monotonic(), children_seconds()
    for row in batches(name, make, indices):
        if "refused" in row:
            report.refused += row["refused"]
            report.memory = max(report.memory, row["memory"])
            if row["slowest"] > report.slowest:
                report.slowest, report.slowest_index = row["slowest"], row["slowest_index"]
            continue
        finding = report.findings.setdefault(row["signature"], Finding(row["signature"], row["detail"]))
        finding.count += 1
        if finding.count > 100:  # the smallest of the first hundred is small enough
            continue
        suffix, data = make(row["index"])
        if finding.count == 1 or len(data) < len(finding.data):
            finding.detail, finding.index, finding.suffix, finding.data = row["detail"], row["index"], suffix, data
    report.inputs, report.seconds = len(indices), time.monotonic() - began
    report.processor_seconds = children_seconds() - used
    return report


def fuzz(name: str, inputs: int, seed: int, first: int = 0) -> Report:
    """A run over mutated inputs."""
    seeds = seeds_of(name)
    return run(name, lambda index: made_input(name, seeds, seed, index), range(first, first + inputs))


def check(name: str, files: list[tuple[str, bytes]]) -> list[list[Finding]]:
    """The findings of each of the files (name, content), which are read as they are."""
    found: list[list[Finding]] = [[] for _ in files]
    rows = batches(name, lambda index: (suffix_of(files[index][0]), files[index][1]), range(len(files)))
    for row in rows:
        if "index" in row:
            found[row["index"]].append(Finding(row["signature"], row["detail"], 1, row["index"]))
    return found


def corpus_names(name: str) -> list[str]:
    """The names of a target's kept inputs, and of those that are made because they are large."""
    return [path.name for path in sorted((CORPUS / name).glob("*"))] + list(LARGE.get(name, {}))


def corpus_files(name: str, kept: bool = True, large: bool = True) -> list[tuple[str, bytes]]:
    """The kept inputs of a target, and those that are made because they are large."""
    files = [(path.name, path.read_bytes()) for path in sorted((CORPUS / name).glob("*"))] if kept else []
    return files + [(file, make()) for file, make in LARGE.get(name, {}).items() if large]


def write_findings(report: Report, folder: Path) -> None:
    """The smallest input of each mechanism, and a list of the mechanisms."""
    target = folder / report.name
    target.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, finding in enumerate(sorted(report.findings.values(), key=lambda f: -f.count)):
        word = re.sub(r"[^A-Za-z0-9]+", "_", finding.signature)[:80]
        path = target / f"{number:03d}_{word}{finding.suffix}"
        path.write_bytes(finding.data)
        row = {k: v for k, v in asdict(finding).items() if k != "data"}
        rows.append({**row, "bytes": len(finding.data), "file": path.name})
    (target / "findings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [{"signature": f.signature, "detail": f.detail, "count": f.count, "index": f.index} for f in findings]


def main() -> int:
    parser = argparse.ArgumentParser(description="Feeds mutated files to the readers.")
    parser.add_argument("names", nargs="+", help=f"all, or some of {', '.join(TARGETS)}")
    help_ = "for each target (scaled by its weight with all; 10000 without it); with --corpus, after the kept ones"
    parser.add_argument("--inputs", type=int, help=help_)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="index of the first input")
    parser.add_argument("--folder", type=Path, default=Path("out/fuzz"), help="where findings go")
    parser.add_argument("--show", type=int, help="write input K to the folder, and run only that")
    parser.add_argument("--corpus", action="store_true", help="read the kept inputs instead, once each")
    parser.add_argument("--kept", action="store_true", help="with --corpus: leave out the large inputs")
    parser.add_argument("--large", action="store_true", help="with --corpus: the large inputs alone")
    parser.add_argument("--only", help="with --corpus: names that match")
    help_ = "what accepted inputs are drawn on: host computes nothing, and is fast; real: kernels are compiled and run"
    parser.add_argument("--device", choices=("host", "real"), default="host", help=help_)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    args = parser.parse_args()
    names = list(TARGETS) if args.names == ["all"] else args.names
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]}; there are {', '.join(TARGETS)}")
    os.environ |= {"RAYFOLD_FUZZ": "1", "RAYFOLD_FUZZ_DEVICE": args.device}
    prepare(names)
    answer: dict[str, Any] = {}
    failed = False
    for name in names:
        kept: dict[str, Any] = {}
        if args.corpus:
            files = corpus_files(name, not args.large, not args.kept)
            files = [each for each in files if args.only is None or re.search(args.only, each[0])]
            found = check(name, files)
            answer[name] = kept = {file: as_json(each) for (file, _), each in zip(files, found, strict=True)}
            for (file, _), each in zip(files, found, strict=True):
                failed |= bool(each)
                if not args.json:
                    print(f"{name}/{file}: {'; '.join(f.signature for f in each) or 'fine'}")
            if args.inputs is None:
                continue
        if args.show is not None:
            report = fuzz(name, 1, args.seed, args.show)
            suffix, data = made_input(name, seeds_of(name), args.seed, args.show)
            args.folder.mkdir(parents=True, exist_ok=True)
            (args.folder / f"{name}_{args.show}{suffix}").write_bytes(data)
        else:
            inputs = 10_000 if args.inputs is None else args.inputs
            if args.names == ["all"]:
                inputs = max(TARGETS[name].least, round(inputs * TARGETS[name].weight))
            report = fuzz(name, inputs, args.seed, args.first)
        failed |= bool(report.findings)
        answer[name] = {"line": report.line(), "findings": as_json(report.findings.values()), "kept": kept}
        with contextlib.suppress(BrokenPipeError):
            if not args.json:
                print(report.line(), flush=True)
                for finding in sorted(report.findings.values(), key=lambda f: -f.count):
                    print(
                        f"  {finding.count:6d} x {finding.signature}\n           {finding.detail[:300]!r}", flush=True
                    )
                write_findings(report, args.folder)
    if args.json:
        print(json.dumps(answer))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
