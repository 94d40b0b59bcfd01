"""Reads toys: fragment shaders with `mainImage(out vec4, in vec2)` as on shadertoy.com, or with `main()`, `out vec4`.

A file is one tab, or several that begin with a comment of their name alone: `// Common`, `// Buffer A` to D,
`// Image`. A comment says what a channel is: `// iChannel0: Buffer A`, `// iChannel1: wood.png nearest clamp`,
`// iChannel2: keyboard`, `// iChannel3: noise`; `cube` behind one picture, or six, makes a cube map. A uniform is a
setting: `uniform float speed = 0.5;  // 0 to 1`.
"""

import keyword
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from renderer.errors import InputError
from renderer.formats.images import PICTURE_SUFFIXES as IMAGE_SUFFIXES
from renderer.paths import ASSETS
from renderer.plain import format_names, format_value, quoted
from renderer.records import dataclass
from renderer.scene.schema import setting
from renderer.system.files import read_text, resolve
from renderer.system.trust import Limits, named_file

SUFFIXES = (".glsl", ".frag")
MAX_BYTES = 1 << 20  # size of a file: drivers need minutes and gigabytes for longer shaders
MAX_UNIFORMS = 256
BUFFERS = ("Buffer A", "Buffer B", "Buffer C", "Buffer D")
COMMON, IMAGE = "Common", "Image"
TABS = (COMMON, *BUFFERS, IMAGE)
UNUSED_TABS = ("Sound", "Cube A")  # tabs of shadertoy.com that are not drawn
KEYBOARD, NOISE, CUBE = "keyboard", "noise", "cube"
FACES = 6  # pictures of a cube map, in the order +x, -x, +y, -y, +z, -z
# Channels of shadertoy.com that are not read: a picture of Rayfold repeats.
MEDIA = re.compile(
    r"(sounds?|music|soundcloud|audio|videos?|mic(rophone)?|webcam|camera)\b|.*\.(wav|mp3|ogg|opus|m4a|flac|mp4|webm|ogv|mov|avi|mkv)$",
    re.IGNORECASE,
)
FILTERS, WRAPS = ("linear", "nearest", "mipmap"), ("clamp", "repeat")
CHANNEL_COUNT = 4
RULER = r"[\s\-=*#<>\[\]:.]*"  # decoration around a tab's name, as in `// ---- Buffer A ----`
TAB_LINE = re.compile(
    rf"^\s*(?://|/\*){RULER}(common|image|sound|buf(?:fer)?[ _]?([a-d])|cube(?:map)?[ _]?a){RULER}/?\s*$", re.IGNORECASE
)
# `// iChannel0: ...`, or `#iChannel0 ...` of editors; the number and the text are groups 1 and 2, or 3 and 4.
CHANNEL_LINE = re.compile(r"^\s*(?://+\s*iChannel([0-3])\s*[:=]\s*(.*?)|#iChannel([0-3])\s+(.*?)(?:\s+//.*)?)\s*$")
INCLUDE = re.compile(r'(?m)^[ \t]*#[ \t]*include\b[ \t]*["<]?([^">\s]*)[">]?')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
UNIFORM = re.compile(
    r"^[ \t]*(?:layout\s*\([^)]*\)\s*)?uniform\s+(?:(?:lowp|mediump|highp)\s+)?(\w+)\s+(\w[^;=]*?)\s*"
    r"(?:=\s*([^;]+?))?\s*;[ \t]*(?://[ \t]*(.*))?$",
    re.MULTILINE,
)
COMPONENTS = {"float": 1, "int": 1, "bool": 1, "vec2": 2, "vec3": 3, "vec4": 4}
# Uniforms that the picture sets. The Book of Shaders and GLSL Sandbox have the names without an i.
BUILTINS = {
    "iResolution": "vec3", "iTime": "float", "iTimeDelta": "float", "iFrame": "int", "iFrameRate": "float",
    "iMouse": "vec4", "iDate": "vec4", "iSampleRate": "float", "iChannelTime": "float[4]",
    "iChannelResolution": "vec3[4]", "iGlobalTime": "float",
    **{f"iChannel{k}": "sampler2D" for k in range(CHANNEL_COUNT)},
}  # fmt: skip
ALIASES = {"u_resolution": "iResolution", "resolution": "iResolution", "u_time": "iTime", "time": "iTime",
           "iGlobalTime": "iTime", "u_mouse": "iMouse", "mouse": "iMouse", "u_frame": "iFrame"}  # fmt: skip


class Tab(NamedTuple):
    """The text of one pass, and where it stands: its file, and the number of its first line, from 1."""

    name: str
    text: str
    path: Path
    line: int = 1


class Channel(NamedTuple):
    """The source of one of iChannel0 to 3: a buffer's name, keyboard, noise, the path of an image, or "" for black.

    The six paths of a cube map stand on a line each.
    """

    source: str = ""
    filter: Literal["linear", "nearest", "mipmap"] = "linear"
    repeats: bool = False
    is_cube: bool = False


class Uniform(NamedTuple):
    """A uniform that is a setting; `default`, as many numbers as `type` has components, lies within the range."""

    name: str
    type: str
    default: tuple[float, ...]
    low: float | None
    high: float | None
    help: str
    is_color: bool

    @property
    def key(self) -> str:
        """The name of the setting: the uniform's, with _ where Python or the settings need the name."""
        return f"{self.name}_" if keyword.iskeyword(self.name) or self.name in RESERVED else self.name

    @property
    def field(self) -> tuple[str, object, object]:
        """The field of a settings dataclass: name, type, default with range and help."""
        scalar = {"int": int, "bool": bool}.get(self.type, float)  # the default holds floats
        values = tuple(scalar(value) for value in self.default)
        default, kind = (values[0], scalar) if len(values) == 1 else (values, tuple[(scalar,) * len(values)])  # type: ignore[misc]
        return self.key, kind, setting(default, self.low, self.high, self.help, is_color=self.is_color)


# Names of fields of a toy's settings, which a uniform's field must not have.
RESERVED = {"image", "common", "buffer_a", "buffer_b", "buffer_c", "buffer_d", "channels", "mouse", "keys", "toggled",
            "date", "rate", "output", "view", "focus_distance", "lens_radius", "is_animated"}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A toy: the text of its passes by name, in the order in which they are drawn, and the channels of each."""

    common: Tab | None
    passes: dict[str, Tab]
    channels: dict[str, tuple[Channel, ...]]
    uniforms: tuple[Uniform, ...]
    notes: tuple[str, ...]

    @property
    def buffers(self) -> list[str]:
        """The names of the passes that keep their texels from frame to frame."""
        return [name for name in self.passes if name in BUFFERS]

    def texts(self, *tabs: Tab) -> list[Tab]:
        """The tab Common, if there is one, and the given tabs: the texts that a pass is compiled from."""
        return [*([self.common] if self.common else []), *tabs]

    @property
    def has_feedback(self) -> bool:
        """True if a buffer reads what it, or a later one, drew in the frame before."""
        order = self.buffers
        return any(channel.source in order[k:] for k, name in enumerate(order) for channel in self.channels[name])

    def uses(self, name: str) -> bool:
        """True if the text of a pass names a uniform, outside comments."""
        return name in self._words

    @cached_property
    def _words(self) -> frozenset[str]:
        tabs = self.texts(*self.passes.values())
        return frozenset(word for tab in tabs for word in re.findall(r"\w+", COMMENT.sub("", tab.text)))

    @property
    def depends_on_time(self) -> bool:
        """True if some pass reads the time, or the picture of the frame before."""
        names = ("iTime", "iFrame", "iDate", "iTimeDelta", *(k for k, v in ALIASES.items() if v in ("iTime", "iFrame")))
        return bool(self.buffers) or any(map(self.uses, names))

    @property
    def reads_keyboard(self) -> bool:
        """True if a channel is the keyboard."""
        return any(channel.source == KEYBOARD for row in self.channels.values() for channel in row)

    @property
    def images(self) -> list[str]:
        """The paths of the images that channels read."""
        known = {"", KEYBOARD, NOISE, *BUFFERS}
        sources = {channel.source for row in self.channels.values() for channel in row} - known
        return sorted({path for source in sources for path in source.split("\n")})


def read_program(files: Mapping[str, str], channels: Mapping[str, tuple[str, ...]], context: str) -> Program:
    """Reads the tabs of a toy from `files`: the path of each tab by name, at least of Image.

    `channels` are the texts of channels by tab; comments in the files say the rest. Raises InputError.
    """
    if Limits.refuses_programs:
        raise InputError(f"{files[IMAGE]}: is a program, and --untrusted runs none")
    tabs: dict[str, Tab] = {}
    for name, file in files.items():
        path = Path(file)
        text = read_text(path, MAX_BYTES).replace("\r\n", "\n")
        text = text.replace("\ufeff", "").replace("\0", " ")  # in pastes of several files; both end a shader's text
        tabs |= split_tabs(text, path) if name == IMAGE else {name: Tab(name, text, path)}
    if IMAGE not in tabs:
        raise InputError(f"{files[IMAGE]}: has no tab Image; a comment `// Image` begins it")
    passes = {name: tabs[name] for name in (*BUFFERS, IMAGE) if name in tabs}
    for tab in passes.values():
        check_entry(tab)
    notes = [f"the tab {name} is not drawn: Rayfold has none" for name in UNUSED_TABS if name in tabs]
    rows = {}
    for name, tab in passes.items():
        rows[name] = tuple(_channel(tab, k, passes, channels.get(_key(name), ()), notes) for k in range(CHANNEL_COUNT))
    uniforms = _uniforms([tab for name, tab in tabs.items() if name in TABS])
    return Program(tabs.get(COMMON), passes, rows, uniforms, tuple(notes))


def _key(tab: str) -> str:
    """The key of a tab in scene files: buffer_a for Buffer A."""
    return tab.lower().replace(" ", "_")


def split_tabs(text: str, path: Path) -> dict[str, Tab]:
    """The tabs of a text. Comments that name tabs begin them only if each buffer and the image then has mainImage()."""
    lines = text.split("\n")
    heads = [(number, _tab_name(match)) for number, line in enumerate(lines) if (match := TAB_LINE.match(line))]
    if not heads:
        return {IMAGE: Tab(IMAGE, text, path)}
    found: dict[str, Tab] = {}
    first = "\n".join(lines[: heads[0][0]])
    if COMMENT.sub("", first).strip():
        name = IMAGE if _has_main_image(first) and IMAGE not in {head for _, head in heads} else COMMON
        found[name] = Tab(name, first, path)
    for (start, name), end in zip(heads, [*(number for number, _ in heads[1:]), len(lines)], strict=True):
        found[name] = Tab(name, "\n".join(lines[start:end]), path, start + 1)
    drawn = [tab for name, tab in found.items() if name in (*BUFFERS, IMAGE)]
    is_split = len(heads) == len({name for _, name in heads}) and all(_has_main_image(tab.text) for tab in drawn)
    return found if drawn and is_split else {IMAGE: Tab(IMAGE, text, path)}


def _tab_name(match: re.Match[str]) -> str:
    word = match[1].lower()
    return f"Buffer {match[2].upper()}" if match[2] else "Cube A" if word.startswith("cube") else word.capitalize()


def _has_main_image(text: str) -> bool:
    return re.search(r"\bvoid\s+mainImage\s*\(", COMMENT.sub("", text)) is not None


def has_main(text: str) -> bool:
    """True for a plain fragment shader, whose entry is main(): not where main() is another program's, by an #if."""
    plain = COMMENT.sub("", text)
    if (main := re.search(r"\bvoid\s+main\s*\(", plain)) is None:
        return False
    conditions = re.findall(r"(?m)^[ \t]*#[ \t]*(if|endif)", plain[: main.start()])
    return conditions.count("if") <= conditions.count("endif") or not _has_main_image(text)


def check_entry(tab: Tab) -> None:
    """Raises InputError for a tab that has neither mainImage() nor main()."""
    if not _has_main_image(tab.text) and not has_main(tab.text):
        hint = "mainImage(out vec4 color, in vec2 point), or main() with an `out vec4`"
        raise InputError(f"{tab.path}:{tab.line}: {tab.name} has no entry; it must define void {hint}")


def _channel(tab: Tab, index: int, passes: Mapping[str, Tab], texts: tuple[str, ...], notes: list[str]) -> Channel:
    """The channel `index` of a tab: by the scene file, a comment, or else the buffer of that number, or noise."""
    name = f"iChannel{index}"
    if index < len(texts) and texts[index]:
        return parse_channel(texts[index], tab, f"{tab.path}: {name} of {tab.name}", passes)
    for number, line in enumerate(tab.text.split("\n"), tab.line):
        match = CHANNEL_LINE.match(line)
        if match and (match[1] or match[3]) == str(index):
            return parse_channel(match[2] or match[4] or "", tab, f"{tab.path}:{number}: {name}", passes)
    if not re.search(rf"\b{name}\b", COMMENT.sub("", tab.text)):
        return Channel()
    # Of public toys whose channels nothing names, more read noise than anything else.
    chosen = Channel(BUFFERS[index]) if BUFFERS[index] in passes else Channel(NOISE, "mipmap", repeats=True)
    notes.append(f"{name} of {tab.name} is {chosen.source}: no comment says, as in `// {name}: keyboard`, what it is")
    return chosen


def parse_channel(text: str, tab: Tab, context: str, passes: Mapping[str, Tab]) -> Channel:
    """The channel that a text names: a source, then a filter and a wrap mode. Raises InputError."""
    words = text.strip().strip("\"'").split()
    options = []
    while len(words) > 1 and words[-1].lower() in (*FILTERS, *WRAPS, CUBE):
        options.append(words.pop().lower())
    source = " ".join(words).removeprefix("file://").removeprefix("buf://")
    short = re.fullmatch(r"(?:buf(?:fer)?[ _]?)?([a-d])", source, re.IGNORECASE)
    name = f"Buffer {short[1].upper()}" if short else tab.name if source == "self" else source
    is_image = name not in (*BUFFERS, KEYBOARD, NOISE, "none", "")
    if name in BUFFERS and name not in passes:
        raise InputError(f"{context} is {quoted(name)}, which the toy does not have; it has {format_names(passes)}")
    is_cube = CUBE in options
    paths = re.split(r"\s*,\s*", name) if is_cube else [name]
    if is_cube and (not is_image or len(paths) not in (1, FACES)):
        raise InputError(
            f"{context} is {format_value(text)}; a cube map is one image, a cross or a strip, or six images"
        )
    if is_image:
        for path in paths:
            if Path(path).suffix.lower() not in IMAGE_SUFFIXES:
                allowed = f"{', '.join(BUFFERS)}, keyboard, noise, none, or an image ({', '.join(IMAGE_SUFFIXES)})"
                media = "; sound, video, microphone and webcam are not read" if MEDIA.match(path) else ""
                raise InputError(f"{context} is {format_value(path)}; allowed are {allowed}{media}")
        name = "\n".join(str(named_file(path, tab.path.parent, IMAGE_SUFFIXES, context)) for path in paths)
    default = "mipmap" if is_image else "nearest" if name == KEYBOARD else "linear"
    filter: Any = next((option for option in options if option in FILTERS), default)
    wrap = next((option for option in options if option in WRAPS), "repeat" if is_image or name == NOISE else "clamp")
    return Channel("" if name == "none" else name, filter, wrap == "repeat", is_cube)


def with_absolute_images(text: str, folder: Path) -> str:
    """The text with the images that its channels name as absolute paths: for a copy of a file of `folder`."""

    def absolute(match: re.Match[str]) -> str:
        return re.sub(
            rf"[^\s,\"']+(?:{'|'.join(map(re.escape, IMAGE_SUFFIXES))})\b",
            lambda name: name[0] if Path(name[0]).is_absolute() else str(resolve(folder / name[0])),
            match[0],
        )  # paths are not judged here: the reader of the copy checks them

    return re.sub(CHANNEL_LINE.pattern, absolute, text, flags=re.MULTILINE)


def with_buffer(text: str) -> str:
    """The text of an image, or of several tabs, with one more buffer before the image. InputError beyond four."""
    tabs = split_tabs(text, Path())
    name = next((buffer for buffer in BUFFERS if buffer not in tabs), None)
    if name is None:
        raise InputError("a shader has at most the buffers A, B, C and D")
    lines, added = text.split("\n"), f"// {name}\n// iChannel0: {name}\n{read_text(ASSETS / 'buffer.glsl')}\n"
    heads = [number for number, line in enumerate(lines) if (m := TAB_LINE.match(line)) and _tab_name(m) == IMAGE]
    if len(tabs) == 1 and not heads:
        reads = "" if re.search(r"iChannel0\s*[:=]", text) else f"// iChannel0: {name}\n"
        return f"{added}// Image\n{reads}{text}"
    at = heads[0] if heads else len(lines)
    return "\n".join([*lines[:at], *added.split("\n")[:-1], *lines[at:]])


def with_values(text: str, values: Mapping[str, object]) -> str | None:
    """The text with other defaults of its uniforms: a number, a truth value or a tuple by name.

    None if it does not declare each of them, one a line.
    """
    left = dict(values)

    def declared(match: re.Match[str]) -> str:
        declares_more = "," in (match[3] or "").partition("(")[0]  # int n = 2, m
        if declares_more or (value := left.pop(match[2], None)) is None:
            return match[0]
        numbers = value if isinstance(value, tuple) else (value,)
        written = ", ".join(str(number).lower() for number in numbers)
        written = f"{match[1]}({written})" if len(numbers) > 1 else written
        start, end = match.span(3) if match[3] else (match.end(2), match.end(2))
        return f"{text[match.start() : start]}{'' if match[3] else ' = '}{written}{text[end : match.end()]}"

    changed = UNIFORM.sub(declared, text)
    return None if left else changed


def _uniforms(tabs: list[Tab]) -> tuple[Uniform, ...]:
    """The uniforms of the tabs that are settings: all that the picture does not set. Raises InputError."""
    found: dict[str, Uniform] = {}
    for tab in tabs:
        for match in UNIFORM.finditer(tab.text):
            type_, names, initial, comment = match.groups()
            line = tab.line + tab.text.count("\n", 0, match.start())
            for name in re.split(r"\s*,\s*", names):
                if name in ALIASES or name.partition("[")[0] in BUILTINS:
                    continue
                if type_ not in COMPONENTS or not name.isidentifier():
                    allowed = f"{format_names(COMPONENTS)}, and what the picture sets: {format_names(BUILTINS)}"
                    raise InputError(f"{tab.path}:{line}: uniform {type_} {name} is no setting; allowed are {allowed}")
                found[name] = _uniform(name, type_, initial or "", comment or "")
    if len(found) > MAX_UNIFORMS:
        raise InputError(f"{tabs[0].path}: has {len(found)} uniforms; at most {MAX_UNIFORMS} can be settings")
    return tuple(found.values())


def _uniform(name: str, type_: str, initial: str, comment: str) -> Uniform:
    """A uniform by its declaration: the range is `A to B` in the comment, the default the initializer or the middle."""
    span = re.search(rf"({NUMBER})\s*(?:to|\.\.\.?|-|,)\s*({NUMBER})", comment)
    most = 2.0**31 - 1 if type_ == "int" else 3.4e38  # what GLSL's type holds; a text may name any number
    ends = [min(max(float(n), -most), most) for n in span.groups()] if span and type_ != "bool" else []
    low, high = sorted(ends) or (None, None)
    given = re.search(rf"\bdefault\s*:?\s*({NUMBER}|true|false)", comment)
    # the numbers of the initializer, `vec3(1, 0, 0)` without its type's name, or of `default 0.5` in the comment
    text = re.sub(r"\b(?:[ib]?vec[234]|float|int|bool)\b", "", initial) or (given[1] if given else "")
    found = (float({"true": 1, "false": 0}.get(n, n)) for n in re.findall(rf"{NUMBER}|true|false", text))
    numbers = [min(max(number, -most), most) for number in found]
    is_color = COMPONENTS[type_] >= 3 and re.search(r"\bcolou?r\b", f"{comment} {name}", re.IGNORECASE) is not None
    numbers = numbers or [(low + high) / 2 if low is not None and high is not None else 1.0 if is_color else 0.0]
    count = COMPONENTS[type_]
    # one number stands for all components, as in GLSL's vec3(1); others that are missing are 0
    values = (numbers * count)[:count] if len(numbers) == 1 else (numbers + [0.0] * count)[:count]
    if low is not None and high is not None:
        values = [min(max(value, low), high) for value in values]
        low, high = (int(low), int(high)) if type_ == "int" else (low, high)
    return Uniform(name, type_, tuple(values), low, high, comment.strip(), is_color)
