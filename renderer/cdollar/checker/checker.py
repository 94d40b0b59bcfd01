"""The checker of C$: trees to DAG nodes, with the bound variables of whole expressions and their ranges."""

from __future__ import annotations

from difflib import get_close_matches

from renderer.cdollar.checker.builtins import CONSTANTS, FUNCTIONS, Builtins
from renderer.cdollar.checker.calls import Calls
from renderer.cdollar.checker.domain_inference import Inference
from renderer.cdollar.checker.expressions import Expressions
from renderer.cdollar.checker.overload_resolution import Overloads
from renderer.cdollar.checker.reductions import Reductions
from renderer.cdollar.checker.values import (
    DataValue,
    DomainValue,
    FunctionValue,
    InferenceContext,
    NodeBuilder,
    NotDeviceCode,
    OverloadSet,
    Scope,
    UserFunction,
    Value,
    Variable,
    is_closed,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.ast import children, walk
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.dag import INFINITE, NOT_INFERRED, BoundVariable, Range
from renderer.cdollar.ir.operations import OPERATIONS, REDUCER_NAMES
from renderer.cdollar.ir.types import FLOAT, INT, FunctionType, Scalar, Type, component_types, is_data


class Checker(Expressions, Calls, Overloads, Reductions, Builtins):
    """Checks and builds the expressions of one function's body; `compilation` is the whole program."""

    def __init__(self, compilation, scope: Scope, scalar: bool = False):
        self.compilation, self.scope, self.scalar = compilation, scope, scalar
        self.dag, self.guarded = compilation.dag, 0
        self.arithmetic = NodeBuilder(compilation.dag)
        self.defining = ""  # the function whose head is being checked

    # Whole expressions and their bound variables

    def root(self, tree: ast.AstNode, expected: Type | None = None) -> Value:
        """The value of an expression that stands alone: its bound variables are all reduced inside of it."""
        return self.with_frame(tree, [], lambda: self.eval(tree, expected))

    def with_frame(self, tree: ast.AstNode, head: list[str], work):
        frame = InferenceContext()
        outer = self.compilation.inference_stack[-1] if self.compilation.inference_stack else None
        self.compilation.inference_stack.append(frame)
        try:
            self.find_owners(tree, frame, head)
            found = work()
        finally:
            self.compilation.inference_stack.pop()
        self.solve(frame, outer)
        return found

    def solve(self, frame: InferenceContext, outer: InferenceContext | None) -> None:
        inference = Inference(frame.variables, frame.uses, frame.explicit)
        inference.run()
        self.compilation.inference_log += inference.rounds
        own = set(frame.variables)
        if outer is not None:
            outer.uses += [
                use for use, form in inference.forms if form is None or any(v not in own for v, _ in form.terms)
            ]
        for variable in frame.variables:
            if variable.range is not NOT_INFERRED:
                continue
            if outer is not None and self.waits(variable, inference, own):
                outer.variables.append(variable)
                outer.places[variable] = frame.places.get(variable)
            elif variable.reduced:
                self.no_range(variable, frame.places[variable])
            else:
                variable.range = INFINITE

    def waits(self, variable: BoundVariable, inference: Inference, own: set[BoundVariable]) -> bool:
        """Whether an unsolved variable hangs on one that an outer expression will solve."""
        for _, form in inference.forms:
            names = [v for v, _ in form.terms] if form else []
            if variable in names and any(v not in own and v.range is NOT_INFERRED for v in names):
                return True
        return False

    def no_range(self, variable: BoundVariable, place: Span):
        raise ProgramError(
            "CS0304", place, f"this reduces over `{variable.name}`, whose domain is infinite: nothing says its end",
            f"restrict it: `{variable.name} : 0..n`, or `{variable.name} : f` for the domain of a function f",
        )  # fmt: skip

    def find_owners(self, tree: ast.AstNode, frame: InferenceContext, head: list[str]) -> None:
        """Give each unknown name to the innermost reduction that holds all its occurrences."""
        places: dict[str, list[tuple[ast.Name, tuple, bool]]] = {}
        for name_tree, reducers, indexing in self.occurrences(tree, (), False, frozenset(head)):
            if self.lookup_kind(name_tree.name) is None:
                places.setdefault(name_tree.name, []).append((name_tree, reducers, indexing))
        for name, found in places.items():
            common = found[0][1]
            for _, reducers, _ in found[1:]:
                common = tuple(a for a, b in zip(common, reducers, strict=False) if a is b)
            if not any(indexing for _, _, indexing in found) and self.scope.restriction(name) is None:
                self.unknown_name(found[0][0])
            if not common:
                self.free_variable(found[0][0])
            frame.owners.setdefault(id(common[-1]), []).append(name)

    def free_variable(self, tree: ast.Name):
        raise ProgramError(
            "CS0302", tree.span, f"the bound variable `{tree.name}` is neither declared on the left nor reduced",
            f"`var c({tree.name}) = ...` keeps it, `+ (...)` around all its uses reduces it",
        )  # fmt: skip

    def unknown_name(self, tree: ast.Name):
        if tree.name == self.defining:
            raise ProgramError(
                "CS0216", tree.span, f"`{tree.name}` is defined by itself, which no point can be computed from",
                "sum to each point, `var s(i : a) = sum(k <= i ? a(k) : 0, k : a)`, or `fold` for the last alone",
            )  # fmt: skip
        names = (
            self.scope.all_names()
            | set(self.compilation.globals.names)
            | set(self.compilation.overloads)
            | set(FUNCTIONS)
            | set(CONSTANTS)
        )
        close = get_close_matches(tree.name, sorted(names), 1)
        hint = f"did you mean `{close[0]}`?" if close else "declare it before its use"
        raise ProgramError("CS0202", tree.span, f"the name `{tree.name}` is not known here", hint)

    def lookup_kind(self, name: str) -> str | None:
        if self.scope.find(name) or self.compilation.globals.find(name):
            return "variable"
        if name in self.compilation.overloads or name in FUNCTIONS:
            return "function"
        return "constant" if name in CONSTANTS else None

    def occurrences(self, tree: ast.AstNode, reducers: tuple, indexing: bool, hidden: frozenset):
        """Names used in a tree, the reductions around each, and whether it stands in an index."""
        if isinstance(tree, ast.Name):
            if tree.name not in hidden:
                yield tree, reducers, indexing
            return
        if isinstance(tree, ast.Lambda):
            yield from self.occurrences(tree.body, reducers, indexing, hidden | {v.name for v in tree.head})
            return
        if isinstance(tree, ast.LetIn):
            yield from self.occurrences(tree.value, reducers, indexing, hidden)
            yield from self.occurrences(tree.body, reducers, indexing, hidden | {tree.name})
            return
        inside = reducers
        if self.may_reduce(tree):
            inside = (*reducers, tree)
            hidden = hidden | {
                name for r in tree.restrictions if self.scope.find(r.names[0][0]) is None for name, _ in r.names
            }
            for restriction in tree.restrictions:
                if restriction.domain is not None:
                    yield from self.occurrences(restriction.domain, reducers, indexing, hidden)
        if isinstance(tree, ast.Call):
            callee = tree.callee
            if isinstance(callee, ast.Name):
                if self.lookup_kind(callee.name) is None and callee.name not in hidden:
                    self.unknown_name(callee)
            else:
                yield from self.occurrences(callee, inside, indexing, hidden)
            is_index = self.indexes(callee)
            for argument in tree.arguments:
                yield from self.occurrences(argument, inside, is_index or indexing, hidden)
            return
        for child in children(tree):
            if not isinstance(child, (ast.Restriction, ast.NamedType, ast.FunctionalType)):
                yield from self.occurrences(child, inside, indexing, hidden)

    def indexes(self, callee: ast.AstNode) -> bool:
        """Whether calling this is indexing a function, so that new names in it are bound variables."""
        if not isinstance(callee, ast.Name):
            return True
        variable = self.scope.find(callee.name) or self.compilation.globals.find(callee.name)
        if variable is not None:
            return isinstance(variable.value, FunctionValue)
        return callee.name in self.compilation.overloads

    def may_reduce(self, tree: ast.AstNode) -> bool:
        if isinstance(tree, ast.Unary):
            return tree.operator in "+*"
        if not isinstance(tree, ast.Call) or not isinstance(tree.callee, ast.Name):
            return False
        name = tree.callee.name
        if self.scope.find(name):
            return False
        if name == "fold":
            return True
        if name in self.compilation.overloads:
            return len(tree.arguments) == 1 and any(self.joins(f) for f in self.compilation.overloads[name])
        return name in REDUCER_NAMES and len(tree.arguments) == 1

    def joins(self, function: UserFunction) -> bool:
        """Whether a user's function is T(T, T)."""
        return (
            len(function.parameter_types) == 2
            and function.parameter_types[0] == function.parameter_types[1] == function.result_type
            and is_data(function.result_type)
        )

    def new_variable(
        self, name: str, span: Span, reduced: bool, written: Type | None, domain: ast.AstNode | None
    ) -> BoundVariable:
        """A bound variable in the current scope and frame, restricted by its declaration or by a statement."""
        statement = self.scope.restriction(name)
        if statement is not None:
            written = written or statement.type
        if written is None:
            written = INT
        if not isinstance(written, Scalar) or written.name == "bool":
            raise ProgramError(
                "CS0305", span, f"a bound variable cannot be {written}", "allowed: int, uint, float, double"
            )
        range_, explicit = NOT_INFERRED, None
        if domain is not None:
            range_, explicit = self.range_of(domain), domain.span
        elif statement is not None and statement.range is not None:
            range_, explicit = statement.range, statement.span
        if written.name in ("float", "double"):
            if explicit is not None:
                raise ProgramError("CS0305", explicit, f"`{name}` is {written}: only int and uint have a range")
            range_ = INFINITE
        variable = BoundVariable(name, written.name, range_, reduced)
        frame = self.compilation.inference_stack[-1]
        frame.variables.append(variable)
        frame.places[variable] = span
        if explicit is not None:
            frame.explicit[variable] = explicit
        node = self.dag.bound_variable(variable)
        self.scope.names[name] = Variable(DataValue(written, (node,)), None, "a bound variable")
        return variable

    def head_function(
        self, head: list[ast.BoundParameter], body: ast.AstNode, expected: Type | None = None
    ) -> FunctionValue:
        """`var c(j, k) = body`: a function of the head's variables, its domain inferred."""
        if self.scalar:
            raise NotDeviceCode
        outer, self.scope = self.scope, Scope(self.scope)
        found: dict = {}

        def work():
            variables = []
            for position, variable in enumerate(head):
                written = self.compilation.type_of(variable.type) if variable.type is not None else None
                if written is None and isinstance(expected, FunctionType) and position < len(expected.parameters):
                    written = expected.parameters[position]
                if written is None:
                    written = self.first_use(variable.name, body)
                variables.append(self.new_variable(variable.name, variable.span, False, written, variable.domain))
            value = self.settled(self.eval(body), body.span)
            rest: list[BoundVariable] = []
            if isinstance(value, FunctionValue):
                rest, value = self.opened(value, body.span)
            found["variables"], found["value"], found["rest"] = variables, value, rest

        try:
            self.with_frame(body, [v.name for v in head], work)
        finally:
            self.scope = outer
        return self.close(found["variables"] + found["rest"], found["value"])

    def first_use(self, name: str, tree: ast.AstNode) -> Type | None:
        """The type of the parameter that a new variable first fills."""
        for call in walk(tree):
            if not isinstance(call, ast.Call) or not isinstance(call.callee, ast.Name):
                continue
            for position, argument in enumerate(call.arguments):
                if isinstance(argument, ast.Name) and argument.name == name:
                    found = self.parameter_type(call.callee.name, position)
                    if isinstance(found, Scalar):
                        return found
        return None

    def parameter_type(self, name: str, position: int) -> Type | None:
        variable = self.scope.find(name) or self.compilation.globals.find(name)
        if variable is not None:
            types = variable.value.type.parameters if isinstance(variable.value, FunctionValue) else ()
        elif name in self.compilation.overloads:
            types = self.compilation.overloads[name][0].parameter_types
        else:
            operation = OPERATIONS.get(name)
            types = (FLOAT,) * 2 if operation and operation.parameters[0] == "r" else ()
        return types[position] if position < len(types) else None

    def close(self, variables: list[BoundVariable], value: DataValue) -> FunctionValue:
        """The function of some bound variables that yields a value."""
        type_ = FunctionType(value.type, tuple(Scalar(v.type) for v in variables))
        node = self.dag.function(tuple(variables), value.nodes, type_)
        return FunctionValue(type_, node)

    def opened(self, function: FunctionValue, span: Span) -> tuple[list[BoundVariable], DataValue]:
        """A function applied to new variables that run over its domain."""
        variables = []
        ranges = iter(self.flat_domain(function))
        arguments = []
        for type_ in function.type.parameters:
            parts = []
            for base in component_types(type_):
                range_ = next(ranges)
                variable = BoundVariable("ijkmnp"[len(variables) % 6], base, range_)
                variables.append(variable)
                parts.append(self.dag.bound_variable(variable))
            arguments.append(DataValue(type_, tuple(parts)))
        return variables, self.access(function, arguments, span)

    def flat_domain(self, function: FunctionValue) -> tuple:
        if function.borders is not None and any(function.borders):
            return tuple(INFINITE if b else r for b, r in zip(function.borders, function.domain, strict=True))
        return function.domain

    # Numbers the host must know

    def host_int(self, tree: ast.AstNode) -> int | None:
        """An int that is known before anything is evaluated; None while a function is checked alone."""
        value = self.settled(self.eval(tree), tree.span)
        if not isinstance(value, DataValue) or value.type not in (INT, Scalar("uint")):
            shown = value.type
            raise ProgramError("CS0314", tree.span, f"an end of a range is int, but {tree.span.short} is {shown}")
        if not is_closed(value) or self.scalar:
            if self.scalar:
                raise NotDeviceCode
            names = ", ".join(sorted(v.name for v in value.node.free_variables))
            raise ProgramError(
                "CS0315",
                tree.span,
                f"the end of a range cannot depend on `{names}`: domains are boxes",
                "take the largest box and choose: `i <= j ? a(i) : 0`",
            )
        number = self.compilation.host_number(value)
        return None if number is None else int(number)

    def range_of(self, tree: ast.AstNode):
        return self.ranges_of(tree, 1)[0]

    def ranges_of(self, tree: ast.AstNode, rank: int) -> tuple:
        """The ranges that a restriction's right side gives: an interval, a domain or a function."""
        value = self.eval(tree)
        if isinstance(value, OverloadSet):
            value = self.settled(value, tree.span)
        if isinstance(value, FunctionValue):
            value = DomainValue(value.domain)
        if not isinstance(value, DomainValue):
            raise ProgramError(
                "CS0314",
                tree.span,
                f"a restriction needs a range or a function, but {tree.span.short} is {value.type}",
                "`0..n`, `f` or `domain(f)[0]`",
            )
        if len(value.ranges) != rank:
            raise ProgramError(
                "CS0314",
                tree.span,
                f"{tree.span.short} has {len(value.ranges)} dimensions, but restricts {rank}",
                "`(i, j) : f`, or `i : domain(f)[0]`",
            )
        where = f"{tree.span.short} at {tree.span.at}"
        found = []
        for range_ in value.ranges:
            if range_ is INFINITE:
                raise ProgramError(
                    "CS0314", tree.span, f"{tree.span.short} has an infinite domain: it restricts nothing"
                )
            found.append(
                Range(range_.low, range_.high, range_.narrowed, where) if isinstance(range_, Range) else range_
            )
        return tuple(found)
