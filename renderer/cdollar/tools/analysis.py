"""What an editor shows of a C$ program: its errors, the type and domain of a name, and what may be typed next.

A program is checked as `rayfold run` checks it, with nothing known of its arguments: sizes that depend on them are "?".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from renderer.cdollar.checker.node_builder import FUNCTIONS
from renderer.cdollar.checker.program import UserFunction
from renderer.cdollar.checker.values import FunctionValue, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span
from renderer.cdollar.frontend.lexer import KEYWORDS
from renderer.cdollar.frontend.parser import parse
from renderer.cdollar.ir.dag import UNKNOWN, TooLarge
from renderer.cdollar.runtime.evaluate import new_compilation
from renderer.cdollar.targets.numpy_target import NumpyTarget
from renderer.errors import UserError

WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
MEMBERS = ("x", "y", "z", "w", *ast.BORDER_MODES)
TYPES = (*ast.PRIMITIVES, *ast.VECTORS)
MAX_CHARACTERS = 1 << 16  # of a program that is checked while it is typed


@dataclass(frozen=True)
class Completion:
    """What may be typed, of kind "keyword", "type", "function", "variable" or "member", and what it is."""

    name: str
    kind: str
    detail: str = ""


@dataclass
class Analysis:
    """A program as far as it could be checked."""

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

    def own_functions(self) -> list[UserFunction]:
        """The functions of the program, in its order."""
        own = [f for f in self.functions if f.declaration.span.source is self.source]
        return sorted(own, key=lambda function: function.declaration.span.start)

    def function_at(self, offset: int) -> UserFunction | None:
        """The function in which a character is."""
        before = [f for f in self.own_functions() if f.declaration.span.start <= offset]
        return before[-1] if before else None

    def all_variables(self) -> dict[str, str]:
        """What all variables and parameters are, by name."""
        ends = [f.declaration.span.start for f in self.own_functions()[1:]] + [len(self.source.text)]
        return {name: text for end in ends for name, text in self.variables_at(max(0, end - 1)).items()}

    def variables_at(self, offset: int) -> dict[str, str]:
        """What the variables and parameters before a character are, by name."""
        function, found = self.function_at(offset), dict(self.remembered)
        starts = [f.declaration.span.start for f in self.own_functions()]
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
        """What the name at a character is, and where the name stands; None where there is nothing to say."""
        for match in WORD.finditer(self.source.text):
            if match.start() <= offset < match.end():
                text = self.describe_name(match[0], match.end())
                return (text, Span(self.source, match.start(), match.end())) if text else None
        return None

    def describe_name(self, name: str, offset: int) -> str:
        """What a name is at a place; "" if it is unknown."""
        variables = self.variables_at(offset)
        if name in variables:
            return f"{name}: {variables[name]}"
        if name in self.signatures:
            return "\n".join(self.signatures[name])
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        return f"{name}: a type" if name in TYPES else ""

    def completions(self, offset: int) -> list[Completion]:
        """What may be typed at a place: members behind a dot, else names and words that begin as what is typed."""
        text = self.source.text[:offset]
        begun = re.search(r"[A-Za-z_][A-Za-z_0-9]*\Z", text)
        typed = begun[0] if begun else ""
        if re.search(r"[\w\])]\s*\.\Z", text[: len(text) - len(typed)]):
            found = [Completion(name, "member") for name in MEMBERS]
        else:
            found = [Completion(n, "variable", d) for n, d in self.variables_at(offset).items()]
            found += [Completion(n, "function", "\n".join(s)) for n, s in self.signatures.items()]
            found += [Completion(n, "function", use) for n, use in FUNCTIONS.items() if n not in self.signatures]
            found += [Completion(name, "type") for name in TYPES]
            found += [Completion(word, "keyword") for word in sorted(KEYWORDS)]
        return [c for c in found if c.name.startswith(typed) and c.name != typed]


def describe(value: Value) -> str:
    """The type of a value, and the domain if it is a function."""
    if not isinstance(value, FunctionValue):
        return str(getattr(value, "type", "domain"))
    domain = " x ".join("?" if part is UNKNOWN else str(part) for part in value.domain_with_borders)
    return f"{value.type}, domain {domain}" if domain else str(value.type)


def analyze(text: str, name: str = "program", folder: Path | None = None) -> Analysis:
    """Check a program; raises nothing for whatever text it is."""
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
    except (UserError, TooLarge, RecursionError) as error:
        message = str(error) or "this nests deeper, or builds more nodes, than the compiler takes"
        analysis.errors = [ProgramError("CS0106", Span(source, 0, 1), message)]
    analysis.functions = compilation.program.functions.all()
    analysis.declared = {span: value for span, value in analysis.declared.items() if span.source is source}
    return analysis
