"""The language server of C$: errors while typing, and all that editors ask about names; formatting.

Editors start `rayfold cdollar serve` for files *.cb and speak the Language Server Protocol with its stdin and stdout.
The server needs pygls (extra `lsp`). Positions of the protocol are lines and UTF-16 code units. A program is checked
as `rayfold run` checks it, with unknown arguments: sizes that depend on the arguments are shown as "?". Questions about
names are answered by the index (tools/name_index.py); while a text does not parse, by the last index.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from renderer import __version__
from renderer.cdollar.checker.values import Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span
from renderer.cdollar.frontend.lexer import KEYWORDS
from renderer.cdollar.frontend.parser import parse_declarations
from renderer.cdollar.runtime.evaluate import PRELUDE, new_compilation, parsed_prelude
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.cdollar.tools.formatter import format_text
from renderer.cdollar.tools.name_index import WORD, Symbol, build_index
from renderer.errors import UserError, import_optional
from renderer.system.install import pip_install

try:
    from lsprotocol import types as lsp
except ImportError:  # Server() reports it
    lsp = None  # type: ignore[assignment]

# Analysis

MAX_CHARACTERS = 1 << 16  # longer programs are not checked while they are typed
PLACEHOLDER = "member__"  # stands behind a dot while the members there are listed
STATEMENT_ENDS = ("", ";", ");", "));")  # what a statement that is being typed may lack
BRACKETS = re.compile(r"\([^()\[\]]*\)|\[[^()\[\]]*\]")  # a pair without brackets inside


class Analysis:
    """The result of checking a program, as far as the program could be checked.

    `index` has the names of the declarations that parse; `is_whole` if all do.
    """

    def __init__(self, text: str, name: str = "program", folder: Path | None = None):
        """Check a program; errors of any text are in `errors`, none are raised."""
        self.source, self.folder = SourceFile(name, text), folder
        self.items, self.errors, self.is_whole = list[ast.AstNode](), list[ProgramError](), False
        compilation = new_compilation(self.source, NumpyTarget, folder)
        self.noted = compilation.program.noted = dict[Span, Value]()
        try:
            if len(text) > MAX_CHARACTERS:
                message = "this program is too long to be checked while it is typed"
                raise ProgramError("CS0101", Span(self.source, 0, 1), message)
            self.items, self.errors = parse_declarations(self.source)
            self.is_whole = not self.errors
            compilation.load(self.items)
        except ProgramError as error:
            self.errors = self.errors or [e for e in (error, *error.others) if e.span.source is self.source]
        except (UserError, RecursionError) as error:
            message = str(error) or "this nests deeper than the compiler takes"
            self.errors = [ProgramError("CS0106", Span(self.source, 0, 1), message)]
        self.errors += [w for w in compilation.dag.warnings.values() if w.span.source is self.source]
        self.index = build_index(self.source, self.items, self.noted, parsed_prelude())

    def completions(self, offset: int) -> list[Symbol]:
        """The completions at a position: members after a dot, else names and words with the prefix that is typed."""
        text = self.source.text[:offset]
        typed = re.findall(r"(?:[A-Za-z_][A-Za-z_0-9]*)?\Z", text)[0]
        start = offset - len(typed)
        is_member = re.search(r"[\w\])]\s*\.\Z", text[:start])
        found = self.members(start, offset) if is_member else self.index.visible(offset).values()
        return [symbol for symbol in found if symbol.name.startswith(typed) and symbol.name != typed]

    def members(self, start: int, end: int) -> list[Symbol]:
        """The members behind the dot before `start`: checks the program with a placeholder there."""
        before, behind = self.source.text[:start], re.sub(r"\A\w+", "", self.source.text[end:])
        for statement_end in STATEMENT_ENDS:
            other = Analysis(before + PLACEHOLDER + statement_end + behind, "program", self.folder)
            for tree in (tree for item in other.items for tree in ast.walk(item)):
                if isinstance(tree, ast.MemberAccess) and tree.name == PLACEHOLDER:
                    return other.index.members(other.noted.get(tree.subject.span))
        return []

    def called(self, offset: int) -> Symbol | None:
        """The symbol of the function between whose brackets a position is; None outside of calls."""
        text, inner = self.source.text[:offset], ""
        while text != inner:  # calls that are closed become blanks, the innermost ones first
            inner, text = text, BRACKETS.sub(lambda match: " " * len(match[0]), text)
        begun = re.search(r"([A-Za-z_]\w*)\([^()\[\]{};]*\Z", text)
        found = self.index.find(begun.start(1)) if begun is not None else None
        visible = self.index.visible(offset).get(begun[1]) if begun is not None else None
        return found[0] if found is not None else visible

    def rename_refusal(self, spans: list[Span], name: str) -> str:
        """Why the symbol with these spans cannot get a name without changing the program's meaning; "" if it can."""
        if not self.index.declared.keys() & spans or any(span.source is not self.source for span in spans):
            return "only what this program declares can be renamed: variables, functions, types, members of classes"
        symbol, old, text = self.index.at[spans[0]], spans[0].text, self.source.text
        if not WORD.fullmatch(name) or name in KEYWORDS:
            return f"`{name}` cannot be a name: names are letters, digits and _, and no words of the language"
        if not self.is_whole:
            return f"the text does not parse, mend it first: {self.errors[0].message}"
        trees = (tree for item in self.items for tree in ast.walk(item) if isinstance(tree, ast.MemberAccess))
        doubtful = [t.span.provenance for t in trees if t.name == old and t.subject.span not in self.noted]
        if doubtful and symbol.kind in ("field", "method"):
            return f"it is not known whether {doubtful[0]} is this {symbol.kind}"
        for span in reversed(spans):
            text = text[: span.start] + name + text[span.end :]
        other, known = Analysis(text, self.source.name, self.folder), [error.code for error in self.errors]
        reasons = [error.message for error in other.errors if error.code not in known]
        if other.meanings(symbol.kind != "class") != self.meanings(symbol.kind != "class"):
            reasons.append(f"`{name}` has a meaning already")
        return f"`{old}` cannot become `{name}`: {reasons[0]}" if reasons else ""

    def meanings(self, with_types: bool) -> list[tuple[int, str]]:
        """For each name in the text the number of its symbol, and the type of a variable."""
        numbers: dict[Symbol, int] = {}
        spans = sorted((s for s in self.index.at if s.source is self.source), key=lambda span: span.start)
        symbols = [self.index.at[span] for span in spans]
        types = (s.text.partition(": ")[2] if with_types and s.kind == "variable" else "" for s in symbols)
        return [(numbers.setdefault(s, len(numbers)), type_) for s, type_ in zip(symbols, types, strict=True)]


# Protocol

Answer = Callable[[Analysis, int, Any], object]  # takes the analysis, a character and the request's parameters
NEED = f"the language server needs pygls: {pip_install('lsp')}"
REQUEST_FAILED = -32803  # the protocol's error code for a message to the user


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
    """The answers of the server (Answer), in the protocol's types; keeps the last analysis of each open file."""

    def __init__(self) -> None:
        """Start without files; raises UnavailableError without pygls."""
        import_optional("lsprotocol.types", NEED)
        self.analyses: dict[str, Analysis] = {}

    def analysis(self, uri: str, text: str) -> Analysis:
        """The analysis of a file's text, which is kept until the text changes."""
        last = self.analyses.get(uri)
        if last is None or last.source.text != text:
            path = Path(unquote(urlparse(uri).path))
            new = self.analyses[uri] = Analysis(text, path.name or "program", path.parent)
            if not new.is_whole and last is not None:
                new.index = last.index.moved(new.source)
        return self.analyses[uri]

    def protocol_range(self, span: Span) -> "lsp.Range":
        """A span in the protocol's positions."""
        positions = (utf16_position(span.source.text, offset) for offset in (span.start, span.end))
        start, end = (lsp.Position(line=line, character=column) for line, column in positions)
        return lsp.Range(start=start, end=end)

    def diagnostics(self, analysis: Analysis) -> "list[lsp.Diagnostic]":
        """The errors and warnings of a program."""
        return [
            lsp.Diagnostic(
                range=self.protocol_range(error.span),
                message=error.message + (f"\nhint: {error.hint}" if error.hint else ""),
                severity=lsp.DiagnosticSeverity[error.kind.capitalize()],
                code=error.code,
                source="C$",
            )
            for error in analysis.errors
        ]

    def hover(self, analysis: Analysis, offset: int, parameters: object) -> "lsp.Hover | None":
        """The type and domain of the name at a position, or None."""
        symbol, span = analysis.index.find(offset) or (None, None)
        if symbol is None or span is None or not symbol.text:
            return None
        value = lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=f"```cb\n{symbol.text}\n```")
        return lsp.Hover(contents=value, range=self.protocol_range(span))

    def completions(self, analysis: Analysis, offset: int, parameters: object) -> "lsp.CompletionList":
        """The completions at a position."""
        item, kinds = lsp.CompletionItem, lsp.CompletionItemKind
        symbols = analysis.completions(offset)
        items = [item(label=s.name, kind=kinds[s.kind.capitalize()], detail=s.text or None) for s in symbols]
        return lsp.CompletionList(is_incomplete=False, items=items)

    def definition(self, analysis: Analysis, offset: int, parameters: "lsp.DefinitionParams") -> "list[lsp.Location]":
        """The declarations of the name at a position, which may be in the prelude."""
        spans = analysis.index.spans(offset)
        declarations = [span for span in spans if span in analysis.index.declared]
        return self.locations(analysis, parameters.text_document.uri, declarations)

    def references(self, analysis: Analysis, offset: int, parameters: "lsp.ReferenceParams") -> "list[lsp.Location]":
        """The uses of the name at a position, and its declarations if they are asked for."""
        hidden = {} if parameters.context.include_declaration else analysis.index.declared
        spans = [span for span in analysis.index.spans(offset) if span not in hidden]
        return self.locations(analysis, parameters.text_document.uri, spans)

    def locations(self, analysis: Analysis, uri: str, spans: list[Span]) -> "list[lsp.Location]":
        """Spans of the program, which is the file `uri`, and of the prelude."""
        uris = (uri if span.source is analysis.source else PRELUDE.as_uri() for span in spans)
        return [lsp.Location(uri, self.protocol_range(span)) for uri, span in zip(uris, spans, strict=True)]

    def rename(self, analysis: Analysis, offset: int, parameters: "lsp.RenameParams") -> "lsp.WorkspaceEdit":
        """The edits that rename the name at a position; raises JsonRpcException with a sentence for the user."""
        spans = analysis.index.spans(offset)
        if refusal := analysis.rename_refusal(spans, parameters.new_name):
            raise import_optional("pygls.exceptions", NEED).JsonRpcException(refusal, REQUEST_FAILED)
        edits = [lsp.TextEdit(self.protocol_range(span), parameters.new_name) for span in spans]
        return lsp.WorkspaceEdit(changes={parameters.text_document.uri: edits})

    def symbols(self, analysis: Analysis, offset: int, parameters: object) -> "list[lsp.DocumentSymbol]":
        """The functions, classes, aliases and constants of a file; members are children of their class."""
        tops: list[lsp.DocumentSymbol] = []
        members = tops  # of the last class
        for span, whole in sorted(analysis.index.declared.items(), key=lambda item: item[0].start):
            symbol = analysis.index.at[span]
            if span.source is analysis.source and symbol in analysis.index.known.values():
                around, name = map(self.protocol_range, (whole, span))
                kind, children = lsp.SymbolKind[symbol.kind.capitalize()], list[lsp.DocumentSymbol]()
                is_member = symbol.kind in ("field", "method")
                (members if is_member else tops).append(
                    lsp.DocumentSymbol(span.text, kind, around, name, detail=symbol.text, children=children)
                )
                members = members if is_member else children
        return tops

    def signature(self, analysis: Analysis, offset: int, parameters: object) -> "lsp.SignatureHelp | None":
        """The signatures of the function whose arguments a position is in, with the types of parameters."""
        symbol = analysis.called(offset)
        if symbol is None or symbol.kind not in ("function", "method"):
            return None
        return lsp.SignatureHelp([lsp.SignatureInformation(label) for label in symbol.text.split("\n")])

    def formatting(self, analysis: Analysis, offset: int, parameters: object) -> "list[lsp.TextEdit] | None":
        """The edit that formats a text; None for one that has characters without a meaning."""
        text = analysis.source.text
        try:
            new = format_text(text)
        except ProgramError:
            return None
        edit = lsp.TextEdit(range=self.protocol_range(Span(analysis.source, 0, len(text))), new_text=new)
        return [] if new == text else [edit]


def build() -> Any:
    """The pygls server with its handlers."""
    answers = Server()
    server = import_optional("pygls.lsp.server", NEED).LanguageServer("rayfold-cdollar", __version__)

    def of_text(answer: Answer) -> Callable[[Any], object]:
        """The handler of requests about a text, which calls the answer with the text's analysis."""

        def handle(parameters: Any) -> object:
            uri, position = parameters.text_document.uri, getattr(parameters, "position", lsp.Position(0, 0))
            text = server.workspace.get_text_document(uri).source
            offset = character_offset(text, position.line, position.character)
            return answer(answers.analysis(uri, text), offset, parameters)

        return handle

    def publish(analysis: Analysis, offset: int, parameters: Any) -> None:
        errors = lsp.PublishDiagnosticsParams(parameters.text_document.uri, answers.diagnostics(analysis))
        server.text_document_publish_diagnostics(errors)

    close = lsp.TEXT_DOCUMENT_DID_CLOSE
    server.feature(close)(lambda parameters: answers.analyses.pop(parameters.text_document.uri, None))
    for request, answer, *options in (
        (lsp.TEXT_DOCUMENT_DID_OPEN, publish),
        (lsp.TEXT_DOCUMENT_DID_CHANGE, publish),
        (lsp.TEXT_DOCUMENT_FORMATTING, answers.formatting),
        (lsp.TEXT_DOCUMENT_HOVER, answers.hover),
        (lsp.TEXT_DOCUMENT_COMPLETION, answers.completions, lsp.CompletionOptions(trigger_characters=(".",))),
        (lsp.TEXT_DOCUMENT_SIGNATURE_HELP, answers.signature, lsp.SignatureHelpOptions(("(", ","))),
        (lsp.TEXT_DOCUMENT_DEFINITION, answers.definition),
        (lsp.TEXT_DOCUMENT_REFERENCES, answers.references),
        (lsp.TEXT_DOCUMENT_RENAME, answers.rename),
        (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, answers.symbols),
    ):
        server.feature(request, *options)(of_text(answer))
    return server
