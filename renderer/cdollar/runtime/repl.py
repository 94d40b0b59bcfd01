"""The interactive prompt (REPL) of `rayfold run` without a program.

An expression shows its type, domain and value; declarations stay for later inputs. A line that cannot end there, such
as one with an open bracket, goes on in the next one.
"""

import math
import sys
from collections.abc import Callable, Set
from contextlib import suppress

import numpy as np

from renderer.cdollar.checker.node_builder import FUNCTIONS
from renderer.cdollar.checker.tables import class_functions
from renderer.cdollar.checker.values import DomainValue, FunctionValue, OverloadSet, TupleValue, Value, describe
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span
from renderer.cdollar.frontend.hints import TEXTS
from renderer.cdollar.frontend.lexer import KEYWORDS, tokenize
from renderer.cdollar.frontend.parser import parse_repl_input
from renderer.cdollar.ir.dag import Range
from renderer.cdollar.lowering.conversions import resolve
from renderer.cdollar.lowering.domains import lower_expression
from renderer.cdollar.runtime.evaluate import evaluate_value, new_compilation
from renderer.cdollar.targets.open_target import TargetFactory
from renderer.errors import UserError
from renderer.paths import ASSETS

HELP = f"{TEXTS['prompt']['help']}\nguide: {ASSETS / 'guides' / 'cdollar.md'}"
COMMANDS = (":d", ":h", ":names", ":q", ":t")
SYNONYMS = {":quit": ":q", ":help": ":h", "exit": ":q", "quit": ":q", "help": ":h", "?": ":h"}
WAITING = ("=>", "..", *"=,+-*/%&|^<>?", "&&", "||", "<=", ">=", "==", "!=")  # tokens after which a line goes on
MAX_SHOWN_ELEMENTS = 1_000_000  # elements above which a value is not evaluated to be shown


class Repl:
    """One session: a program that grows by one input at a time."""

    def __init__(self, make_target: TargetFactory, show: Callable[[str], object] = print) -> None:
        """Start with the prelude; `show` prints a text."""
        self.compilation = new_compilation(SourceFile("<prompt>", ""), make_target)
        self.functions = self.compilation.program.functions
        self.functions.prelude_functions = set(self.functions.all())  # which inputs may replace
        self.show, self.input_count = show, 0

    def handle(self, text: str) -> bool:
        """Handle one input; False ends the session. Errors are shown and change nothing."""
        text = text.strip()
        command = SYNONYMS.get(text, text.split()[0] if text else "")
        if command == ":q":
            return False
        if command == ":h":
            self.show(HELP)
        elif command.startswith(":") and command not in COMMANDS:
            self.show(f"there is no command {command}; there are {', '.join(COMMANDS)}")
        elif text == ":names":
            self.show_names()
        elif text:
            try:
                self.execute(text)
            except UserError as error:
                self.show(str(error))
            for warning in self.compilation.dag.warnings.values():
                self.show(str(warning))
            self.compilation.dag.warnings.clear()
        return True

    def execute(self, text: str) -> None:
        """Evaluate an expression, or execute declarations and statements."""
        command, rest = (text[:2], text[2:].strip()) if text[:2] in (":t", ":d") else ("", text)
        self.input_count += 1
        source = SourceFile(f"<{self.input_count}>", rest)
        self.compilation.restart(source)
        items, expression = parse_repl_input(source, set(self.compilation.program.types.types))
        if expression is not None:
            self.expression(expression, command)
            return
        for item in items:
            self.declare(item)
        if command == ":d":
            self.show_inference()

    def declare(self, item: ast.AstNode) -> None:
        """Declare a function, class, type or variable, which replaces one of the same name; or run a statement."""
        program = self.compilation.program
        if isinstance(item, ast.FunctionDeclaration):
            self.declare_function(item)
        elif isinstance(item, (ast.ClassDeclaration, ast.TypeAlias)):
            program.types.declare(item)
            if isinstance(item, ast.ClassDeclaration):
                self.functions.declare_all(class_functions(item))
        else:
            if isinstance(item, ast.VariableDeclaration):
                program.globals.names.pop(item.name, None)
            self.compilation.run_globally(item)

    def declare_function(self, item: ast.FunctionDeclaration) -> None:
        """Add an overload; it is removed again if it has errors. A generic function replaces functions of its name."""
        if item.type_parameters:
            self.functions.generics.pop(item.name, None)
            self.functions.declare_all([item])
            self.show(item.span.excerpt)
            return
        types = tuple(self.compilation.program.types.resolve(p.type) for p in item.parameters)
        for old in [f for f in self.functions.get(item.name) if f.parameter_types == types]:
            self.functions.remove(old)
        function = self.functions.declare(item)
        try:
            self.compilation.check(function)
        except UserError:
            self.functions.remove(function)
            raise
        self.show(f"{function.result_type} {function.signature}")

    def expression(self, expression: ast.AstNode, command: str) -> None:
        """Show the type and domain of an expression, and its value unless there is a command or it is too large."""
        value = lower_expression(self.compilation.body(self.compilation.program.globals), expression)
        self.show_value(value, expression.span, command)

    def show_value(self, value: Value, span: Span, command: str) -> None:
        """Show a value; of a tuple, each of its values."""
        if isinstance(value, TupleValue):
            for name, item in value.items.items():
                self.show(f"{name}:")
                self.show_value(item, span, command)
            return
        if isinstance(value, DomainValue):
            self.show("domain " + " x ".join(map(str, value.ranges)))
            return
        if isinstance(value, OverloadSet) and len(self.functions.get(value.name)) > 1:
            self.show("\n".join(f"{f.result_type} {f.signature}" for f in self.functions.get(value.name)))
            return
        value = resolve(self.compilation.body(), value, span)
        self.show(describe(value))
        if command == ":d":
            self.show_inference()
        if command or isinstance(value, FunctionValue) and not self.is_shown(value):
            return
        array = evaluate_value(self.compilation, value, span).array
        assert array is not None
        self.show(np.array2string(array, threshold=200, max_line_width=100) if array.ndim else str(array[()]))

    def show_inference(self) -> None:
        """Show how each domain of the input was inferred."""
        self.show("\n".join(self.compilation.program.inference.log) or "nothing was inferred")

    def is_shown(self, value: FunctionValue) -> bool:
        """True if a function is finite and small enough to be evaluated."""
        sizes = [range_.size for range_ in value.domain_with_borders if isinstance(range_, Range)]
        return len(sizes) == len(value.domain_with_borders) and math.prod(sizes) <= MAX_SHOWN_ELEMENTS

    def show_names(self) -> None:
        """Show the variables and functions that are declared."""
        for name, variable in self.compilation.program.globals.variables():
            no_value = f"{variable.type}, without a value"
            self.show(f"{name}: {no_value if variable.value is None else describe(variable.value)}")
        for function in self.functions.all():
            if function not in self.functions.prelude_functions:
                self.show(f"{function.result_type} {function.signature}")

    def completions(self, line: str, start: int) -> list[str]:
        """The names that complete the word that begins at `start`."""
        word, before = line[start:], line[:start].rstrip()
        if line.startswith(":") and start <= 1:
            return [command for command in COMMANDS if command.startswith(line)]
        if before.endswith(".") and not before.endswith(".."):
            names = {"x", "y", "z", "w", *ast.BORDER_MODES}
        else:
            program = self.compilation.program
            names = {name for name, _ in program.globals.variables()} | {f.name for f in self.functions.all()}
            names |= {*FUNCTIONS, *KEYWORDS, *ast.PRIMITIVES, *ast.VECTORS}
        return sorted(name for name in names if name.startswith(word))


def is_open(text: str, type_names: Set[str] = frozenset()) -> bool:
    """True if an input continues on the next line.

    A bracket or comment is open, an operator lacks its operand, or a function, class or loop its body.
    """
    try:
        tokens = tokenize(SourceFile("<prompt>", text))[:-1]
    except ProgramError as error:
        return error.span.source.text.startswith("/*", error.span.start)
    depth = 0
    for token in tokens:
        if token.kind == "punctuator" and token.text in ("(", "[", "{", ")", "]", "}"):
            depth += 1 if token.text in "([{" else -1
    last = tokens[-1] if tokens else None
    if depth > 0 or last is not None and last.kind == "punctuator" and last.text in WAITING:
        return True
    for missing in ("", "\n{ int x; }"):  # a head that parses with a body alone goes on
        with suppress(ProgramError):
            parse_repl_input(SourceFile("<prompt>", text + missing), type_names)
            return bool(missing)
    return False


def complete_by_tab(repl: Repl) -> None:
    """Give input() line editing, history and names completed by Tab, if Python has the module readline."""
    try:
        import readline
    except ImportError:  # Windows
        return
    names: list[str] = []

    def complete(word: str, state: int) -> str | None:
        if state == 0:
            names[:] = repl.completions(readline.get_line_buffer(), readline.get_begidx())
        return names[state] if state < len(names) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n()[]{},;.+-*/%<>=!~&|^?:")
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")


def run_repl(make_target: TargetFactory) -> int:
    """Read inputs until the end; returns the exit code."""
    interactive = sys.stdin.isatty()
    if interactive:
        print("C$  (:h for help, :q to leave; Tab completes)")
    repl = Repl(make_target)
    if interactive:
        complete_by_tab(repl)
    while True:
        try:
            text = input("> " if interactive else "")
            while is_open(text, repl.compilation.program.types.types.keys()):
                text += "\n" + input("  " if interactive else "")
        except EOFError:
            return 0
        except KeyboardInterrupt:
            print()
            continue
        try:
            if not repl.handle(text):
                return 0
        except KeyboardInterrupt:
            print("interrupted; what was declared before is kept")
