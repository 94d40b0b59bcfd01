"""The interactive prompt: type, domain and value of what is typed; declarations stay."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from renderer.cdollar.checker.compilation import Compilation
from renderer.cdollar.checker.values import DomainValue, FunctionValue, OverloadSet
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import SourceFile
from renderer.cdollar.frontend.parser import parse, parse_repl_input
from renderer.cdollar.ir.dag import INFINITE, TooLarge
from renderer.cdollar.runtime.evaluate import evaluate_value, prelude
from renderer.errors import UserError

HELP = """an expression shows its type, domain and value; a declaration stays: var x = 3;  float f(float t) => t * t;
var c(i : 0..5) = i * i;   sum(c)   var a = file("a.npy");   :t EXPR type and domain   :d EXPR how it was inferred
:names what is declared   :q leave"""
MAX_SHOWN_ELEMENTS = 1_000_000  # elements that a value may have to be shown


class Repl:
    """One session: a program that grows by a line at a time."""

    def __init__(self, make_target, show=print):
        self.compilation = Compilation(SourceFile("<prompt>", ""), make_target, Path())
        self.compilation.load(parse(prelude()), checked=False)
        self.functions = self.compilation.program.functions
        self.functions.prelude_functions = set(self.functions.all())
        self.show, self.number = show, 0

    def line(self, text: str) -> bool:
        """Takes one line; False ends the session. Errors are shown and change nothing."""
        text = text.strip()
        if text in (":q", ":quit", "exit", "quit"):
            return False
        if text in (":h", ":help", "help", "?"):
            self.show(HELP)
        elif text == ":names":
            self.names()
        elif text:
            try:
                self.take(text)
            except (UserError, TooLarge) as error:
                self.show(str(error) or "the program has become too large: start anew")
        return True

    def take(self, text: str) -> None:
        command, rest = (text[:2], text[2:].strip()) if text[:2] in (":t", ":d") else ("", text)
        self.number += 1
        source = SourceFile(f"<{self.number}>", rest)
        self.compilation.restart(source)
        items, expression = parse_repl_input(source, set(self.compilation.program.types.types))
        if expression is not None:
            self.expression(expression, command)
            return
        for item in items:
            self.declare(item)

    def declare(self, item: ast.AstNode) -> None:
        program = self.compilation.program
        if isinstance(item, ast.FunctionDeclaration):
            types = tuple(program.types.resolve(p.type) for p in item.parameters)
            for old in [f for f in self.functions.get(item.name) if f.parameter_types == types]:
                self.functions.remove(old)
            function = self.functions.declare(item)
            try:
                self.compilation.check(function)
            except UserError:
                self.functions.remove(function)
                raise
            self.show(f"{function.result_type} {function.signature}")
        elif isinstance(item, (ast.ClassDeclaration, ast.TypeAlias)):
            program.types.declare(item)
        else:
            if isinstance(item, ast.GlobalDeclaration):
                item = item.declaration
            if isinstance(item, ast.VariableDeclaration):
                program.globals.names.pop(item.name, None)
            self.compilation.run_globally(item)

    def expression(self, tree: ast.AstNode, command: str) -> None:
        value = self.compilation.expressions(self.compilation.program.globals).lower_expression(tree)
        if isinstance(value, DomainValue):
            self.show("domain " + " x ".join(map(str, value.ranges)))
            return
        if isinstance(value, OverloadSet) and len(self.functions.get(value.name)) > 1:
            self.show("\n".join(f"{f.result_type} {f.signature}" for f in self.functions.get(value.name)))
            return
        value = self.compilation.resolve(value, tree.span)
        self.show(self.described(value))
        if command == ":d":
            self.show("\n".join(self.compilation.program.inference.log) or "nothing was inferred")
        if command or isinstance(value, FunctionValue) and not self.is_shown(value):
            return
        result = evaluate_value(self.compilation, value, tree.span)
        self.show(
            np.array2string(result.array, threshold=200, max_line_width=100)
            if result.array.ndim
            else str(result.array[()])
        )

    def described(self, value) -> str:
        if not isinstance(value, FunctionValue):
            return str(value.type)
        domain = " x ".join("infinite" if r is INFINITE else str(r) for r in value.domain_with_borders)
        return f"{value.type}  domain {domain}"

    def is_shown(self, value: FunctionValue) -> bool:
        size = 1
        for range_ in value.domain_with_borders:
            if not hasattr(range_, "size"):
                return False
            size *= range_.size
        return size <= MAX_SHOWN_ELEMENTS

    def names(self) -> None:
        for name, variable in self.compilation.program.globals.variables():
            self.show(f"{name}: {self.described(variable.value)}")
        for function in self.functions.all():
            if function not in self.functions.prelude_functions:
                self.show(f"{function.result_type} {function.signature}")


def run_repl(make_target) -> int:
    """Reads lines until the end of the input; the exit code."""
    interactive = sys.stdin.isatty()
    if interactive:
        import readline  # noqa: F401  line editing and history for input()

        print("C$  (:h for help, :q to leave)")
    session = Repl(make_target)
    while True:
        try:
            text = input("> " if interactive else "")
            while unfinished(text):
                text += "\n" + input("  " if interactive else "")
        except EOFError:
            return 0
        except KeyboardInterrupt:
            print()
            continue
        if not session.line(text):
            return 0


def unfinished(text: str) -> bool:
    """Whether a function's or class's braces are still open."""
    return text.count("{") > text.count("}")
