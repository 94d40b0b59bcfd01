"""The language server of C$: errors as one types, hover, completion, formatting.

Editors start `rayfold cdollar serve` for files *.cb and speak the Language Server Protocol with its stdin and stdout.
It needs pygls (extra `lsp`). Positions of the protocol are lines and UTF-16 code units.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from renderer import __version__
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.tools.analysis import Analysis, analyze
from renderer.cdollar.tools.formatter import format_text
from renderer.errors import import_optional

NEED = "the language server needs pygls: pip install 'rayfold[lsp]'"
TRIGGERS = (".",)


def position_of(text: str, offset: int) -> tuple[int, int]:
    """The line and UTF-16 column of a character, both from 0."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset), len(text[start:offset].encode("utf-16-le", "surrogatepass")) // 2


def offset_of(text: str, line: int, column: int) -> int:
    """The character at a line and UTF-16 column; the end of the line, or of the text, where there is none."""
    start = 0
    for _ in range(line):
        found = text.find("\n", start)
        if found < 0:
            return len(text)
        start = found + 1
    end = text.find("\n", start)
    units = 0
    for offset in range(start, len(text) if end < 0 else end):
        if units >= column:
            return offset
        units += 2 if ord(text[offset]) > 0xFFFF else 1
    return len(text) if end < 0 else end


class Server:
    """The answers of the server, with the last analysis of each open file."""

    def __init__(self) -> None:
        """Import the protocol; raises UnavailableError without pygls."""
        self.types = import_optional("lsprotocol.types", NEED)
        self.analyses: dict[str, tuple[str, Analysis]] = {}

    def analysis(self, uri: str, text: str) -> Analysis:
        """The analysis of a file's text, which is kept until the text changes."""
        known = self.analyses.get(uri)
        if known is None or known[0] != text:
            path = Path(unquote(urlparse(uri).path))
            found = analyze(text, path.name or "program", path.parent)
            if known is not None and not found.own_functions():  # what is typed does not parse: the names stay
                found.remembered = known[1].all_variables() or known[1].remembered
            self.analyses[uri] = text, found
        return self.analyses[uri][1]

    def range_of(self, span: Span) -> Any:
        """A span in the protocol's positions."""
        places = (position_of(span.source.text, offset) for offset in (span.start, span.end))
        start, end = (self.types.Position(line=line, character=column) for line, column in places)
        return self.types.Range(start=start, end=end)

    def diagnostics(self, uri: str, text: str) -> list[Any]:
        """The errors of a program."""
        return [
            self.types.Diagnostic(
                range=self.range_of(error.span),
                message=error.message + (f"\nhint: {error.hint}" if error.hint else ""),
                severity=self.types.DiagnosticSeverity.Error,
                code=error.code,
                source="C$",
            )
            for error in self.analysis(uri, text).errors
        ]

    def hover(self, uri: str, text: str, line: int, column: int) -> Any:
        """The type and domain of the name at a place, or None."""
        found = self.analysis(uri, text).hover(offset_of(text, line, column))
        if found is None:
            return None
        value = self.types.MarkupContent(kind=self.types.MarkupKind.Markdown, value=f"```cb\n{found[0]}\n```")
        return self.types.Hover(contents=value, range=self.range_of(found[1]))

    def completions(self, uri: str, text: str, line: int, column: int) -> list[Any]:
        """What may be typed at a place."""
        kinds = self.types.CompletionItemKind
        by_kind = {
            "keyword": kinds.Keyword, "type": kinds.Class, "function": kinds.Function, "variable": kinds.Variable,
            "member": kinds.Field,
        }  # fmt: skip
        found = self.analysis(uri, text).completions(offset_of(text, line, column))
        return [self.types.CompletionItem(label=c.name, kind=by_kind[c.kind], detail=c.detail or None) for c in found]

    def formatting(self, text: str) -> list[Any] | None:
        """The edit that formats a text; None for one that has characters without a meaning."""
        try:
            new = format_text(text)
        except ProgramError:
            return None
        line, column = position_of(text, len(text))
        whole = self.types.Range(
            start=self.types.Position(line=0, character=0), end=self.types.Position(line=line, character=column)
        )
        return [] if new == text else [self.types.TextEdit(range=whole, new_text=new)]


def build() -> Any:
    """The pygls server with its handlers."""
    answers, types = Server(), import_optional("lsprotocol.types", NEED)
    server = import_optional("pygls.lsp.server", NEED).LanguageServer("rayfold-cdollar", __version__)

    def text_of(uri: str) -> str:
        return server.workspace.get_text_document(uri).source

    def publish(parameters: Any) -> None:
        uri = parameters.text_document.uri
        found = answers.diagnostics(uri, text_of(uri))
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=found))

    def close(parameters: Any) -> None:
        answers.analyses.pop(parameters.text_document.uri, None)

    def hover(parameters: Any) -> Any:
        uri, place = parameters.text_document.uri, parameters.position
        return answers.hover(uri, text_of(uri), place.line, place.character)

    def completion(parameters: Any) -> Any:
        uri, place = parameters.text_document.uri, parameters.position
        items = answers.completions(uri, text_of(uri), place.line, place.character)
        return types.CompletionList(is_incomplete=False, items=items)

    def formatting(parameters: Any) -> Any:
        return answers.formatting(text_of(parameters.text_document.uri))

    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(publish)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(publish)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(close)
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS))(completion)
    server.feature(types.TEXT_DOCUMENT_FORMATTING)(formatting)
    return server
