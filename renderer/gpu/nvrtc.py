"""CUDA source code to machine code by NVRTC (no host compiler), cubins cached on disk by content (NVRTC manual)."""

import hashlib
from pathlib import Path
from typing import Any

from renderer.errors import KernelError, UnavailableError
from renderer.gpu.cache import cache_folder, read_entry, write_entry

try:
    from cuda.bindings import nvrtc as nvrtc

    IMPORT_ERROR = ""
except ImportError as error:
    nvrtc, IMPORT_ERROR = None, str(error)


def compile_cubin(
    text: str, architecture: str, name: str = "kernel.cu", strict: bool = False, compiler: Any = None
) -> bytes:
    """The machine code of CUDA source for an architecture such as "sm_90", from the disk cache if it is there.

    `strict` forbids contraction into fused multiply-adds. `compiler` is the NVRTC binding; tests replace it. Raises
    KernelError with NVRTC's log.
    """
    compiler = compiler or nvrtc
    if compiler is None:
        raise UnavailableError(f"NVRTC is missing ({IMPORT_ERROR}): pip install cuda-bindings nvidia-cuda-nvrtc")
    options = _options(architecture, strict)
    path = _path(compiler, text, options)
    code = read_entry(path)
    if code is None:
        code = _compile(compiler, text, options, name)
        write_entry(path, code)
    return code


def is_cached(text: str, architecture: str, strict: bool) -> bool:
    """Whether compile_cubin() finds the code in the disk cache."""
    return read_entry(_path(nvrtc, text, _options(architecture, strict))) is not None


def _options(architecture: str, strict: bool) -> list[str]:
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "--generate-line-info"]
    options += ["--diag-suppress=1444"]  # double4 is deprecated in CUDA 13; OpenCL has it too
    return [*options, "--fmad=false"] if strict else options


def _path(compiler: Any, text: str, options: list[str]) -> Path:
    _, major, minor = compiler.nvrtcVersion()
    key = hashlib.sha256("\0".join([text, *options, f"nvrtc {major}.{minor}"]).encode()).hexdigest()
    return cache_folder() / "cubin" / f"{key}.cubin"


def _compile(compiler: Any, text: str, options: list[str], name: str) -> bytes:
    _, program = compiler.nvrtcCreateProgram(text.encode(), name.encode(), 0, None, None)
    try:
        (status,) = compiler.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if status != compiler.nvrtcResult.NVRTC_SUCCESS:
            _, size = compiler.nvrtcGetProgramLogSize(program)
            log = b" " * size
            compiler.nvrtcGetProgramLog(program, log)
            raise KernelError(
                f"{name}: NVRTC: compilation failed\n{log.decode(errors='replace').strip(chr(0)).strip()}"
            )
        _, size = compiler.nvrtcGetCUBINSize(program)
        code = b" " * size
        compiler.nvrtcGetCUBIN(program, code)
        return code
    finally:
        compiler.nvrtcDestroyProgram(program)
