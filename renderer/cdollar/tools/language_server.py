"""The language server of C$: errors while typing, hover, completion, formatting.

Editors start `rayfold cdollar serve` for files *.cb and speak the Language Server Protocol with its stdin and stdout.
The server needs pygls (extra `lsp`). Positions of the protocol are lines and UTF-16 code units. A program is checked as
`rayfold run` checks it, with unknown arguments: sizes that depend on the arguments are shown as "?".
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

from renderer import __version__
from renderer.cdollar.checker.node_builder import FUNCTIONS
from renderer.cdollar.checker.tables import UserFunction
from renderer.cdollar.checker.values import FunctionValue, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span
from renderer.cdollar.frontend.lexer import KEYWORDS
from renderer.cdollar.frontend.parser import parse
from renderer.cdollar.ir.dag import UNKNOWN
from renderer.cdollar.runtime.evaluate import new_compilation
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.cdollar.tools.formatter import format_text
from renderer.errors import UserError, import_optional
from renderer.system.install import pip_install

# Analysis


WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
MEMBERS = ("x", "y", "z", "w", *ast.BORDER_MODES)
TYPES = (*ast.PRIMITIVES, *ast.VECTORS)
MAX_CHARACTERS = 1 << 16  # of a program that is checked while it is typed


class Completion(NamedTuple):
    """A word that may be typed, its kind ("keyword", "class", "function", "variable" or "field"), and its type."""

    name: str
    kind: str
    detail: str = ""


@dataclass
class Analysis:
    """The result of checking a program, as far as the program could be checked."""

    source: SourceFile
    errors: list[ProgramError] = field(default_factory=list)
    declared: dict[Span, Value] = field(default_factory=dict)
    functions: list[UserFunction] = field(default_factory=list)
    remembered: dict[str, str] = field(default_factory=dict)  # variables of an earlier text, where this does not parse

    @cached_property
    def signatures(self) -> dict[str, list[str]]:
        """The functions of the program and the prelude, by name."""
        found: dict[str, list[str]] = {}
        for function in self.functions:
            found.setdefault(function.name, []).append(f"{function.result_type} {function.signature}")
        return found

    def program_functions(self) -> list[UserFunction]:
        """The functions of the program, in its order."""
        declared = [f for f in self.functions if f.declaration.span.source is self.source]
        return sorted(declared, key=lambda function: function.declaration.span.start)

    def function_at(self, offset: int) -> UserFunction | None:
        """The function that contains a character, or the last one before it; None before the first."""
        before = [f for f in self.program_functions() if f.declaration.span.start <= offset]
        return before[-1] if before else None

    def all_variables(self) -> dict[str, str]:
        """The types of all variables and parameters of the program, by name."""
        ends = [f.declaration.span.start for f in self.program_functions()[1:]] + [len(self.source.text)]
        return {name: text for end in ends for name, text in self.variables_at(max(0, end - 1)).items()}

    def variables_at(self, offset: int) -> dict[str, str]:
        """The types of the variables and parameters that are declared before a character, by name."""
        function, found = self.function_at(offset), dict(self.remembered)
        starts = [f.declaration.span.start for f in self.program_functions()]
        begin = function.declaration.span.start if function is not None else 0
        for span, value in sorted(self.declared.items(), key=lambda item: item[0].start):
            is_global = not any(start <= span.start for start in starts)
            if span.start <= offset and (is_global or span.start >= begin):
                found[span.text] = describe(value)
        if function is not None:
            parameters = zip(function.parameter_names, function.parameter_types, strict=True)
            found |= {name: str(type_) for name, type_ in parameters if name not in found}
        return found

    def hover(self, offset: int) -> tuple[str, Span] | None:
        """The description of the name at a character, and the span of the name; None if there is no known name."""
        for match in WORD.finditer(self.source.text):
            if match.start() <= offset < match.end():
                text = self.describe_name(match[0], match.end())
                return (text, Span(self.source, match.start(), match.end())) if text else None
        return None

    def describe_name(self, name: str, offset: int) -> str:
        """The type or signature of a name at a character; "" if the name is unknown."""
        variables = self.variables_at(offset)
        if name in variables:
            return f"{name}: {variables[name]}"
        if name in self.signatures:
            return "\n".join(self.signatures[name])
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        return f"{name}: a type" if name in TYPES else ""

    def completions(self, offset: int) -> list[Completion]:
        """The completions at a position: members after a dot, else names and words with the prefix that is typed."""
        text = self.source.text[:offset]
        begun = re.search(r"[A-Za-z_][A-Za-z_0-9]*\Z", text)
        typed = begun[0] if begun else ""
        if re.search(r"[\w\])]\s*\.\Z", text[: len(text) - len(typed)]):
            found = [Completion(name, "field") for name in MEMBERS]
        else:
            found = [Completion(n, "variable", d) for n, d in self.variables_at(offset).items()]
            found += [Completion(n, "function", "\n".join(s)) for n, s in self.signatures.items()]
            found += [Completion(n, "function", use) for n, use in FUNCTIONS.items() if n not in self.signatures]
            found += [Completion(name, "class") for name in TYPES]
            found += [Completion(word, "keyword") for word in sorted(KEYWORDS)]
        return [c for c in found if c.name.startswith(typed) and c.name != typed]


def describe(value: Value) -> str:
    """The type of a value, and the domain if it is a function."""
    if not isinstance(value, FunctionValue):
        return str(getattr(value, "type", "domain"))
    domain = " x ".join("?" if part is UNKNOWN else str(part) for part in value.domain_with_borders)
    return f"{value.type}, domain {domain}" if domain else str(value.type)


def analyze(text: str, name: str = "program", folder: Path | None = None) -> Analysis:
    """Check a program; errors of any text are in the analysis, none are raised."""
    source = SourceFile(name, text)
    analysis = Analysis(source)
    compilation = new_compilation(source, NumpyTarget, folder)
    compilation.program.declared = analysis.declared
    try:
        if len(text) > MAX_CHARACTERS:
            raise ProgramError("CS0101", Span(source, 0, 1), "this program is too long to be checked while it is typed")
        compilation.load(parse(source))
    except ProgramError as error:
        analysis.errors = [e for e in (error, *error.others) if e.span.source is source]
    except (UserError, RecursionError) as error:
        message = str(error) or "this nests deeper than the compiler takes"
        analysis.errors = [ProgramError("CS0106", Span(source, 0, 1), message)]
    analysis.errors += [w for w in compilation.dag.warnings.values() if w.span.source is source]
    analysis.functions = compilation.program.functions.all()
    analysis.declared = {span: value for span, value in analysis.declared.items() if span.source is source}
    return analysis


# Protocol


TRIGGERS = (".",)


def _need() -> str:
    return f"the language server needs pygls: {pip_install('lsp')}"


def utf16_position(text: str, offset: int) -> tuple[int, int]:
    """The line and UTF-16 column of a character, both from 0."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset), len(text[start:offset].encode("utf-16-le", "surrogatepass")) // 2


def character_offset(text: str, line: int, column: int) -> int:
    """The offset of the character at a line and UTF-16 column; the end of the line or text if it is shorter."""
    lines = text.split("\n")
    if line >= len(lines):
        return len(text)
    before = lines[line].encode("utf-16-le", "surrogatepass")[: 2 * column].decode("utf-16-le", "surrogatepass")
    return sum(len(each) + 1 for each in lines[:line]) + len(before)


class Server:
    """The answers of the server, in the protocol's types; keeps the last analysis of each open file."""

    def __init__(self) -> None:
        """Import the protocol; raises UnavailableError without pygls."""
        self.types = import_optional("lsprotocol.types", _need())
        self.analyses: dict[str, tuple[str, Analysis]] = {}

    def analysis(self, uri: str, text: str) -> Analysis:
        """The analysis of a file's text, which is kept until the text changes."""
        known = self.analyses.get(uri)
        if known is None or known[0] != text:
            path = Path(unquote(urlparse(uri).path))
            found = analyze(text, path.name or "program", path.parent)
            if known is not None and not found.program_functions():
                # The text does not parse while it is typed: keep the names.
                found.remembered = known[1].all_variables() or known[1].remembered
            self.analyses[uri] = text, found
        return self.analyses[uri][1]

    def protocol_range(self, span: Span) -> Any:
        """A span in the protocol's positions."""
        positions = (utf16_position(span.source.text, offset) for offset in (span.start, span.end))
        start, end = (self.types.Position(line=line, character=column) for line, column in positions)
        return self.types.Range(start=start, end=end)

    def diagnostics(self, uri: str, text: str) -> list[Any]:
        """The errors and warnings of a program."""
        return [
            self.types.Diagnostic(
                range=self.protocol_range(error.span),
                message=error.message + (f"\nhint: {error.hint}" if error.hint else ""),
                severity=self.types.DiagnosticSeverity[error.kind.capitalize()],
                code=error.code,
                source="C$",
            )
            for error in self.analysis(uri, text).errors
        ]

    def hover(self, uri: str, text: str, line: int, column: int) -> Any:
        """The type and domain of the name at a position, or None."""
        hovered = self.analysis(uri, text).hover(character_offset(text, line, column))
        if hovered is None:
            return None
        value = self.types.MarkupContent(kind=self.types.MarkupKind.Markdown, value=f"```cb\n{hovered[0]}\n```")
        return self.types.Hover(contents=value, range=self.protocol_range(hovered[1]))

    def completions(self, uri: str, text: str, line: int, column: int) -> list[Any]:
        """The completions at a position."""
        item, kinds = self.types.CompletionItem, self.types.CompletionItemKind
        completions = self.analysis(uri, text).completions(character_offset(text, line, column))
        return [item(label=c.name, kind=kinds[c.kind.capitalize()], detail=c.detail or None) for c in completions]

    def formatting(self, text: str) -> list[Any] | None:
        """The edit that formats a text; None for one that has characters without a meaning."""
        try:
            new = format_text(text)
        except ProgramError:
            return None
        whole = Span(SourceFile("", text), 0, len(text))
        edit = self.types.TextEdit(range=self.protocol_range(whole), new_text=new)
        return [] if new == text else [edit]


def build() -> Any:
    """The pygls server with its handlers."""
    answers, types = Server(), import_optional("lsprotocol.types", _need())
    server = import_optional("pygls.lsp.server", _need()).LanguageServer("rayfold-cdollar", __version__)

    def document_text(uri: str) -> str:
        text: str = server.workspace.get_text_document(uri).source
        return text

    def text_and_position(parameters: Any) -> tuple[str, str, int, int]:
        uri, position = parameters.text_document.uri, parameters.position
        return uri, document_text(uri), position.line, position.character

    def publish(parameters: Any) -> None:
        uri = parameters.text_document.uri
        found = answers.diagnostics(uri, document_text(uri))
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=found))

    def close(parameters: Any) -> None:
        answers.analyses.pop(parameters.text_document.uri, None)

    def hover(parameters: Any) -> Any:
        return answers.hover(*text_and_position(parameters))

    def completion(parameters: Any) -> Any:
        return types.CompletionList(is_incomplete=False, items=answers.completions(*text_and_position(parameters)))

    def formatting(parameters: Any) -> Any:
        return answers.formatting(document_text(parameters.text_document.uri))

    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(publish)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(publish)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(close)
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS))(completion)
    server.feature(types.TEXT_DOCUMENT_FORMATTING)(formatting)
    return server
