"""Stands in for NVRTC: the CUDA text of kernels, compiled by g++ against words.h and fibers.cpp."""

import ctypes
import hashlib
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
SOURCES = "fibers.cpp", "waits.cpp", "races.cpp"
COMPILER = os.environ.get("CXX", "g++")
RUNTIME = ["-std=c++17", "-O2", "-g1", "-gdwarf-4", "-fPIC", "-shared", "-fno-exceptions"]
# Quick tests compile for longer than they run, the long ones (`make test-all`, `make test-emulated`) run for longer.
# Without optimization no a * b + c is contracted where a GPU might.
LEVEL = "-O1" if {"RAYFOLD_FRESH_SEEDS", "RAYFOLD_TEST_DEVICES"} & set(os.environ) else "-O0"
# Integers wrap round, a variable that nobody set is garbage, an index out of an array of known size is an illegal
# instruction.
KERNEL = [
    "-std=gnu++17", LEVEL, "-g1", "-gdwarf-4", "-fPIC", "-shared", "-w", "-fno-exceptions", "-fno-rtti",
    "-fno-threadsafe-statics", "-fno-strict-aliasing", "-fwrapv", "-fno-math-errno",
    "-fvisibility=hidden", "-Wl,-Bsymbolic", "-ftrivial-auto-var-init=pattern", "-fsanitize=bounds",
    "-fsanitize-undefined-trap-on-error",
]  # fmt: skip
RACES = [
    "-fsanitize=thread", "--param=tsan-distinguish-volatile=1", "--param=tsan-instrument-func-entry-exit=0",
    "-nodefaultlibs",  # its calls are answered by races.cpp, not by the compiler's own library
]  # fmt: skip
ENTRY = re.compile(r"EMULATED_KERNEL\s+void\s+(?:EMULATED_CLUSTER\((\w+)\)\s+)?(\w+)\s*\(")
SHARED = re.compile(r"__shared__\s+([\w ]+?)\s+(\w+)\[(.+?)\](?=\s*;)", re.S)
ASM = re.compile(r"\basm\b\s*(?:volatile)?\s*\(")
PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|::|[:,()]|[^":,()]+')


def calls_for_asm(text: str) -> str:
    """The text with asm("op %0, ..." : outputs : inputs : clobbers) written as ptx_op(operands), line for line."""
    out, at = [], 0
    for match in ASM.finditer(text):
        if match.start() < at:
            continue
        template, operands, end = _asm(text, match.end())
        if template.strip():
            call = _call(template, operands)
            out += [text[at : match.start()], call, "\n" * (text.count("\n", match.start(), end) - call.count("\n"))]
            at = end
    return "".join([*out, text[at:]])


def _asm(text: str, start: int) -> tuple[str, list[str], int]:
    """The template, the operands and the end of the asm statement whose parenthesis opened before `start`."""
    sections: list[list[str]] = [[""]]
    depth, position = 1, start
    while depth:
        part = PARTS.match(text, position).group()
        position += len(part)
        depth += (part == "(") - (part == ")")
        if depth == 1 and part in (":", "::"):
            sections += [[""] for _ in part]
        elif depth == 1 and part == ",":
            sections[-1].append("")
        elif depth:
            sections[-1][-1] += part
    template = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', sections[0][0]))
    operands = [item for section in sections[1:3] for item in section if item.strip()]
    return template, [item[item.index("(") :].strip() for item in operands], position


def _call(template: str, operands: list[str]) -> str:
    found = re.search(r"([a-z]\w*(?:(?:\.|::)\w+)+)([^;]*)", template)
    name = re.sub(r"\W+", "_", found.group(1))
    words = [word.strip("[]{} \n\t") for word in found.group(2).split(",")]
    taken = [re.sub(r"%(\d+)", lambda m: operands[int(m.group(1))], word) for word in words]
    return f"ptx_{name}({', '.join(word for word in taken if re.match(r'[(0-9]', word))})"


def entries_of(text: str) -> str:
    """The text with kernels as plain functions, and one line for each at its end that lets fibers.cpp call it."""
    lines = [f"EMULATED_ENTRY({name}, {cluster or 1})" for cluster, name in ENTRY.findall(text)]
    text = ENTRY.sub(lambda match: f"void {match.group(2)}(", text)
    return text + "\n" + "\n".join(lines) + "\n"


def source(text: str) -> str:
    """What is compiled: words.h and the text, preprocessed, so that asm and __shared__ are not in macros, rewritten."""
    words = (HERE / "words.h").read_text()
    head = f'#line 1 "words.h"\n{words}\n#line 1 "kernel"\n'
    expanded = _run([COMPILER, "-E", "-x", "c++", "-std=gnu++17", "-"], head + text)
    expanded = SHARED.sub(r"EMULATED_SHARED(\1, \2, (\3))", calls_for_asm(expanded))
    macros = "\n".join(_macro(words, name) for name in ("EMULATED_SHARED", "EMULATED_EXPORT", "EMULATED_ENTRY"))
    return macros + "\n" + entries_of(expanded)


def _macro(words: str, name: str) -> str:
    return re.search(rf"^#define {name}\b(?:.*\\\n)*.*$", words, re.M).group()


class Refused(Exception):
    """The compiler's words."""


def _run(command: list[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise Refused(done.stderr)
    return done.stdout


def compile_kernels(text: str, options: list[str], races: bool, target: Path) -> None:
    """Writes the shared object of a CUDA text."""
    rounding = "off" if "--fmad=false" in options else "fast"
    fused = ["-mfma"] if " fma " in Path("/proc/cpuinfo").read_text() else []
    flags = [*KERNEL, *(RACES if races else []), *fused, f"-ffp-contract={rounding}"]
    command = [COMPILER, *flags, "-x", "c++", "-", "-o", str(target), "-lm", "-lc", "-lgcc"]
    _run(command, source(text))


@cache
def version() -> tuple[int, int]:
    """Two numbers that change with the compiler and with what stands in this folder."""
    told = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True).stdout
    mark = hashlib.sha256(told.encode())
    mark.update(LEVEL.encode())
    for name in ("words.h", "compiler.py", "fibers.h", "races.h", *SOURCES):
        mark.update((HERE / name).read_bytes())
    return int.from_bytes(mark.digest()[:4], "big"), int.from_bytes(mark.digest()[4:8], "big")


@cache
def runtime(folder: Path) -> ctypes.CDLL:
    """fibers.cpp, compiled into the folder; its names are seen by the kernels that are loaded later."""
    path = folder / "emulated-{}-{}.so".format(*version())
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        _run([COMPILER, *RUNTIME, *(str(HERE / name) for name in SOURCES), "-o", str(part), "-ldl"], "")
        os.replace(part, path)
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.emulated_launch.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p, ctypes.c_bool,
        ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t,
    ]  # fmt: skip
    return library


def nvrtc(folder: Path, races: bool) -> SimpleNamespace:
    """The functions of cuda.bindings.nvrtc that renderer.gpu.cuda.device calls; a "cubin" is a shared object."""
    major, minor = version()
    success, refused = 0, 6
    programs: dict[int, SimpleNamespace] = {}

    def create(text, name, *headers):
        program = SimpleNamespace(text=text.decode(), code=b"", log=b"")
        programs[id(program)] = program
        return success, id(program)

    def build(handle, count, options):
        program = programs[handle]
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"emulated-{os.getpid()}-{handle}.so"
        try:
            compile_kernels(program.text, [option.decode() for option in options], races, target)
            program.code = target.read_bytes()
        except Refused as error:
            program.log = str(error).encode()
        finally:
            target.unlink(missing_ok=True)
        return (success if program.code else refused,)

    def size(field):
        return lambda handle: (success, len(getattr(programs[handle], field)))

    def get(field):
        def copy(handle, room: bytes):
            ctypes.memmove(
                room, getattr(programs[handle], field), len(room)
            )  # as NVRTC, which fills the bytes it is given
            return (success,)

        return copy

    return SimpleNamespace(
        nvrtcResult=SimpleNamespace(NVRTC_SUCCESS=success),
        nvrtcVersion=lambda: (success, major, 2 * minor + races),
        nvrtcCreateProgram=create,
        nvrtcCompileProgram=build,
        nvrtcDestroyProgram=lambda handle: (programs.pop(handle) and success,),
        nvrtcGetProgramLogSize=size("log"),
        nvrtcGetProgramLog=get("log"),
        nvrtcGetCUBINSize=size("code"),
        nvrtcGetCUBIN=get("code"),
    )
