"""The GLSL text of a toy's pass, and its errors on the lines of the toy's own files.

WebGL 2, which shadertoy.com runs, compiles GLSL ES 3.00. GLSL 3.30 accepts its precision qualifiers; directives of ES
are blanked and names of WebGL 1 defined, so that lines keep their numbers.
"""

import re
from pathlib import Path

from renderer.errors import InputError, KernelError
from renderer.gpu.gl import GlContext, Pass
from renderer.system.trust import COMPILING, doing
from renderer.toys.program import ALIASES, BUILTINS, COMMENT, INCLUDE, Program, Tab, has_main

GLSL_VERSION = 330
# Directives of GLSL ES, and of editors that run toys of shadertoy.com.
DIRECTIVE = re.compile(r"(?m)^[ \t]*#(?:version|extension|iChannel|iKeyboard|iUniform).*$")
# Mesa: 0:12(5): error: text; NVIDIA: 0(12) : error C1008: text; macOS: ERROR: 0:12: text
LOG_LINE = re.compile(r"(?m)^(?:ERROR: )?\d+[:(](\d+)\)?(?:\(\d+\))?\s*:\s*(?:(?:\w+ )?error(?: \w+)?:)?\s*(.*)$")
# Functions of WebGL 1, and the functions of GLSL 3.30 that replace them.
OLD_NAMES = ("texture2D", "texture2DLod", "texture2DLodEXT", "texture2DGradEXT", "textureCube")
NEW_NAMES = ("texture", "textureLod", "textureLod", "textureGrad", "texture")
# A declaration of one uniform, on any lines.
OWN_UNIFORM = re.compile(r"(?:\blayout\s*\([^)]*\)\s*)?\buniform\s+(?:(?:low|medium|high)p\s+)?(\w+)\s+(\w+)\s*;")
# GL's types of a uniform that a value of each type can set; a vec2 takes the first two components of a vec4.
# 0x1404 to 0x1406: GL_INT, GL_UNSIGNED_INT, GL_FLOAT; 0x140A: GL_DOUBLE; 0x8B50 to 0x8B52: GL_FLOAT_VEC2 to 4;
# 0x8B56: GL_BOOL; 0x8B5E to 0x8B60: GL_SAMPLER_2D, 3D and CUBE.
FITTING = {"float": (0x1406, 0x140A), "int": (0x1404, 0x1405, 0x1406, 0x8B56), "bool": (0x8B56,),
           "vec2": (0x8B50,), "vec3": (0x8B50, 0x8B51), "vec4": (0x8B50, 0x8B51, 0x8B52),
           "sampler2D": (0x8B5E, 0x8B5F, 0x8B60)}  # fmt: skip
FILE_LINES = 1_000_000  # tab k has the lines from k x FILE_LINES: Mesa ignores the file's number in #line
MAX_ERRORS = 5  # errors of a shader that are shown
# A cube map's direction given to a flat texture, in the words of Mesa and of NVIDIA.
FLAT_TEXTURE_OF_DIRECTION = re.compile(r'\(sampler2D, vec3|cast from "vec3" to "vec2"')


class ToyError(InputError):
    """A shader that does not compile; each line of the message is one error with its file and line."""

    line_breaks = "\n"


def pass_text(program: Program, tab: Tab) -> str:
    """The text of a pass: what the picture declares, the tab Common, the tab itself, and main()."""
    tabs = program.texts(tab)
    code = OWN_UNIFORM.sub(_undeclared, "\n".join(each.text for each in tabs))
    plain = COMMENT.sub("", code)
    version = re.search(r"(?m)^\s*#version\s+(\d+)\s*(\w*)", code)
    number = int(version[1]) if version and version[2] != "es" and int(version[1]) > GLSL_VERSION else GLSL_VERSION
    # shadertoy.com defines GL_ES, a name that desktop drivers keep for themselves.
    head = [f"#version {number}", "#extension GL_ARB_shading_language_packing : enable", "#define TOY_ES 1"]
    head += [f"#define {old} {new}" for old, new in zip(OLD_NAMES, NEW_NAMES, strict=True) if old in plain]
    cubes = {f"iChannel{k}": "samplerCube" for k, channel in enumerate(program.channels[tab.name]) if channel.is_cube}
    for name, type_ in (BUILTINS | cubes).items():
        base, _, array = type_.partition("[")
        if re.search(rf"\b{name}\b", plain) and not re.search(rf"\buniform\s+(?:\w+\s+)?\w+\s+{name}\b", plain):
            head.append(f"uniform {base} {name}{'[' if array else ''}{array};")
    is_plain = has_main(tab.text)  # a plain fragment shader, with main() in place of mainImage()
    if not is_plain or "gl_FragColor" in plain:
        head.append("layout(location = 0) out vec4 toy_color;")
    # A pass is drawn in tiles: toy_point is gl_FragCoord in the whole picture, whose texel toy_origin begins the tile.
    head += ["uniform vec2 toy_origin;", "vec4 toy_point;"]
    starts = [f"#line {k * FILE_LINES + each.line}\n" for k, each in enumerate(tabs)]
    body = [start + _adapted(each.text) for start, each in zip(starts, tabs, strict=True)]
    call = "toy_main();" if is_plain else "toy_color = vec4(0, 0, 0, 1); mainImage(toy_color, toy_point.xy);"
    point = "toy_point = gl_FragCoord + vec4(toy_origin, 0, 0);"
    entry = f"#line {len(tabs) * FILE_LINES}\nvoid main() {{ {point} {call} }}\n"
    return "\n".join([*head, *body, entry])


def _adapted(text: str) -> str:
    """A tab's text for desktop GL: without WebGL's directives, and with the program's names for main, gl_FragCoord."""
    text = OWN_UNIFORM.sub(_undeclared, INCLUDE.sub("", DIRECTIVE.sub("", text)))
    text = re.sub(r"\bgl_FragCoord\b", "toy_point", text)
    text = re.sub(r"\bGL_ES\b", "TOY_ES", text)
    text = re.sub(r"\bgl_FragColor\b", "toy_color", text)
    return re.sub(r"\bvoid(\s+)main\b", r"void\1toy_main", text)


def _undeclared(declaration: re.Match[str]) -> str:
    """Removes the declaration of a uniform that pass_text() declares itself; its newlines stay.

    Toys often declare iTime and others inside an #if of another tool, where the driver would not see them.
    """
    type_, name = declaration.groups()
    return "\n" * declaration[0].count("\n") if BUILTINS.get(name) == type_ else declaration[0]


def compile_pass(gl: GlContext, program: Program, tab: Tab) -> Pass:
    """Compiles a pass of a toy; ToyError if the driver refuses it, by files and lines, or a uniform cannot be set."""
    for each in program.texts(tab):
        for found in INCLUDE.finditer(each.text):
            if program.common and Path(found[1]).name == program.common.path.name:
                continue  # the tab Common, which stands in front of every tab
            line = each.line + each.text.count("\n", 0, found.start())
            raise ToyError(f"{each.path}:{line}: GLSL has no #include; the tab Common holds what several tabs need")
    try:
        with doing(COMPILING):
            compiled = Pass(gl, pass_text(program, tab), [str(tab.path)])
    except KernelError as error:
        raise ToyError(_sentences(str(error.__cause__), program, tab, gl.renderer)) from error
    known = {uniform.name: uniform.type for uniform in program.uniforms} | {"toy_origin": "vec2"}
    for name, (_, _, gl_type) in compiled.uniforms.items():  # components, items of an array, GL's type
        type_ = known.get(name) or BUILTINS.get(ALIASES.get(name, name), "").partition("[")[0]
        if gl_type not in FITTING.get(type_, ()):
            fault = f"is not the {type_} that the picture sets" if type_ else "must be declared in a line of its own"
            raise ToyError(f"{tab.path}: uniform {name} {fault}")
    return compiled


def _sentences(log: str, program: Program, tab: Tab, driver: str) -> str:
    """The errors of a driver's log, one a line: file, line, message and the line's text."""
    tabs = program.texts(tab)
    found: dict[tuple[int, int], str] = {}  # the first error of each line: others follow from it
    for match in LOG_LINE.finditer(log):
        number, line = divmod(int(match[1]), FILE_LINES)
        message = match[2].strip().removesuffix("; candidates are:").replace("NEW_IDENTIFIER", "a new name")
        if "error" not in match[0].lower() or not message or (number, line) in found:
            continue
        if number >= len(tabs):
            what = "void mainImage(out vec4, in vec2)"
            found[number, line] = f"{tab.path}:{tab.line}: the entry of {tab.name} must be {what}: {message}"
            continue
        faulty, lines = tabs[number], tabs[number].text.split("\n")
        text = lines[line - faulty.line].strip()[:100] if 0 <= line - faulty.line < len(lines) else ""
        channel = re.search(r"\biChannel[0-3]\b", text)
        if channel and FLAT_TEXTURE_OF_DIRECTION.search(message):
            message += f"; `// {channel[0]}: FILE cube` makes the channel a cube map"
        found[number, line] = f"{faulty.path}:{line}: {message}" + (f"\n    {text}" if text else "")
    if not found:
        words = " ".join(log.split())[:300]
        return f"{tab.path}: {driver} refuses {tab.name}: {words}"
    return "\n".join(list(found.values())[:MAX_ERRORS])
