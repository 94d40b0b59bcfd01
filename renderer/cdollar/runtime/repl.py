"""The interactive prompt: type, domain and value of what is typed; declarations stay."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from renderer.cdollar.checker.checker import Checker
from renderer.cdollar.checker.compilation import Compilation
from renderer.cdollar.checker.host_executor import HostExecutor
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
        self.compilation = Compilation(SourceFile("<prompt>", ""), None, Path())
        self.compilation.target = make_target(self.compilation)
        self.compilation.load(parse(prelude()), checked=False)
        self.compilation.prelude_functions = {f for family in self.compilation.overloads.values() for f in family}
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
        self.compilation.source, self.compilation.statement_count = source, 0
        self.compilation.inference_stack, self.compilation.calls, self.compilation.inference_log = [], [], []
        items, expression = parse_repl_input(source, set(self.compilation.types))
        if expression is not None:
            self.expression(expression, command)
            return
        for item in items:
            self.declare(item)

    def declare(self, item: ast.AstNode) -> None:
        compilation = self.compilation
        if isinstance(item, ast.FunctionDeclaration):
            types = tuple(compilation.type_of(p.type) for p in item.parameters)
            compilation.overloads[item.name] = [
                f for f in compilation.overloads.get(item.name, []) if f.parameter_types != types
            ]
            compilation.add_function(item)
            try:
                compilation.check(compilation.overloads[item.name][-1])
            except UserError:
                compilation.overloads[item.name].pop()
                if not compilation.overloads[item.name]:
                    del compilation.overloads[item.name]
                raise
            self.show(
                f"{compilation.overloads[item.name][-1].result_type} {compilation.overloads[item.name][-1].signature}"
            )
        elif isinstance(item, ast.ClassDeclaration):
            compilation.add_class(item)
        elif isinstance(item, ast.TypeAlias):
            compilation.types[item.name] = compilation.type_of(item.type)
        else:
            if isinstance(item, ast.GlobalDeclaration):
                item = item.declaration
            if isinstance(item, ast.VariableDeclaration):
                compilation.globals.names.pop(item.name, None)
            HostExecutor(compilation, None, compilation.globals).run([item])

    def expression(self, tree: ast.AstNode, command: str) -> None:
        checker = Checker(self.compilation, self.compilation.globals)
        value = checker.root(tree)
        if isinstance(value, DomainValue):
            self.show("domain " + " x ".join(map(str, value.ranges)))
            return
        if isinstance(value, OverloadSet) and len(self.compilation.overloads.get(value.name, [])) > 1:
            self.show("\n".join(f"{f.result_type} {f.signature}" for f in self.compilation.overloads[value.name]))
            return
        value = checker.settled(value, tree.span)
        self.show(self.described(value))
        if command == ":d":
            self.show("\n".join(self.compilation.inference_log) or "nothing was inferred")
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
        domain = " x ".join(
            "infinite" if r is INFINITE else str(r)
            for r in Checker(self.compilation, self.compilation.globals).flat_domain(value)
        )
        return f"{value.type}  domain {domain}"

    def is_shown(self, value: FunctionValue) -> bool:
        size = 1
        for range_ in Checker(self.compilation, self.compilation.globals).flat_domain(value):
            if not hasattr(range_, "size"):
                return False
            size *= range_.size
        return size <= MAX_SHOWN_ELEMENTS

    def names(self) -> None:
        for name, variable in self.compilation.globals.variables():
            self.show(f"{name}: {self.described(variable.value)}")
        for family in self.compilation.overloads.values():
            for function in family:
                if function in self.compilation.prelude_functions:
                    continue
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
