"""Render-to-texture over moderngl: GlContext creates textures and passes; a Pass draws one triangle over its target.

A context is a window's or a headless one. Headless drivers are tried in a child process first, as a bad one may crash.

Rules that keep results equal on all drivers: NEAREST filtering and texelFetch, no blending, no depth test, a target is
never an input of its pass, integer textures have integer outputs, pixel alignment 1.
"""

import os
import platform
import re
import sysconfig
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import moderngl
import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import KernelError, UnavailableError
from renderer.gpu.kernel_source import GeneratedSource, preprocess_glsl
from renderer.gpu.properties import Counters
from renderer.gpu.verdicts import state_of_files, try_once
from renderer.host import IS_LINUX
from renderer.system.install import GL, system_advice
from renderer.system.trust import check_memory

FULLSCREEN_TRIANGLE_VS = (
    "#version 330\nvoid main() { gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, 0, 1); }\n"
)
# FILE:LINE( of Mesa, FILE(LINE) of NVIDIA, ERROR: FILE:LINE of Apple in compilers' logs; FILE is the number in #line.
LINE_OF_LOG = re.compile(r"(?m)^(?:ERROR: |WARNING: )?(\d+)[:(](\d+)\)?")
NORMALIZED = {"f1": "u1"}  # moderngl's type of 8-bit texels that passes read as [0, 1] -> NumPy's type on the host
SOFTWARE = ("llvmpipe", "softpipe", "swrast")  # Mesa's renderers on the processor
# Options of moderngl's that are tried one after another; {}: the system's window API.
HEADLESS: list[dict[str, Any]] = [{"backend": "egl"}, {}] if IS_LINUX else [{}]
LIBRARY_FOLDERS = "/usr/lib64", "/usr/lib/{}".format(sysconfig.get_config_var("MULTIARCH"))
VENDOR_FOLDERS = "/usr/share/glvnd/egl_vendor.d", "/etc/glvnd/egl_vendor.d"
os.environ.setdefault("EGL_LOG_LEVEL", "fatal")  # no warnings of libEGL: failures are reported in one sentence
# Prefixes of the environment variables that select a driver or change it.
VARIABLES = ("__EGL_", "__GLX_", "EGL_", "GALLIUM_", "GLCONTEXT_", "LIBGL_", "LP_", "MESA_", "LD_LIBRARY_PATH")


class GlContext:
    """A GL 3.3 context, a window's or a headless one, with its textures and passes. Used by one thread only."""

    def __init__(self, ctx: moderngl.Context) -> None:
        self.ctx = ctx
        self.screen = ctx.screen  # a window's default framebuffer, as a render target
        self.renderer = ctx.info["GL_RENDERER"]
        self.software = any(name in self.renderer.lower() for name in SOFTWARE)
        self.max_texture_size = int(ctx.info["GL_MAX_TEXTURE_SIZE"])
        self.max_pass_textures = int(ctx.info["GL_MAX_TEXTURE_IMAGE_UNITS"])  # at least 16
        self.version = 400 if ctx.version_code >= 400 else 330
        self.name, self.counters, self.has_reliable_timer = self.renderer, Counters(), not self.software
        self.driver = f"OpenGL {ctx.info['GL_VERSION']}"
        # finish() then frees GL's objects: Python's collector may run on another thread, which GL does not allow
        ctx.gc_mode = "context_gc"
        self._thread = threading.get_ident()
        self._passes: dict[str, Pass] = {}

    def check_thread(self) -> None:
        """Raises UnavailableError on another thread than the one that opened the context."""
        if threading.get_ident() != self._thread:
            raise UnavailableError(
                "OpenGL draws on one thread of a process, the first that drew with it; call from that thread, or in a "
                "process of its own"
            )

    @classmethod
    def headless(cls) -> "GlContext":
        """Returns the process's headless context; UnavailableError on another thread than the first that asked."""
        context = cls._headless()
        context.check_thread()
        return context

    @classmethod
    @cache
    def _headless(cls) -> "GlContext":
        """Opens the headless context; one only, since GL calls go to the context created last.

        The driver is tried in a child process first, since a bad driver may end the process.
        """
        verdict = try_once(_driver_key(), "renderer.gpu.gl:try_driver")
        if verdict.reason:
            raise UnavailableError(f"no headless GL: the driver is skipped: {verdict.reason}. {_hint()}")
        return cls.create()

    @classmethod
    def create(cls) -> "GlContext":
        """Creates a headless context: by EGL or else GLX on Linux, WGL on Windows, CGL on macOS."""
        reasons = []
        for options in HEADLESS:
            for version in (430, 400, 330):  # NVIDIA's EGL creates exactly the version requested; `precise` needs 4.0
                try:
                    return cls(moderngl.create_context(standalone=True, require=version, **options))
                except Exception as error:  # glcontext raises bare Exceptions if it cannot create the context
                    reason = str(error)
            reasons.append(reason)
        raise UnavailableError(f"no headless GL: {reasons[0]}. {_hint()}")

    @classmethod
    def from_window(cls) -> "GlContext":
        """Wraps the context that a window made current on this thread."""
        return cls(moderngl.create_context(require=330))

    def image(self, path: object, pixels: np.ndarray, dtype: str = "f4") -> "Texture":
        """Returns a texture of a file's pixels (height, width, 4), as texture(); UnavailableError names the file."""
        try:
            return self.texture(pixels.shape[1::-1], dtype=dtype).write(pixels)
        except UnavailableError as error:
            raise UnavailableError(f"{path}: {error}") from error

    def texture(self, size: tuple[int, int], components: int = 4, dtype: str = "f4") -> "Texture":
        """Creates a texture of (width, height) texels for passes to read and draw into; row 0 is the top row.

        `dtype` is moderngl's: "f4", "i4", "u4", or "f1", bytes that passes read as numbers of [0, 1].
        """
        return Texture(self, size, components, dtype)

    def render_pass(self, file: str | GeneratedSource, **constants: object) -> "Pass":
        """Returns the pass of shaders/`file` or of a GeneratedSource; equal texts are compiled once."""
        text, names = preprocess_glsl(file, self.version, **constants)
        if text not in self._passes:
            self._passes[text] = Pass(self, text, names)
        return self._passes[text]

    def finish(self) -> None:
        """Wait for all work; raises KernelError if a kernel failed."""
        self.ctx.finish()
        self.ctx.gc()

    def start_timer(self) -> "GlTimer":
        """Starts to time what is drawn until the timer's stop(); timers do not overlap."""
        return GlTimer(self)

    def time_seconds(self, work: Callable[..., None]) -> float:
        """Times what work() draws, in seconds: by a timer query, or by the wall clock on software GL."""
        self.ctx.finish()
        timer = self.start_timer()
        work()
        timer.stop()
        return timer.seconds()


class GlTimer:
    """The time of draws by a timer query; on software GL, whose queries return wrong times, by the host's clocks.

    There it is the wall clock, or the processor time of this process if that is less: other processes took the rest.
    It has the methods of renderer.gpu.device.Timer.
    """

    is_done = True  # moderngl cannot ask without waiting: seconds() waits

    def __init__(self, gl: GlContext) -> None:
        self._gl, self._started, self._seconds = gl, (time.perf_counter(), time.process_time()), 0.0
        self._query: Any = None if gl.software else gl.ctx.query(time=True)  # its __exit__ has wrong types
        if self._query:
            self._query.__enter__()  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Ends the timed draws; software GL finishes them now."""
        if self._query:
            self._query.__exit__(None, None, None)
        else:
            self._gl.ctx.finish()
            wall, processor = self._started
            self._seconds = min(time.perf_counter() - wall, time.process_time() - processor)

    def seconds(self) -> float:
        """Waits for the draws; returns their time in seconds."""
        return self._query.elapsed * 1e-9 if self._query else self._seconds


class Texture:
    """A 2D texture that passes read and draw into; row 0 is the top row."""

    def __init__(self, gl: GlContext, size: tuple[int, int], components: int, dtype: str) -> None:
        width, height = (int(n) for n in size)
        if not (0 < width <= gl.max_texture_size and 0 < height <= gl.max_texture_size):
            raise UnavailableError(
                f"{gl.renderer}: no texture of {width} x {height}; each side may be 1 to {gl.max_texture_size}"
            )
        self.gl = self.device = gl  # named `device` as in Buffer, so that callers treat both alike
        self.size, self.components, self.shape = (width, height), components, (height, width, components)
        self.dtype = np.dtype(NORMALIZED.get(dtype, dtype))
        gl.counters.count_allocation(width * height * components * self.dtype.itemsize)
        if gl.software:  # textures of software GL are this process's memory
            check_memory(width * height * components * self.dtype.itemsize, f"a texture of {width} x {height}")
        try:
            self.texture = gl.ctx.texture((width, height), components, dtype=dtype, alignment=1)
        except moderngl.Error as error:
            raise UnavailableError(
                f"{gl.renderer}: no texture of {width} x {height} x {components} {dtype}: {error}"
            ) from error
        self.texture.filter = (moderngl.NEAREST, moderngl.NEAREST)
        self.texture.repeat_x = self.texture.repeat_y = False
        self.framebuffer = gl.ctx.framebuffer([self.texture])

    def write(self, array: object) -> "Texture":
        """Copies a host array of (height, width, components) in; returns the texture."""
        array = np.ascontiguousarray(array, self.dtype)
        assert array.size == np.prod(self.shape), (array.shape, self.shape)
        self.gl.counters.count_upload(array.nbytes)
        self.texture.write(array)
        return self

    def build_mipmaps(self) -> "Texture":
        """Computes the smaller levels that the filter `mipmap` of Sampled reads; returns the texture."""
        self.texture.build_mipmaps()
        self.texture.filter = (moderngl.NEAREST, moderngl.NEAREST)
        return self

    def read(self) -> np.ndarray:
        """Reads the texels as a new array (height, width, components) after earlier work.

        Waits explicitly: llvmpipe (Mesa 22.3) may return texels before its threads have finished drawing them.
        """
        self.gl.ctx.finish()
        self.gl.counters.downloads += 1
        return np.frombuffer(self.texture.read(alignment=1), self.dtype).reshape(self.shape).copy()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return self.read().astype(dtype or self.dtype, copy=False)

    def read_region(self, x: int, y: int, width: int, height: int, components: int = 0) -> np.ndarray:
        """Reads the texels of a rectangle as a new array (height, width, components) after earlier work.

        `components` are the first ones that are read, all by default.
        """
        self.gl.ctx.finish()
        components = components or self.components
        dtype = "f1" if self.dtype == np.uint8 else self.dtype.str[1:]  # moderngl's name
        data = self.framebuffer.read((x, y, width, height), components, dtype=dtype, alignment=1)
        return np.frombuffer(data, self.dtype).reshape(height, width, components).copy()


class CubeTexture:
    """A cube map of six faces (6, side, side, 4) uint8: +x, -x, +y, -y, +z, -z as OpenGL orients them, row 0 on top."""

    def __init__(self, gl: GlContext, faces: np.ndarray) -> None:
        side = faces.shape[1]
        if side > gl.max_texture_size:
            raise UnavailableError(f"{gl.renderer}: no cube map of side {side}; at most {gl.max_texture_size}")
        self.gl, self.size = gl, (side, side)
        gl.ctx.enable_direct(0x884F)  # GL_TEXTURE_CUBE_MAP_SEAMLESS: filters reach over edges
        self.texture = gl.ctx.texture_cube(self.size, 4, np.ascontiguousarray(faces, "u1").tobytes())
        self.texture.build_mipmaps()


class Sampled(NamedTuple):
    """A texture as a pass reads it: with the filter linear, nearest or mipmap (after build_mipmaps()), and a wrap."""

    texture: Texture | CubeTexture
    filter: str = "nearest"
    repeats: bool = False

    def bind(self, unit: int) -> None:
        """Binds the texture and its sampler to a texture unit."""
        self.texture.texture.use(unit)
        _sampler(self.texture.gl, self.filter, self.repeats).use(unit)


@cache
def _sampler(gl: GlContext, filter: str, repeats: bool) -> moderngl.Sampler:
    """A sampler object, which overrides the texture's filter and wrap while both are bound to a unit."""
    shrunk = {"nearest": moderngl.NEAREST, "linear": moderngl.LINEAR, "mipmap": moderngl.LINEAR_MIPMAP_LINEAR}[filter]
    enlarged = moderngl.NEAREST if filter == "nearest" else moderngl.LINEAR
    return gl.ctx.sampler(repeat_x=repeats, repeat_y=repeats, filter=(shrunk, enlarged))


class Pass:
    """A fragment shader that is run for every texel of a target.

    A call takes a number, tuple, Texture or Sampled for each uniform, by name: all uniforms and nothing else.
    """

    def __init__(self, gl: GlContext, text: str, names: list[str]) -> None:
        """Compiles `text`; `names` are its files, by their numbers in #line. KernelError with the compiler's log."""
        self.gl = gl
        self.name = names[0]
        try:
            self._program = gl.ctx.program(vertex_shader=FULLSCREEN_TRIANGLE_VS, fragment_shader=text)
        except (moderngl.Error, KeyError) as error:  # KeyError: an #include behind other text of its line
            files = dict(enumerate(names))
            log = LINE_OF_LOG.sub(lambda m: f"{files.get(int(m[1]), self.name)}:{m[2]}", str(error))
            raise KernelError(f"{self.name}: {gl.renderer} refuses it\n{log.strip()}") from error
        self._array = gl.ctx.vertex_array(self._program, [])
        declared = re.findall(r"(?m)^\s*(?:layout\s*\([^)]*\)\s*)?uniform\s+\w+\s+(\w+)", text)
        # A caller gives every declared uniform; the compiler keeps only the active ones, which the shader uses.
        self._declared = frozenset(declared)
        self._active = frozenset(name for name in self._program if isinstance(self._program[name], moderngl.Uniform))

    def __call__(self, target: object, scissor: tuple[int, int, int, int] | None = None, **inputs: object) -> None:
        """Draw over `target`, a Texture or a tuple of Textures of one size (multiple render targets).

        `scissor` (left, top, width, height) restricts the draw to a rectangle.
        """
        targets = target if isinstance(target, tuple) else (target,)
        self._bind(targets, inputs)
        several = len(targets) > 1  # a single texture has a framebuffer already
        framebuffer = self.gl.ctx.framebuffer([t.texture for t in targets]) if several else targets[0].framebuffer
        framebuffer.use()
        framebuffer.viewport = (0, 0, *targets[0].size)
        framebuffer.scissor = scissor
        self.gl.ctx.disable(moderngl.BLEND | moderngl.DEPTH_TEST | moderngl.CULL_FACE)
        self._array.render(moderngl.TRIANGLES, vertices=3)
        self.gl.counters.launches += 1
        if any(isinstance(value, Sampled) for value in inputs.values()):
            self.gl.ctx.clear_samplers()  # else they would filter what the next pass reads

    @property
    def uniforms(self) -> dict[str, tuple[int, int, int]]:
        """The uniforms that the compiler kept: components, items of an array that it kept, and GL's type."""
        found: Any = {n: self._program[n] for n in self._active}
        return {n: (uniform.dimension, uniform.array_length, uniform.gl_type) for n, uniform in found.items()}

    def _bind(self, targets: tuple[object, ...], inputs: dict[str, object]) -> None:
        """Sets the uniforms and binds the textures, each to the next texture unit; TypeError for a wrong name."""
        unknown, unset = inputs.keys() - self._declared - self._active, self._active - inputs.keys()
        if unknown or unset:
            wrong = [f"it has no uniform {', '.join(sorted(unknown))}"] if unknown else []
            wrong += [f"uniform {', '.join(sorted(unset))} is not given"] if unset else []
            raise TypeError(f"{self.name}: {' and '.join(wrong)}")
        unit = 0
        for name, value in inputs.items():
            if isinstance(value, Texture | Sampled):
                texture = value.texture if isinstance(value, Sampled) else value
                assert all(texture is not t for t in targets), f"{self.name}: {name} is read and written in one pass"
                value.bind(unit) if isinstance(value, Sampled) else value.texture.use(unit)
                value, unit = unit, unit + 1  # the uniform of a sampler is the number of its unit
            if name in self._active:  # the compiler removes unused uniforms, which cannot be set
                self._program[name] = value


def try_driver() -> None:
    """Creates and uses a context, in the child process; a driver that reports an error instead is harmless."""
    with suppress(UnavailableError):
        GlContext.create().texture((1, 1)).read()


def _variables() -> list[str]:
    """The environment variables that select a driver, as NAME=VALUE."""
    chosen = [name for name in sorted(os.environ) if name.startswith(VARIABLES) and name != "EGL_LOG_LEVEL"]
    return [f"{name}={os.environ[name]}" for name in chosen if os.environ[name]]


def _driver_key() -> str:
    """Cache key of the driver's verdict: machine, environment variables, and the drivers' files."""
    folders = [Path(folder) for folder in VENDOR_FOLDERS]
    files = [path for folder in folders for path in sorted(folder.glob("*.json"))]
    for variable in _variables():  # values that are files or folders of drivers; others name no existing file
        named = [Path(part) for part in variable.partition("=")[2].split(os.pathsep)]
        files += [file for path in named for file in (path, *sorted(path.glob("*GL*")), *sorted(path.glob("*_dri.so")))]
    libraries = [file for folder in LIBRARY_FOLDERS for file in sorted(Path(folder).glob("lib*GL*.so*"))]
    return " ".join(["gl", platform.node(), platform.release(), *_variables(), state_of_files(*files, *libraries)])


def _hint() -> str:
    """Advice for the user after a failure."""
    hints = [f"Unset {', '.join(_variables())}"] if _variables() else []
    if IS_LINUX:
        hints.append(system_advice(GL))
        hints.append("A container with NVIDIA's driver needs NVIDIA_DRIVER_CAPABILITIES=graphics")
    return ". ".join(hints or ["Install the graphics driver of this machine's vendor"])


def has_display() -> bool:
    """True if the environment names a display server; macOS and Windows always have one."""
    return bool(not IS_LINUX or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
