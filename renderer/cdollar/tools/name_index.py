"""The index of a program's names: the meaning of each name, where it is declared and used, and its type.

`build_index` visits the syntax trees once, in the scopes of the language. The values that the checker notes
(`Program.noted`) give the types of variables, and the class of what stands before a dot. Code that the checker does not
reach, such as generic functions without calls, has its names in the index too.
"""

import os
import re
from collections import ChainMap
from collections.abc import Iterable, Mapping

from renderer.cdollar.checker.node_builder import CONSTANTS, FUNCTIONS
from renderer.cdollar.checker.tables import declared_names
from renderer.cdollar.checker.values import DomainValue, FunctionValue, Value, describe
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import SourceFile, Span
from renderer.cdollar.frontend.lexer import KEYWORDS
from renderer.cdollar.ir import types as ty
from renderer.records import dataclass, field, replace

WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
TYPES = (*ast.PRIMITIVES, *ast.VECTORS, "domain")
Noted = Mapping[Span, Value]


@dataclass(eq=False)
class Symbol:
    """A name with one meaning, of the kind "function", "class", "method", "field", "variable" or "keyword".

    The overloads of a function are one symbol. `text` is its type, or the signatures with the types of parameters.
    """

    name: str
    kind: str
    text: str = ""
    restricts: bool = False  # `int i : 0..n;`: bound variables of this name take their type and range from it


@dataclass
class NameIndex:
    """The symbols of a program by the spans of their names; built-in symbols are declared nowhere.

    `declared` has the spans that declare a name, with a region: the text of a function or class, and for a variable the
    function that knows it. `known` has the names that the whole program knows, and members as "Class.member".
    """

    source: SourceFile
    known: dict[str, Symbol]
    at: dict[Span, Symbol] = field(default_factory=dict)
    declared: dict[Span, Span] = field(default_factory=dict)

    def find(self, offset: int) -> tuple[Symbol, Span] | None:
        """The symbol whose name contains a character or ends before it, with the name's span; None without one."""
        spans = [s for s in self.at if s.source is self.source and s.start <= offset <= s.end]
        span = max(spans, key=lambda span: span.start, default=None)
        return (self.at[span], span) if span is not None else None

    def spans(self, offset: int) -> list[Span]:
        """The spans of the symbol at a character in the order of the text: its declarations and uses."""
        found = self.find(offset)
        spans = [span for span, symbol in self.at.items() if found is not None and symbol is found[0]]
        return sorted(spans, key=lambda span: span.start)

    def visible(self, offset: int) -> dict[str, Symbol]:
        """The symbols that a position can use, by name: variables that are declared before it, and global names."""
        names = {name: symbol for name, symbol in self.known.items() if name.isidentifier()}
        for span, region in sorted(self.declared.items(), key=lambda item: item[0].start):
            if self.at[span].kind == "variable" and span.end <= offset and region.start <= offset <= region.end:
                names[span.text] = self.at[span]
        return names

    def moved(self, source: SourceFile) -> "NameIndex":
        """The index at the positions of an edited text; names that the edit changes are left out."""
        shift = len(source.text) - len(self.source.text)
        same = len(os.path.commonprefix((source.text, self.source.text)))

        def move(span: Span) -> Span:
            # Positions behind the first difference shift by the change of length, but not to before it.
            ends = (p if p <= same else max(same, p + shift) for p in (span.start, span.end))
            return Span(source, *ends) if span.source is self.source else span

        moves = {span: move(span) for span in self.at}  # an edit inside a name changes the text at its span
        at = {moves[span]: symbol for span, symbol in self.at.items() if moves[span].text == span.text}
        declared = {moves[span]: move(region) for span, region in self.declared.items() if moves[span] in at}
        return replace(self, source=source, at=at, declared=declared)

    def members(self, value: Value | None) -> list[Symbol]:
        """The members behind the dot of a value."""
        data = data_type(value)
        named = data.fields if isinstance(data, ty.Tuple) else [f[:2] for f in ty.fields(data)] if data else []
        found = {name: Symbol(name, "field", f"{name}: {type_}") for name, type_ in named}
        found |= {symbol.name: symbol for key, symbol in self.known.items() if key == f"{data}.{symbol.name}"}
        modes = ast.BORDER_MODES if isinstance(value, FunctionValue) else ()
        ends = ("low", "high", "size") if isinstance(value, DomainValue) else ()
        return [*found.values(), *(Symbol(name, "field") for name in (*modes, *ends))]


def data_type(value: Value | None) -> ty.Type | None:
    """The type of a value, or of the elements of a function; None for values that have no type."""
    type_ = None if isinstance(value, DomainValue) else getattr(value, "type", None)
    return type_.result if isinstance(type_, ty.FunctionType) else type_


# Building


def build_index(source: SourceFile, items: list[ast.AstNode], noted: Noted, prelude: list[ast.AstNode]) -> NameIndex:
    """The index of a program's declarations."""
    known = {name: Symbol(name, "function", text) for name, text in FUNCTIONS.items()}
    known |= {name: Symbol(name, "variable", f"{name}: float") for name in CONSTANTS}
    known |= {name: Symbol(name, "class", f"{name}: a type") for name in TYPES}
    known |= {name: Symbol(name, "keyword") for name in KEYWORDS}
    builder = Builder(NameIndex(source, known), noted)
    for item in (*prelude, *items):
        builder.declare(item)
    builder.visit_all(items, ChainMap(known))
    for span, symbol in builder.index.at.items():
        if symbol.kind == "variable" and span in noted and (span in builder.index.declared or not symbol.text):
            symbol.text = f"{symbol.name}: {describe(noted[span])}"
    return builder.index


Scope = ChainMap[str, Symbol]
Names = Scope | dict[str, Symbol]
STATEMENTS = (ast.VariableDeclaration, ast.Assignment, ast.If, ast.Loop, ast.Return)


class Builder:
    """Visits syntax trees with the names that they know, and adds the names that they declare."""

    def __init__(self, index: NameIndex, noted: Noted):
        self.index, self.noted = index, noted
        self.region = Span(index.source, 0, len(index.source.text))  # the function or class that is visited
        self.bound: dict[str, Symbol] = {}  # the undeclared names of the current full expression: bound variables

    def declare(self, item: ast.AstNode, owner: str = "") -> None:
        """Declares the names that the whole program knows: functions, types, constants, and the members of classes."""
        known = self.index.known
        if isinstance(item, ast.FunctionDeclaration):
            symbol = known.get(owner + item.name)
            if symbol is None or symbol not in self.index.at.values():  # new, or a built-in symbol, which it hides
                symbol = Symbol(item.name, "method" if owner else "function")
            symbol.text += "\n" * bool(symbol.text) + item.span.text
            self.add(known, owner + item.name, item.name_span, symbol, item.full_span)
        elif isinstance(item, ast.VariableDeclaration | ast.ClassDeclaration | ast.TypeAlias):
            as_type = Symbol(item.name, "class", item.span.excerpt)
            symbol = variable(item) if isinstance(item, ast.VariableDeclaration) else as_type
            self.add(known, item.name, item.name_span, symbol, item.span)
        if isinstance(item, ast.ClassDeclaration):
            for name, type_, span in item.fields:
                self.add(known, f"{item.name}.{name}", span, Symbol(name, "field", f"{name}: {type_.span.text}"), span)
            for method in item.methods:
                self.declare(method, "" if method.name.startswith("operator") else f"{item.name}.")

    def add(self, names: Names, key: str, span: Span, symbol: Symbol, region: Span | None = None) -> None:
        """Adds a symbol to the names, declared at a span."""
        names[key] = self.index.at[span] = symbol
        self.index.declared[span] = region or self.region

    def add_bound(self, scope: Scope, name: str, span: Span) -> None:
        """Adds a bound variable; it is the one of a restriction of its name, if there is one."""
        outer = scope.get(name)
        if outer is not None and outer.restricts:
            self.index.at[span] = outer
        else:
            self.add(scope, name, span, Symbol(name, "variable"))

    def use(self, name: str, span: Span, scope: Scope) -> None:
        """A name in the text; one that is declared nowhere is a bound variable, declared by its first use."""
        if span.text != name or name == "this":  # the tree has names that the text has not
            return
        if name not in scope and name not in self.bound:
            self.add(self.bound, name, span, Symbol(name, "variable"))
        self.index.at.setdefault(span, scope.get(name) or self.bound[name])

    def visit_all(self, trees: Iterable[ast.AstNode], scope: Scope) -> None:
        """Visits trees in one scope."""
        for tree in trees:
            self.visit(tree, scope)

    def visit(self, tree: ast.AstNode, outer: Scope) -> None:
        """Visits a tree, and then declares its name in the scope around it; of a call the restrictions come first."""
        scope, is_call = outer.new_child(), isinstance(tree, ast.Call | ast.Unary)
        # A stable sort by a bool: restrictions of a call (False) come first.
        parts = sorted(ast.children(tree), key=lambda part: is_call and not isinstance(part, ast.Restriction))
        if isinstance(tree, STATEMENTS):
            self.bound = {}
        match tree:  # before the parts of the tree
            case ast.Name() | ast.NamedType():
                self.use(tree.name, tree.span, scope)
            case ast.Assignment():
                self.use(tree.name, tree.name_span, scope)
            case ast.Call(callee=ast.Name(name="grad" | "value_and_grad")):
                del parts[2:]  # callee and function stay; the other arguments are names of parameters
            case ast.LetIn():
                self.visit(parts.pop(0), outer)
                self.add(scope, tree.name, tree.name_span, Symbol(tree.name, "variable"))
            case ast.If():
                for branch in ([parts.pop(0)], tree.if_true, tree.if_false):
                    self.visit_all(branch, outer.new_child())
                return
            case ast.FunctionDeclaration():
                self.enter_function(tree, scope)
            case ast.ClassDeclaration():
                self.visit_class(tree, parts, scope)
                return
        self.visit_all(parts, scope)
        match tree:  # after its parts, which do not know the names that it declares
            case ast.MemberAccess():
                key = f"{data_type(self.noted.get(tree.subject.span))}.{tree.name}"
                text = f"{tree.name}: {describe(self.noted[tree.span])}" if tree.span in self.noted else ""
                self.index.at[tree.name_span] = self.index.known.get(key) or Symbol(tree.name, "field", text)
            case ast.Restriction():
                for name, span in tree.names:
                    self.add_bound(outer, name, span)
                    self.index.at[span].restricts = True
            case ast.BoundParameter():
                self.add_bound(outer, tree.name, tree.name_span)
            case ast.Parameter() | ast.VariableDeclaration():
                if tree.name.isidentifier() and tree.name_span not in self.index.declared:
                    self.add(outer, tree.name, tree.name_span, variable(tree))

    def enter_function(self, tree: ast.FunctionDeclaration, scope: Scope) -> None:
        """Begins the region of a function, and declares its type parameters, which stand behind its name."""
        self.region, source = tree.full_span, self.index.source
        words = WORD.finditer(source.text, tree.name_span.end)  # more words than type parameters
        for name, word in zip(tree.type_parameters, words, strict=False):
            self.add(scope, name, Span(source, *word.span()), Symbol(name, "class", f"{name}: a type parameter"))

    def visit_class(self, tree: ast.ClassDeclaration, parts: list[ast.AstNode], scope: Scope) -> None:
        """A class, whose methods know its members by their names, unless they declare such a name."""
        self.region, self.bound = tree.span, {}
        members = {s.name: s for key, s in self.index.known.items() if key == f"{tree.name}.{s.name}"}
        self.visit_all((type_ for _, type_, _ in tree.fields), scope)
        for part in parts:
            hidden = declared_names(part) if isinstance(part, ast.FunctionDeclaration) else ()
            self.visit(part, scope.new_child({name: s for name, s in members.items() if name not in hidden}))


def variable(tree: ast.Parameter | ast.VariableDeclaration) -> Symbol:
    """The symbol of a variable, with its type if that is written."""
    if isinstance(tree, ast.Parameter):
        return Symbol(tree.name, "variable", f"{tree.name}: {tree.type.span.text}")
    sizes = f"[{', '.join(size.span.text for size in tree.sizes)}]" if tree.sizes else ""
    text = f"{tree.name}: {tree.type.span.text}{sizes}" if tree.type is not None and tree.parameters is None else ""
    return Symbol(tree.name, "variable", text, restricts=tree.value is None and not tree.sizes)
