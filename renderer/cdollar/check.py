"""Expressions of C$ to DAG nodes: bound variables, and overloads in the paper's order.

That order is: ordinary, user-defined, reduction, currying, promotion.
"""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from difflib import get_close_matches

from renderer.cdollar import syntax
from renderer.cdollar.builtins import CONSTANTS, FUNCTIONS, Builtins
from renderer.cdollar.dag import (
    INFINITE,
    UNKNOWN,
    UNSOLVED,
    Argument,
    Bound,
    Literal,
    Node,
    Range,
    Reduction,
    one_or_tuple,
    substitute,
)
from renderer.cdollar.domains import Inference, Use, affine, intersect
from renderer.cdollar.operations import OPERATIONS, REDUCER_NAMES, REDUCERS
from renderer.cdollar.report import ProgramError, Span
from renderer.cdollar.types import (
    BOOL,
    FLOAT,
    INT,
    Functional,
    Record,
    Scalar,
    Type,
    Vector,
    base_of,
    components,
    fields,
    is_data,
    widening,
)
from renderer.cdollar.values import (
    Arithmetic,
    BlankValue,
    DataValue,
    DomainValue,
    FamilyValue,
    Frame,
    FunctionValue,
    Scope,
    UserFunction,
    Value,
    Variable,
    is_host,
)

SWIZZLES = ("xyzw", "rgba")


class NotScalar(Exception):
    """A body that was tried as a scalar function builds functions."""


class Checker(Builtins):
    """Checks and builds the expressions of one function's body; `unit` is the whole program."""

    def __init__(self, unit, scope: Scope, scalar: bool = False):
        self.unit, self.scope, self.scalar = unit, scope, scalar
        self.dag, self.guarded = unit.dag, 0
        self.arithmetic = Arithmetic(unit.dag)
        self.defining = ""  # the function whose head is being checked

    # Whole expressions and their bound variables

    def root(self, tree: syntax.Tree, expected: Type | None = None) -> Value:
        """The value of an expression that stands alone: its bound variables are all reduced inside of it."""
        return self.with_frame(tree, [], lambda: self.eval(tree, expected))

    def with_frame(self, tree: syntax.Tree, head: list[str], work):
        frame = Frame()
        outer = self.unit.frames[-1] if self.unit.frames else None
        self.unit.frames.append(frame)
        try:
            self.find_owners(tree, frame, head)
            found = work()
        finally:
            self.unit.frames.pop()
        self.solve(frame, outer)
        return found

    def solve(self, frame: Frame, outer: Frame | None) -> None:
        inference = Inference(frame.variables, frame.uses, frame.explicit)
        inference.run()
        self.unit.rounds += inference.rounds
        own = set(frame.variables)
        if outer is not None:
            outer.uses += [
                use for use, form in inference.forms if form is None or any(v not in own for v, _ in form.terms)
            ]
        for variable in frame.variables:
            if variable.range is not UNSOLVED:
                continue
            if outer is not None and self.waits(variable, inference, own):
                outer.variables.append(variable)
                outer.places[variable] = frame.places.get(variable)
            elif variable.reduced:
                self.no_range(variable, frame.places[variable])
            else:
                variable.range = INFINITE

    def waits(self, variable: Bound, inference: Inference, own: set[Bound]) -> bool:
        """Whether an unsolved variable hangs on one that an outer expression will solve."""
        for _, form in inference.forms:
            names = [v for v, _ in form.terms] if form else []
            if variable in names and any(v not in own and v.range is UNSOLVED for v in names):
                return True
        return False

    def no_range(self, variable: Bound, place: Span):
        raise ProgramError(
            "CS0304", place, f"this reduces over `{variable.name}`, whose domain is infinite: nothing says its end",
            f"restrict it: `{variable.name} : 0..n`, or `{variable.name} : f` for the domain of a function f",
        )  # fmt: skip

    def find_owners(self, tree: syntax.Tree, frame: Frame, head: list[str]) -> None:
        """Give each unknown name to the innermost reduction that holds all its occurrences."""
        places: dict[str, list[tuple[syntax.Name, tuple, bool]]] = {}
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

    def free_variable(self, tree: syntax.Name):
        raise ProgramError(
            "CS0302", tree.span, f"the bound variable `{tree.name}` is neither declared on the left nor reduced",
            f"`var c({tree.name}) = ...` keeps it, `+ (...)` around all its uses reduces it",
        )  # fmt: skip

    def unknown_name(self, tree: syntax.Name):
        if tree.name == self.defining:
            raise ProgramError(
                "CS0216", tree.span, f"`{tree.name}` is defined by itself, which no point can be computed from",
                "sum to each point, `var s(i : a) = sum(k <= i ? a(k) : 0, k : a)`, or `fold` for the last alone",
            )  # fmt: skip
        names = (
            self.scope.all_names()
            | set(self.unit.globals.names)
            | set(self.unit.families)
            | set(FUNCTIONS)
            | set(CONSTANTS)
        )
        close = get_close_matches(tree.name, sorted(names), 1)
        hint = f"did you mean `{close[0]}`?" if close else "declare it before its use"
        raise ProgramError("CS0202", tree.span, f"the name `{tree.name}` is not known here", hint)

    def lookup_kind(self, name: str) -> str | None:
        if self.scope.find(name) or self.unit.globals.find(name):
            return "variable"
        if name in self.unit.families or name in FUNCTIONS:
            return "function"
        return "constant" if name in CONSTANTS else None

    def occurrences(self, tree: syntax.Tree, reducers: tuple, indexing: bool, hidden: frozenset):
        """Names used in a tree, the reductions around each, and whether it stands in an index."""
        if isinstance(tree, syntax.Name):
            if tree.name not in hidden:
                yield tree, reducers, indexing
            return
        if isinstance(tree, syntax.Lambda):
            yield from self.occurrences(tree.body, reducers, indexing, hidden | {v.name for v in tree.head})
            return
        if isinstance(tree, syntax.LetIn):
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
        if isinstance(tree, syntax.Call):
            callee = tree.callee
            if isinstance(callee, syntax.Name):
                if self.lookup_kind(callee.name) is None and callee.name not in hidden:
                    self.unknown_name(callee)
            else:
                yield from self.occurrences(callee, inside, indexing, hidden)
            is_index = self.indexes(callee)
            for argument in tree.arguments:
                yield from self.occurrences(argument, inside, is_index or indexing, hidden)
            return
        for child in children(tree):
            if not isinstance(child, (syntax.Restriction, syntax.NamedType, syntax.FunctionalType)):
                yield from self.occurrences(child, inside, indexing, hidden)

    def indexes(self, callee: syntax.Tree) -> bool:
        """Whether calling this is indexing a function, so that new names in it are bound variables."""
        if not isinstance(callee, syntax.Name):
            return True
        variable = self.scope.find(callee.name) or self.unit.globals.find(callee.name)
        if variable is not None:
            return isinstance(variable.value, FunctionValue)
        return callee.name in self.unit.families

    def may_reduce(self, tree: syntax.Tree) -> bool:
        if isinstance(tree, syntax.Unary):
            return tree.operator in "+*"
        if not isinstance(tree, syntax.Call) or not isinstance(tree.callee, syntax.Name):
            return False
        name = tree.callee.name
        if self.scope.find(name):
            return False
        if name == "fold":
            return True
        if name in self.unit.families:
            return len(tree.arguments) == 1 and any(self.joins(f) for f in self.unit.families[name])
        return name in REDUCER_NAMES and len(tree.arguments) == 1

    def joins(self, function: UserFunction) -> bool:
        """Whether a user's function is T(T, T)."""
        return (
            len(function.types) == 2
            and function.types[0] == function.types[1] == function.result
            and is_data(function.result)
        )

    def new_variable(
        self, name: str, span: Span, reduced: bool, written: Type | None, domain: syntax.Tree | None
    ) -> Bound:
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
        range_, explicit = UNSOLVED, None
        if domain is not None:
            range_, explicit = self.range_of(domain), domain.span
        elif statement is not None and statement.range is not None:
            range_, explicit = statement.range, statement.span
        if written.name in ("float", "double"):
            if explicit is not None:
                raise ProgramError("CS0305", explicit, f"`{name}` is {written}: only int and uint have a range")
            range_ = INFINITE
        variable = Bound(name, written.name, range_, reduced)
        frame = self.unit.frames[-1]
        frame.variables.append(variable)
        frame.places[variable] = span
        if explicit is not None:
            frame.explicit[variable] = explicit
        node = self.dag.bound(variable)
        self.scope.names[name] = Variable(DataValue(written, (node,)), None, "a bound variable")
        return variable

    def head_function(
        self, head: list[syntax.HeadVariable], body: syntax.Tree, expected: Type | None = None
    ) -> FunctionValue:
        """`var c(j, k) = body`: a function of the head's variables, its domain inferred."""
        if self.scalar:
            raise NotScalar
        outer, self.scope = self.scope, Scope(self.scope)
        found: dict = {}

        def work():
            variables = []
            for position, variable in enumerate(head):
                written = self.unit.type_of(variable.type) if variable.type is not None else None
                if written is None and isinstance(expected, Functional) and position < len(expected.parameters):
                    written = expected.parameters[position]
                if written is None:
                    written = self.first_use(variable.name, body)
                variables.append(self.new_variable(variable.name, variable.span, False, written, variable.domain))
            value = self.settled(self.eval(body), body.span)
            rest: list[Bound] = []
            if isinstance(value, FunctionValue):
                rest, value = self.opened(value, body.span)
            found["variables"], found["value"], found["rest"] = variables, value, rest

        try:
            self.with_frame(body, [v.name for v in head], work)
        finally:
            self.scope = outer
        return self.close(found["variables"] + found["rest"], found["value"])

    def first_use(self, name: str, tree: syntax.Tree) -> Type | None:
        """The type of the parameter that a new variable first fills."""
        for call in walk(tree):
            if not isinstance(call, syntax.Call) or not isinstance(call.callee, syntax.Name):
                continue
            for position, argument in enumerate(call.arguments):
                if isinstance(argument, syntax.Name) and argument.name == name:
                    found = self.parameter_type(call.callee.name, position)
                    if isinstance(found, Scalar):
                        return found
        return None

    def parameter_type(self, name: str, position: int) -> Type | None:
        variable = self.scope.find(name) or self.unit.globals.find(name)
        if variable is not None:
            types = variable.value.type.parameters if isinstance(variable.value, FunctionValue) else ()
        elif name in self.unit.families:
            types = self.unit.families[name][0].types
        else:
            operation = OPERATIONS.get(name)
            types = (FLOAT,) * 2 if operation and operation.parameters[0] == "r" else ()
        return types[position] if position < len(types) else None

    def close(self, variables: list[Bound], value: DataValue) -> FunctionValue:
        """The function of some bound variables that yields a value."""
        type_ = Functional(value.type, tuple(Scalar(v.type) for v in variables))
        node = self.dag.function(tuple(variables), value.nodes, type_)
        return FunctionValue(type_, node)

    def opened(self, function: FunctionValue, span: Span) -> tuple[list[Bound], DataValue]:
        """A function applied to new variables that run over its domain."""
        variables = []
        ranges = iter(self.flat_domain(function))
        arguments = []
        for type_ in function.type.parameters:
            parts = []
            for base in components(type_):
                range_ = next(ranges)
                variable = Bound("ijkmnp"[len(variables) % 6], base, range_)
                variables.append(variable)
                parts.append(self.dag.bound(variable))
            arguments.append(DataValue(type_, tuple(parts)))
        return variables, self.access(function, arguments, span)

    def flat_domain(self, function: FunctionValue) -> tuple:
        if function.borders is not None and any(function.borders):
            return tuple(INFINITE if b else r for b, r in zip(function.borders, function.domain, strict=True))
        return function.domain

    # Dispatch

    def eval(self, tree: syntax.Tree, expected: Type | None = None) -> Value:
        if isinstance(tree, syntax.Lambda):
            return self.eval_lambda(tree, expected)
        return getattr(self, "eval_" + type(tree).__name__)(tree)

    def eval_data(self, tree: syntax.Tree) -> Value:
        """Data or a function, families settled."""
        return self.settled(self.eval(tree), tree.span)

    def eval_Literal(self, tree: syntax.Literal) -> Value:
        if tree.kind == "text":
            raise ProgramError("CS0203", tree.span, "text has no meaning here", 'text names a file: file("big.npy")')
        if tree.kind == "int" and tree.value >= 2**31:
            raise ProgramError(
                "CS0114", tree.span, f"{tree.value} is too large for int", "write it as uint: 4000000000u"
            )
        flexible = tree.kind == "real"
        return self.arithmetic.number(tree.value, "float" if flexible else tree.kind, flexible)

    def eval_Name(self, tree: syntax.Name) -> Value:
        variable = self.scope.find(tree.name) or self.unit.globals.find(tree.name)
        if variable is not None:
            if variable.value is None:
                raise ProgramError("CS0204", tree.span, f"`{tree.name}` is used before it has a value")
            if self.scalar and not isinstance(variable.value, DataValue):
                raise NotScalar
            return variable.value
        if tree.name in self.unit.families or tree.name in FUNCTIONS:
            return FamilyValue(tree.name)
        if tree.name in CONSTANTS:
            return self.arithmetic.number(CONSTANTS[tree.name], "float", True)
        return self.unknown_name(tree)

    def eval_Blank(self, tree: syntax.Blank) -> Value:
        raise ProgramError("CS0205", tree.span, "an argument is missing here")

    def eval_Interval(self, tree: syntax.Interval) -> Value:
        low, high = self.host_int(tree.low), self.host_int(tree.high)
        if low is None or high is None:
            return DomainValue((UNKNOWN,))
        return DomainValue((Range(low, max(low, high), False, f"{tree.span.short} at {tree.span.at}"),))

    def eval_LetIn(self, tree: syntax.LetIn) -> Value:
        value = self.eval_data(tree.value)
        self.scope = Scope(self.scope)
        self.scope.names[tree.name] = Variable(self.shared(value, tree.value.span), None, "shared by `let`")
        try:
            return self.eval(tree.body)
        finally:
            self.scope = self.scope.parent

    def eval_Lambda(self, tree: syntax.Tree) -> Value:
        return self.eval_lambda(tree, None)

    def eval_lambda(self, tree: syntax.Lambda, expected: Type | None) -> Value:
        if isinstance(expected, Functional) and len(expected.parameters) != len(tree.head):
            raise ProgramError(
                "CS0402",
                tree.span,
                f"{expected} takes {len(expected.parameters)} parameters, this function {len(tree.head)}",
            )
        return self.head_function(tree.head, tree.body, expected)

    def shared(self, value: Value, span: Span) -> Value:
        """Evaluated once: the paper's let node."""
        if isinstance(value, FunctionValue):
            return self.evaluated(value, span)
        if isinstance(value, DataValue) and not self.scalar:
            nodes = tuple(self.dag.make("let", n.type, (n,)) if n.op in ("apply", "reduce") else n for n in value.nodes)
            return DataValue(value.type, nodes)
        return value

    def evaluated(self, value: FunctionValue, span: Span) -> FunctionValue:
        """The cast to an array type: a function that is computed once, at every point of its domain."""
        domain = self.flat_domain(value)
        if any(range_ is INFINITE for range_ in domain):
            position = [range_ is INFINITE for range_ in domain].index(True)
            raise ProgramError(
                "CS0306", span, f"{span.short} cannot become an array: its {ordinal(position)} dimension is infinite",
                "restrict it: `var f(i : 0..n) = ...`",
            )  # fmt: skip
        array = Functional(value.type.result, value.type.parameters, True)
        if value.node.op == "function" and isinstance(value.node.value, tuple):
            if any(r is UNSOLVED for r in domain):
                raise ProgramError(
                    "CS0307", span, f"the domain of {span.short} is not known yet here", "restrict its variables"
                )
            node = self.dag.make("let", array, (value.node,))
            return FunctionValue(array, node, domain)
        return FunctionValue(array, value.node, value.own_domain, value.borders)

    def settled(self, value: Value, span: Span) -> Value:
        """Data or a function; a family of overloads becomes its only or its float member."""
        if isinstance(value, FamilyValue):
            return self.family_as_function(value, None, span)
        if isinstance(value, DomainValue):
            raise ProgramError(
                "CS0203", span, "a domain has no meaning here", "a domain restricts a bound variable: `i : 0..n`"
            )
        return value

    # Operators

    def eval_Unary(self, tree: syntax.Unary) -> Value:
        if tree.operator in "+*":
            variables, value = self.reduced_body(tree, tree.operand)
            if variables:
                return self.join(tree.operator, variables, value, tree)
            return self.unary(tree, value)
        if (
            tree.operator == "-"
            and isinstance(tree.operand, syntax.Literal)
            and tree.operand.kind == "int"
            and tree.operand.value == 2**31
        ):
            return self.arithmetic.number(-(2**31), "int")
        value = self.eval_data(tree.operand)
        return self.promoted([value], lambda v: self.unary(tree, v[0]), tree.span)

    def unary(self, tree: syntax.Unary, value: DataValue) -> DataValue:
        found = self.arithmetic.unary(tree.operator, value) if tree.operator != "*" else None
        if found is None:
            found = self.user_operator(tree.operator, [value], tree.span)
        if found is None:
            if tree.operator == "*":
                raise ProgramError(
                    "CS0308",
                    tree.span,
                    "`*` before a value reduces by products, but nothing here is reduced",
                    "there are no pointers",
                )
            raise ProgramError(
                "CS0403",
                tree.span,
                f"`{tree.operator}` is not defined for {value.type}",
                self.operator_hint(value.type),
            )
        return found

    def operator_hint(self, type_: Type) -> str:
        if type_ == BOOL:
            return "make it a number: `b ? 1 : 0`"
        return f"define it: `{type_} operator +({type_} a, {type_} b) {{ ... }}`" if isinstance(type_, Record) else ""

    def eval_Binary(self, tree: syntax.Binary) -> Value:
        operands = []
        part = tree
        # A chain a + b + c is a tree that is deep on its left side.
        chain = []
        while isinstance(part, syntax.Binary):
            chain.append(part)
            part = part.left
        value = self.eval_data(part)
        for part in reversed(chain):
            if part.operator in ("&&", "||"):
                self.guarded += 1
            try:
                operands = [value, self.eval_data(part.right)]
            finally:
                self.guarded -= part.operator in ("&&", "||")
            value = self.promoted(operands, lambda v, part=part: self.binary(part, v[0], v[1]), part.span)
        return value

    def binary(self, tree: syntax.Binary, a: DataValue, b: DataValue) -> DataValue:
        name = tree.operator
        if (
            name in ("/", "%")
            and b.is_literal
            and base_of(b.type) in ("int", "uint")
            and base_of(a.type) in ("int", "uint")
        ):
            if any(node.value.number == 0 for node in b.nodes):
                raise ProgramError("CS0404", tree.span, "this divides an integer by zero")
        found = self.arithmetic.binary(name, a, b)
        if found is None and a.type == b.type and isinstance(a.type, Record) and name in ("==", "!="):
            found = self.records_equal(name, a, b)
        if found is None:
            found = self.user_operator(name, [a, b], tree.span)
        if found is None:
            raise ProgramError(
                "CS0403", tree.span, self.no_operator(name, a.type, b.type), self.mixed_hint(a.type, b.type)
            )
        return found

    def records_equal(self, name: str, a: DataValue, b: DataValue) -> DataValue:
        pairs = zip(a.nodes, b.nodes, strict=True)
        nodes = tuple(self.arithmetic.operate(name, x.type, x, y) for x, y in pairs)
        return self.arithmetic.joined("&&" if name == "==" else "||", nodes)

    def no_operator(self, name: str, a: Type, b: Type) -> str:
        return f"`{name}` is not defined for {a} and {b}"

    def mixed_hint(self, a: Type, b: Type) -> str:
        if {base_of(a), base_of(b)} == {"int", "uint"}:
            return "cast one of them: `(int) x` or `(uint) x`"
        if BOOL in (a, b):
            return "make a bool a number: `b ? 1 : 0`"
        return self.operator_hint(a if isinstance(a, Record) else b)

    def user_operator(self, name: str, values: list[DataValue], span: Span) -> DataValue | None:
        family = self.unit.families.get("operator" + name)
        if not family:
            return None
        chosen = self.choose(family, values)
        return self.call_user(chosen, values, span) if chosen else None

    def eval_Choice(self, tree: syntax.Choice) -> Value:
        condition = self.eval_data(tree.condition)
        if isinstance(condition, DataValue) and condition.type != BOOL:
            raise ProgramError(
                "CS0405",
                tree.condition.span,
                f"a condition is bool, but this is {condition.type}",
                "compare it: `x != 0`",
            )
        self.guarded += 1
        try:
            yes, no = self.eval_data(tree.yes), self.eval_data(tree.no)
        finally:
            self.guarded -= 1
        if isinstance(condition, DataValue) and (isinstance(yes, FunctionValue) and isinstance(no, FunctionValue)):
            known = self.unit.host_number(condition) if is_host(condition) else None
            if known is not None and yes.type.plain == no.type.plain:
                return yes if known else no
        return self.promoted([condition, yes, no], lambda v: self.choose_value(tree, *v), tree.span)

    def choose_value(self, tree: syntax.Choice, condition: DataValue, yes: DataValue, no: DataValue) -> DataValue:
        if condition.type != BOOL:
            raise ProgramError(
                "CS0405",
                tree.condition.span,
                f"a condition is bool, but this is {condition.type}",
                "compare it: `x != 0`",
            )
        found = self.arithmetic.select(condition, yes, no)
        if found is None:
            raise ProgramError(
                "CS0406",
                tree.span,
                f"the two results are {yes.type} and {no.type}",
                "cast one to the type of the other",
            )
        return found

    def eval_Cast(self, tree: syntax.Cast) -> Value:
        target = self.unit.type_of(tree.type)
        value = self.eval(tree.operand, target)
        if isinstance(target, Functional):
            return self.convert(value, target, tree.operand.span, explicit=True)
        value = self.settled(value, tree.operand.span)
        return self.promoted([value], lambda v: self.cast(v[0], target, tree.span), tree.span)

    def cast(self, value: DataValue, target: Type, span: Span) -> DataValue:
        """An explicit conversion between numbers or vectors of numbers."""
        if value.type == target:
            return value
        source_base, target_base = base_of(value.type), base_of(target)
        same_shape = isinstance(value.type, Scalar) == isinstance(target, Scalar)
        if isinstance(target, Vector):
            if isinstance(value.type, Scalar) and source_base != "bool":
                one = self.cast(value, Scalar(target.base), span)
                return DataValue(target, one.nodes * target.size)
            same_shape = same_shape and value.type.size == target.size
        if (
            not same_shape
            or source_base is None
            or target_base is None
            or (source_base == "bool") != (target_base == "bool")
        ):
            hint = (
                "make a bool a number: `b ? 1 : 0`"
                if value.type == BOOL
                else ("compare it: `x != 0`" if target == BOOL else "")
            )
            raise ProgramError("CS0407", span, f"{value.type} cannot be cast to {target}", hint)
        return self.arithmetic.coerce(value, target_base)

    def eval_TypeCall(self, tree: syntax.TypeCall) -> Value:
        target = self.unit.type_of(tree.type)
        values = [self.eval_data(argument) for argument in tree.arguments]
        if isinstance(target, Functional):
            raise ProgramError("CS0203", tree.span, f"{target} is made by a cast", f"`({target}) f`")
        if not values:
            raise ProgramError("CS0205", tree.span, f"{target}(...) needs arguments")
        return self.promoted(values, lambda v: self.construct(target, v, tree), tree.span)

    def construct(self, target: Type, values: list[DataValue], tree: syntax.TypeCall) -> DataValue:
        if isinstance(target, Record):
            if len(values) != len(target.fields):
                wanted = ", ".join(f"{type_} {name}" for name, type_ in target.fields)
                raise ProgramError(
                    "CS0402",
                    tree.span,
                    f"{target} has {len(target.fields)} fields ({wanted}), but {len(values)} values are given",
                )
            parts = [
                self.convert(value, type_, argument.span)
                for value, (_, type_), argument in zip(values, target.fields, tree.arguments, strict=True)
            ]
            return DataValue(target, tuple(node for part in parts for node in part.nodes))
        if len(values) == 1 and (
            isinstance(target, Scalar) or not isinstance(values[0].type, Vector) or values[0].type.size == target.size
        ):
            return self.cast(values[0], target, tree.span)
        nodes: list[Node] = []
        for value, argument in zip(values, tree.arguments, strict=True):
            if base_of(value.type) in (None, "bool"):
                raise ProgramError("CS0407", argument.span, f"{value.type} cannot be part of {target}")
            nodes += self.arithmetic.coerce(value, base_of(target)).nodes
        size = target.size if isinstance(target, Vector) else 1
        if len(nodes) != size:
            raise ProgramError("CS0402", tree.span, f"{target} has {size} components, but {len(nodes)} are given")
        return DataValue(target, tuple(nodes))

    # Members

    def eval_Member(self, tree: syntax.Member) -> Value:
        if isinstance(tree.subject, syntax.Name) and tree.subject.name == "Math" and self.lookup_kind("Math") is None:
            return self.eval_Name(syntax.Name(tree.name_span, {"PI": "pi", "E": "e"}.get(tree.name, tree.name.lower())))
        subject = self.eval(tree.subject)
        if isinstance(subject, DomainValue):
            return self.domain_member(subject, tree)
        subject = self.settled(subject, tree.subject.span)
        if isinstance(subject, FunctionValue):
            if tree.name in syntax.BORDERS:
                return self.bordered(subject, tree)
            if tree.name in ("Length", "length", "size") and not any(
                f[0] == tree.name for f in fields(subject.type.result)
            ):
                return self.size_of(subject, None, tree.span)
            if tree.name in ("GetLength", "domain"):
                raise ProgramError(
                    "CS0206", tree.name_span, f"`{tree.name}` is no member", "the extents are `size(f, 0)`, `domain(f)`"
                )
        return self.promoted([subject], lambda v: self.member(v[0], tree), tree.span)

    def bordered(self, subject: FunctionValue, tree: syntax.Member) -> FunctionValue:
        if any(p != INT for p in subject.type.parameters):
            raise ProgramError("CS0309", tree.name_span, f"a border mode needs int indices, but this is {subject.type}")
        for position, range_ in enumerate(self.flat_domain(subject)):
            if range_ is INFINITE:
                raise ProgramError(
                    "CS0309",
                    tree.name_span,
                    f"the {ordinal(position)} dimension of {tree.subject.span.short} is infinite: it has no border",
                )
        if tree.name == "zero" and isinstance(subject.type.result, Record):
            raise ProgramError(
                "CS0309", tree.name_span, f"{subject.type.result} has no zero", "use clamp, wrap or mirror"
            )
        return FunctionValue(
            subject.type.plain, subject.node, subject.own_domain, (tree.name,) * len(subject.type.parameters)
        )

    def member(self, value: DataValue, tree: syntax.Member) -> DataValue:
        for name, type_, first in fields(value.type):
            if name == tree.name:
                return DataValue(type_, value.nodes[first : first + len(components(type_))])
        if isinstance(value.type, Vector):
            for letters in SWIZZLES:
                places = [letters.find(c) for c in tree.name]
                if 1 <= len(places) <= 4 and all(0 <= p < value.type.size for p in places):
                    nodes = tuple(value.nodes[p] for p in places)
                    return DataValue(
                        Scalar(value.type.base) if len(nodes) == 1 else Vector(value.type.base, len(nodes)), nodes
                    )
        known = ", ".join(name for name, _, _ in fields(value.type))
        hint = f"members: {known}" if known else "a number has no members"
        raise ProgramError("CS0206", tree.name_span, f"{value.type} has no member `{tree.name}`", hint)

    # Calls

    def eval_Call(self, tree: syntax.Call) -> Value:
        if tree.restrictions and not self.may_reduce(tree):
            raise ProgramError(
                "CS0310",
                tree.restrictions[0].span,
                "a restriction stands only in a reduction",
                "`sum(a(i), i : 0..n)`, or a statement of its own: `i : 0..n;`",
            )
        if (
            isinstance(tree.callee, syntax.Member)
            and isinstance(tree.callee.subject, syntax.Name)
            and tree.callee.subject.name == "Math"
        ):
            callee = self.eval(tree.callee)
            return (
                self.call_family(callee.name, tree)
                if isinstance(callee, FamilyValue)
                else self.not_a_function(tree, callee)
            )
        if isinstance(tree.callee, syntax.Member) and tree.callee.name == "GetLength":
            subject = self.eval_data(tree.callee.subject)
            if isinstance(subject, FunctionValue) and len(tree.arguments) == 1:
                return self.size_of(subject, tree.arguments[0], tree.span)
        callee = self.eval(tree.callee)
        if isinstance(callee, FamilyValue):
            return self.call_family(callee.name, tree)
        if isinstance(callee, DomainValue):
            return self.domain_index(callee, tree)
        if not isinstance(callee, FunctionValue):
            return self.not_a_function(tree, callee)
        arguments = [self.argument(argument) for argument in tree.arguments]
        return self.apply(callee, arguments, tree)

    def not_a_function(self, tree: syntax.Call, callee: Value):
        raise ProgramError("CS0408", tree.callee.span, f"{tree.callee.span.short} is {callee.type}, not a function")

    def argument(self, tree: syntax.Tree, expected: Type | None = None) -> Value | BlankValue:
        if isinstance(tree, syntax.Blank):
            return BlankValue()
        return self.eval(tree, expected)

    def apply(self, function: FunctionValue, arguments: list, tree: syntax.Call) -> Value:
        """Ordinary application, or currying if arguments are missing or blank, or promotion if some are functions."""
        if self.scalar:
            raise NotScalar
        wanted = len(function.type.parameters)
        if len(arguments) > wanted:
            raise ProgramError(
                "CS0402",
                tree.span,
                f"{tree.callee.span.short} is {function.type}: it takes {wanted} arguments, {len(arguments)} are given",
            )
        arguments = arguments + [BlankValue()] * (wanted - len(arguments))
        spans = [a.span for a in tree.arguments] + [tree.span] * wanted
        arguments = [
            a if isinstance(a, BlankValue) else self.settled(a, s) for a, s in zip(arguments, spans, strict=False)
        ]
        if all(isinstance(a, BlankValue) for a in arguments):
            return function
        if any(isinstance(a, BlankValue) for a in arguments):
            return self.curried(function, arguments, tree)
        return self.promoted(arguments, lambda v: self.indexed(function, v, spans, tree), tree.span)

    def curried(self, function: FunctionValue, arguments: list, tree: syntax.Call) -> FunctionValue:
        free: list[Bound] = []
        domain = self.flat_domain(function)
        filled = []
        for position, argument in enumerate(arguments):
            if isinstance(argument, BlankValue):
                type_ = function.type.parameters[position]
                if not isinstance(type_, Scalar):
                    raise ProgramError("CS0409", tree.span, f"a dimension of type {type_} cannot stay free")
                variable = Bound(f"_{position}", type_.name, domain[position])
                free.append(variable)
                argument = DataValue(type_, (self.dag.bound(variable),))
            filled.append(argument)
        spans = [a.span for a in tree.arguments] + [tree.span] * len(filled)
        value = self.promoted(
            filled, lambda v: self.indexed(function, v, spans, tree, quiet=frozenset(free)), tree.span
        )
        if isinstance(value, FunctionValue):
            raise ProgramError(
                "CS0409",
                tree.span,
                "blanks and functions cannot be mixed as arguments",
                "name the free dimensions: `var r(k) = ...`",
            )
        return self.close(free, value)

    def indexed(
        self, function: FunctionValue, values: list[DataValue], spans: list[Span], tree: syntax.Call, quiet=frozenset()
    ) -> DataValue:
        """A function at a point; each index is noted for the inference of domains."""
        converted = []
        position = 0
        for value, type_, span in zip(values, function.type.parameters, spans, strict=False):
            part = self.convert(value, type_, span)
            converted.append(part)
            for node in part.nodes:
                is_free = node.op == "bound" and node.value in quiet
                self.note(function, position, node, tree.span, is_free)
                position += 1
        return self.access(function, converted, tree.span)

    def note(self, function: FunctionValue, position: int, index: Node, span: Span, skip: bool) -> None:
        if skip or index.type not in ("int", "uint"):
            return
        range_ = function.domain[position]
        border = bool(function.borders and function.borders[position])
        if range_ is UNSOLVED:
            return
        use = Use(index, range_, span, self.guarded > 0, border)
        if self.unit.frames:
            self.unit.frames[-1].uses.append(use)
        else:
            Inference([], [use], {}).run()

    def access(self, function: FunctionValue, arguments: list[DataValue], span: Span | None = None) -> DataValue:
        indices = tuple(node for value in arguments for node in value.nodes)
        borders = function.borders or (None,) * len(indices)
        if function.node.free:
            return self.reduced_application(function, indices, borders, span)
        node = self.dag.access(function.node, indices, borders)
        if span is not None:
            self.dag.places.setdefault(node, span)
        count = len(components(function.type.result))
        return DataValue(function.type.result, tuple(self.dag.component(node, k) for k in range(count)))

    def reduced_application(
        self, function: FunctionValue, indices: tuple, borders: tuple, span: Span | None
    ) -> DataValue:
        """A function that hangs on outer bound variables is put in place of its application."""
        zero, inside = None, []
        for index, border, range_ in zip(indices, borders, function.domain, strict=True):
            if border is not None and isinstance(range_, Range):
                index, outside = self.folded_index(index, border, range_)
                if outside is not None:
                    zero = outside if zero is None else self.arithmetic.operate("||", "bool", zero, outside)
            inside.append(index)
        body = substitute(self.dag, function.node.inputs, dict(zip(function.node.value, inside, strict=True)))
        value = DataValue(function.type.result, body)
        if zero is not None:
            value = self.arithmetic.select(DataValue(BOOL, (zero,)), self.unit.zero(value.type), value)
        return value

    def folded_index(self, index: Node, border: str, range_: Range) -> tuple[Node, Node | None]:
        """An index by a border mode, and where `zero` replaces the value."""
        operate, type_ = self.arithmetic.operate, index.type
        low, high, size = (self.dag.argument(n, type_, "border") for n in (range_.low, range_.high - 1, range_.size))
        place = operate("-", type_, index, low)
        if border == "wrap":
            place = operate("%", type_, operate("+", type_, operate("%", type_, place, size), size), size)
            return operate("+", type_, place, low), None
        if border == "mirror":
            twice = self.dag.argument(2 * range_.size, type_, "border")
            last = self.dag.argument(2 * range_.size - 1, type_, "border")
            place = operate("%", type_, operate("+", type_, operate("%", type_, place, twice), twice), twice)
            place = operate("min", type_, place, operate("-", type_, last, place))
            return operate("+", type_, place, low), None
        outside = operate("||", "bool", operate("<", type_, index, low), operate(">", type_, index, high))
        cut = operate("min", type_, operate("max", type_, index, low), high)
        return cut, outside if border == "zero" else None

    # Promotion

    def promoted(self, values: list[Value], work, span: Span) -> Value:
        """work(data) -> data, lifted to functions: parameters of equal type run together, others stay apart."""
        functions = [v for v in values if isinstance(v, FunctionValue)]
        if not functions:
            return work(values)
        if self.scalar:
            raise NotScalar
        slots: dict[tuple[str, int], Bound] = {}
        ranges: dict[Bound, list] = {}
        order: list[Bound] = []
        data = []
        for value in values:
            if not isinstance(value, FunctionValue):
                data.append(value)
                continue
            data.append(self.open_into(value, slots, ranges, order, span))
        for variable, found in ranges.items():
            variable.range = intersect(variable.name, found, span)
        return self.close(order, work(data))

    def open_into(
        self, function: FunctionValue, slots: dict, ranges: dict, order: list[Bound], span: Span
    ) -> DataValue:
        """A function applied to the shared variables of a promotion: the k-th parameter of each type is one of them."""
        seen: dict[str, int] = {}
        domain = iter(self.flat_domain(function))
        arguments = []
        for type_ in function.type.parameters:
            parts = []
            for base in components(type_):
                place = seen[base] = seen.get(base, -1) + 1
                if (base, place) not in slots:
                    slots[base, place] = Bound(("ijkmnp" if base in ("int", "uint") else "xyzuvw")[place % 6], base)
                    order.append(slots[base, place])
                variable = slots[base, place]
                range_ = next(domain)
                if isinstance(range_, Range) and not range_.why:
                    range_ = Range(range_.low, range_.high, range_.shrunk, f"{span.short} at {span.at}")
                ranges.setdefault(variable, []).append(INFINITE if range_ is UNSOLVED else range_)
                parts.append(self.dag.bound(variable))
            arguments.append(DataValue(type_, tuple(parts)))
        return self.access(function, arguments, span)

    # Overloads of user functions

    def call_family(self, name: str, tree: syntax.Call) -> Value:
        family = self.unit.families.get(name, [])
        if name == "fold" and not family:
            return self.fold(tree)
        if self.may_reduce(tree):
            return self.reduce_family(name, family, tree)
        if name in self.special and not family:
            return self.special[name](self, tree)
        expected = family[0].types if len(family) == 1 else ()
        values = []
        for position, argument in enumerate(tree.arguments):
            values.append(self.argument(argument, expected[position] if position < len(expected) else None))
        return self.call_overloaded(name, family, values, tree)

    def call_overloaded(self, name: str, family: list[UserFunction], values: list, tree: syntax.Call) -> Value:
        plain = [v for v in values if not isinstance(v, BlankValue)]
        blanks = len(plain) != len(values)
        chosen = None if blanks else self.choose(family, values)
        if chosen is not None and (
            name not in OPERATIONS or self.exact(chosen, values) or not self.builtin_fits(name, values)
        ):
            return self.call_user(chosen, values, tree.span, [a.span for a in tree.arguments])
        if name in FUNCTIONS and not blanks and all(isinstance(v, DataValue) for v in values):
            found = self.builtin(name, values, tree)
            if found is not None:
                return found
        completed = self.completed(family, values) if not blanks else None
        if completed is not None:
            return self.promote_call(*completed, tree)
        missing = [f for f in family if len(values) < len(f.types) or blanks and len(values) == len(f.types)]
        if missing and not any(len(f.types) == len(values) for f in family) or blanks and missing:
            return self.curried_family(missing[0], values, tree)
        settled = [
            self.settled(v, a.span) if not isinstance(v, BlankValue) else v
            for v, a in zip(values, tree.arguments, strict=True)
        ]
        promotable = self.choose(family, settled, promote=True)
        if promotable is not None:
            return self.promote_call(promotable, settled, tree)
        if name in FUNCTIONS and not blanks and any(isinstance(v, FunctionValue) for v in settled):
            return self.promoted(settled, lambda v: self.builtin_or_fail(name, v, tree), tree.span)
        return self.no_overload(name, family, values, tree)

    def completed(self, family: list[UserFunction], values: list) -> tuple[UserFunction, list] | None:
        """A function whose last parameters have defaults, and the values with these."""
        for function in family:
            rest = function.item.parameters[len(values) :]
            if not rest or any(parameter.default is None for parameter in rest):
                continue
            checker = type(self)(self.unit, Scope(), self.scalar)
            full = values + [checker.root(parameter.default) for parameter in rest]
            if self.choose([function], full, promote=True) is not None:
                return function, full
        return None

    def builtin_fits(self, name: str, values: list) -> bool:
        return all(isinstance(v, DataValue) for v in values) and self.arithmetic.function(name, values) is not None

    def exact(self, function: UserFunction, values: list) -> bool:
        return all(isinstance(v, DataValue) and v.type == t for v, t in zip(values, function.types, strict=True))

    def promote_call(self, function: UserFunction, values: list, tree: syntax.Call) -> Value:
        """Functions that fill data parameters are lifted; functional parameters keep what they are given."""
        spans = [a.span for a in tree.arguments]
        lifted = [v for v, t in zip(values, function.types, strict=True) if not isinstance(t, Functional)]

        def work(data: list[DataValue]) -> DataValue:
            rest = iter(data)
            full = [v if isinstance(t, Functional) else next(rest) for v, t in zip(values, function.types, strict=True)]
            found = self.call_user(function, full, tree.span, spans)
            if isinstance(found, FunctionValue):
                raise ProgramError("CS0410", tree.span, f"{function.name} returns a function: it cannot be promoted")
            return found

        return self.promoted(lifted, work, tree.span)

    def curried_family(self, function: UserFunction, values: list, tree: syntax.Call) -> Value:
        if any(isinstance(t, Functional) for t in function.types):
            return self.no_overload(function.name, [function], values, tree)
        whole = self.function_value(function)
        return self.apply(whole, values, tree)

    def choose(self, family: list[UserFunction], values: list, promote: bool = False) -> UserFunction | None:
        """The overload whose parameters the values fill with the fewest conversions."""
        best, best_cost = None, None
        for function in family:
            if len(function.types) != len(values):
                continue
            costs = [self.fit(value, type_, promote) for value, type_ in zip(values, function.types, strict=True)]
            if any(cost is None for cost in costs):
                continue
            if best is None or sum(costs) < best_cost:
                best, best_cost = function, sum(costs)
        return best

    def fit(self, value: Value, target: Type, promote: bool) -> int | None:
        """How far a value is from a parameter's type; None if it does not fit."""
        if isinstance(value, BlankValue):
            return None
        if isinstance(target, Functional):
            if isinstance(value, FamilyValue):
                return 1 if self.family_member(value, target) is not None else None
            if not isinstance(value, FunctionValue) or value.type.parameters != target.parameters:
                return None
            steps = widening(value.type.result, target.result)
            return None if steps is None else steps + (target.array and not value.type.array)
        if isinstance(value, FamilyValue):
            return None
        if isinstance(value, FunctionValue):
            if not promote:
                return None
            steps = widening(value.type.result, target)
            return None if steps is None else 10 + steps
        if not isinstance(value, DataValue):
            return None
        steps = widening(value.type, target)
        if steps is None and self.literal_fits(value, target):
            steps = 1
        return steps

    def literal_fits(self, value: DataValue, target: Type) -> bool:
        if not (value.is_literal and isinstance(value.type, Scalar) and isinstance(target, Scalar)):
            return False
        return value.type.name == "int" and target.name == "uint" and value.node.value.number >= 0

    def no_overload(self, name: str, family: list[UserFunction], values: list, tree: syntax.Call):
        given = ", ".join("(blank)" if isinstance(v, BlankValue) else self.describe(v) for v in values)
        known = [f.signature for f in family]
        if not family and name in FUNCTIONS:
            raise ProgramError("CS0411", tree.span, f"{name} does not take ({given})", FUNCTIONS[name])
        if len(known) == 1:
            message, hint = f"{known[0]} does not take ({given})", self.misfit(family[0], values)
        else:
            message, hint = f"no overload of {name} takes ({given})", "known: " + "; ".join(known[:6])
        raise ProgramError("CS0411", tree.span, message, hint)

    def misfit(self, function: UserFunction, values: list) -> str:
        if len(function.types) != len(values):
            return f"it takes {len(function.types)} arguments, {len(values)} are given"
        for name, type_, value in zip(function.names, function.types, values, strict=True):
            if self.fit(value, type_, True) is None and not isinstance(value, BlankValue):
                return f"`{name}` is {type_}, but {self.describe(value)} is given"
        return ""

    def describe(self, value: Value) -> str:
        return f"function {value.name}" if isinstance(value, FamilyValue) else str(value.type)

    def call_user(self, function: UserFunction, values: list, span: Span, spans: list[Span] | None = None) -> Value:
        spans = (spans or []) + [span] * len(values)
        converted = [self.convert(v, t, s) for v, t, s in zip(values, function.types, spans, strict=False)]
        return self.unit.call(self, function, converted, span)

    def function_value(self, function: UserFunction) -> FunctionValue:
        """A user's function of data as a value: a function of variables without end."""
        if self.scalar:
            raise NotScalar
        variables, values = [], []
        for name, type_ in zip(function.names, function.types, strict=True):
            parts = [Bound(name, base, INFINITE) for base in components(type_)]
            variables += parts
            values.append(DataValue(type_, tuple(map(self.dag.bound, parts))))
        result = self.unit.call(self, function, values, function.item.name_span)
        type_ = Functional(result.type, function.types)
        return FunctionValue(type_, self.dag.function(tuple(variables), result.nodes, type_))

    def family_member(self, value: FamilyValue, expected: Functional) -> UserFunction | str | None:
        """The overload that is a function of the expected type."""
        for function in self.unit.families.get(value.name, []):
            if function.types == expected.parameters and widening(function.result, expected.result) is not None:
                return function
        if value.name in OPERATIONS and all(isinstance(p, (Scalar, Vector)) for p in expected.parameters):
            if len(OPERATIONS[value.name].parameters) == len(expected.parameters):
                return value.name
        return None

    def family_as_function(self, value: FamilyValue, expected: Functional | None, span: Span) -> FunctionValue:
        if self.scalar:
            raise NotScalar
        family = self.unit.families.get(value.name, [])
        if expected is not None:
            member = self.family_member(value, expected)
            if member is None:
                raise ProgramError("CS0412", span, f"no overload of {value.name} is {expected}")
            if isinstance(member, UserFunction):
                return self.function_value(member)
            return self.builtin_function_value(value.name, expected.parameters)
        if len(family) == 1 and all(is_data(t) for t in family[0].types):
            return self.function_value(family[0])
        if not family and value.name in OPERATIONS:
            return self.builtin_function_value(value.name, (FLOAT,) * len(OPERATIONS[value.name].parameters))
        raise ProgramError(
            "CS0412",
            span,
            f"the function {value.name} cannot stand alone here: it has several overloads or takes functions",
            "call it, or cast it: `(float(float)) f`",
        )

    def builtin_function_value(self, name: str, parameters: tuple[Type, ...]) -> FunctionValue:
        variables, values = [], []
        for position, type_ in enumerate(parameters):
            parts = [Bound("xyzw"[position], base, INFINITE) for base in components(type_)]
            variables += parts
            values.append(DataValue(type_, tuple(map(self.dag.bound, parts))))
        result = self.arithmetic.function(name, values)
        type_ = Functional(result.type, parameters)
        return FunctionValue(type_, self.dag.function(tuple(variables), result.nodes, type_))

    # Conversion

    def convert(self, value: Value, target: Type, span: Span, explicit: bool = False) -> Value:
        """The value as the target type, by the conversions that lose nothing."""
        if isinstance(target, Functional):
            return self.convert_function(value, target, span)
        value = self.settled(value, span)
        if isinstance(value, FunctionValue):
            raise ProgramError(
                "CS0401",
                span,
                f"{span.short} is the function {value.type}, but {target} is needed",
                "apply it, or reduce it: `sum(f)`",
            )
        if value.type == target:
            return value
        if widening(value.type, target) is not None or self.literal_fits(value, target):
            return self.arithmetic.coerce(value, base_of(target))
        narrow = base_of(value.type) is not None and base_of(target) is not None
        hint = (
            f"a cast says that loss is meant: `({target}) ...`" if narrow and BOOL not in (value.type, target) else ""
        )
        if value.type == BOOL and narrow:
            hint = "make a bool a number: `b ? 1 : 0`"
        raise ProgramError("CS0401", span, f"{span.short} is {value.type}, but {target} is needed", hint)

    def convert_function(self, value: Value, target: Functional, span: Span) -> FunctionValue:
        if isinstance(value, FamilyValue):
            value = self.family_as_function(value, target, span)
        if not isinstance(value, FunctionValue):
            shown = value.type if isinstance(value, DataValue) else "a domain"
            names = ", ".join("ijklmn"[k % 6] + " : 0..n" for k in range(len(target.parameters)))
            raise ProgramError(
                "CS0401",
                span,
                f"{span.short} is {shown}, but the function {target} is needed",
                f"a function is made by `var f({names}) = ...`",
            )
        if value.type.parameters != target.parameters or widening(value.type.result, target.result) is None:
            hint = (
                "blanks leave dimensions free: `a(i, )`" if len(value.type.parameters) > len(target.parameters) else ""
            )
            raise ProgramError("CS0401", span, f"{span.short} is {value.type}, but {target} is needed", hint)
        if value.type.result != target.result:
            base = base_of(target.result)
            value = self.promoted([value], lambda v: self.arithmetic.coerce(v[0], base), span)
        if target.array and not value.type.array:
            return self.evaluated(value, span)
        if not target.array and value.type.array:
            return FunctionValue(value.type.plain, value.node, value.own_domain, value.borders)
        return value

    # Reductions

    def reduction(self, tree: syntax.Call, name: str, variables: list[Bound], value: DataValue) -> DataValue:
        """A reduction by a named operation over the variables that live only inside of it."""
        if name not in ("argmin", "argmax"):
            return self.join(name, variables, value, tree)
        if not isinstance(value.type, Scalar) or value.type.name == "bool":
            raise ProgramError("CS0311", tree.span, f"{name} compares numbers, but these are {value.type}")
        if len(variables) > 4:
            raise ProgramError("CS0311", tree.span, f"{name} over {len(variables)} variables has no type", "at most 4")
        indices = tuple(self.dag.bound(v) for v in variables)
        type_ = one_or_tuple(("int",) * len(variables))
        node = self.dag.make("reduce", type_, (value.node, *indices), (Reduction(name), tuple(variables)))
        self.dag.places.setdefault(node, tree.span)
        result = INT if len(variables) == 1 else Vector("int", len(variables))
        return DataValue(result, tuple(self.dag.component(node, k) for k in range(len(variables))))

    def reduced_body(self, tree: syntax.Unary | syntax.Call, body: syntax.Tree) -> tuple[list[Bound], DataValue]:
        """The variables that a reduction reduces and the value under it; of a function, all its dimensions."""
        variables, value = self.raw_body(tree, body)
        return self.opened_for_reduction(variables, value, body, tree.span)

    def raw_body(self, tree: syntax.Unary | syntax.Call, body: syntax.Tree) -> tuple[list[Bound], Value]:
        """The variables that live only under a reduction and the value under it, checked in a scope of its own."""
        names = self.unit.frames[-1].owners.get(id(tree), []) if self.unit.frames else []
        outer, self.scope = self.scope, Scope(self.scope)
        try:
            variables = [v for r in tree.restrictions for v in self.restricted(r)]
            if self.scalar and (names or variables):
                raise NotScalar
            variables += [self.new_variable(name, tree.span, True, self.first_use(name, body), None) for name in names]
            return variables, self.settled(self.eval(body), body.span)
        finally:
            self.scope = outer

    def opened_for_reduction(
        self, variables: list[Bound], value: Value, body: syntax.Tree, span: Span
    ) -> tuple[list[Bound], DataValue]:
        if not isinstance(value, FunctionValue):
            return variables, value
        if self.scalar:
            raise NotScalar
        free, data = self.opened(value, body.span)
        for variable in free:
            variable.reduced = True
            if variable.range is INFINITE:
                raise ProgramError(
                    "CS0304",
                    span,
                    f"{body.span.short} is reduced, but its domain is infinite",
                    "restrict its variables: `var f(i : 0..n) = ...`",
                )
        return variables + free, data

    def restricted(self, restriction: syntax.Restriction) -> list[Bound]:
        """`l : 0..n`, `int l`, `(i, j) : f` in a reduction: new variables."""
        written = self.unit.type_of(restriction.type) if restriction.type is not None else None
        if len(restriction.names) == 1:
            name, span = restriction.names[0]
            self.not_twice(name, span)
            return [self.new_variable(name, restriction.span, True, written, restriction.domain)]
        found = []
        ranges = self.ranges_of(restriction.domain, len(restriction.names))
        for (name, span), range_ in zip(restriction.names, ranges, strict=True):
            self.not_twice(name, span)
            variable = self.new_variable(name, restriction.span, True, written, None)
            variable.range = range_ if range_ is not INFINITE else UNSOLVED
            self.unit.frames[-1].explicit[variable] = restriction.span
            found.append(variable)
        return found

    def not_twice(self, name: str, span: Span) -> None:
        if self.scope.find(name) is not None:
            raise ProgramError(
                "CS0312", span, f"`{name}` is already declared, so this reduction cannot reduce it", "use another name"
            )

    def join(self, name: str, variables: list[Bound], value: DataValue, tree: syntax.Tree) -> DataValue:
        if isinstance(value.type, Record):
            return self.join_by_user("operator" + name, variables, value, tree)
        if name == "+" and value.type == BOOL:
            one, zero = self.arithmetic.number(1, "int"), self.arithmetic.number(0, "int")
            value = self.arithmetic.select(value, one, zero)
        if base_of(value.type) not in REDUCERS[name].types:
            raise ProgramError(
                "CS0311",
                tree.span,
                f"{value.type} cannot be reduced by `{name}`",
                "allowed: " + ", ".join(REDUCERS[name].types),
            )
        nodes = tuple(self.dag.make("reduce", n.type, (n,), (Reduction(name), tuple(variables))) for n in value.nodes)
        for node in nodes:
            self.dag.places.setdefault(node, tree.span)
        return DataValue(value.type, nodes)

    def join_by_user(self, family_name: str, variables: list[Bound], value: DataValue, tree: syntax.Tree) -> DataValue:
        family = [f for f in self.unit.families.get(family_name, []) if self.joins(f) and f.result == value.type]
        if not family:
            shown = family_name.removeprefix("operator")
            raise ProgramError(
                "CS0311",
                tree.span,
                f"{value.type} cannot be reduced by `{shown}`",
                f"a reduction needs a function {value.type}({value.type}, {value.type})",
            )
        function = self.unit.scalar_function(family[0], tree.span)
        ordered = "Associative" not in family[0].item.attributes
        reduction = Reduction(family[0].name, function, ordered)
        return self.reduce_components(reduction, variables, value.nodes, value.type, tree.span)

    def reduce_components(
        self, reduction: Reduction, variables: list[Bound], inputs: tuple[Node, ...], type_: Type, span: Span
    ) -> DataValue:
        parts = components(type_)
        node = self.dag.make("reduce", one_or_tuple(parts), inputs, (reduction, tuple(variables)))
        self.dag.places.setdefault(node, span)
        return DataValue(type_, tuple(self.dag.component(node, k) for k in range(len(parts))))

    def reduce_family(self, name: str, family: list[UserFunction], tree: syntax.Call) -> Value:
        """A call with one argument that may reduce: below ordinary and user overloads, above currying."""
        body = tree.arguments[0]
        if isinstance(body, syntax.Blank):
            return self.call_overloaded(name, family, [BlankValue()], tree)
        variables, value = self.raw_body(tree, body)
        if not variables and self.choose([f for f in family if len(f.types) == 1], [value]) is not None:
            return self.call_overloaded(name, family, [value], tree)
        variables, data = self.opened_for_reduction(variables, value, body, tree.span)
        if not variables:
            if family:
                return self.call_overloaded(name, family, [value], tree)
            raise ProgramError(
                "CS0308", tree.span, f"{name} reduces a function, but {body.span.short} is one {value.type}",
                "its bound variables are reduced or declared elsewhere; `sum(a(i, j), int j)` names the one to reduce",
            )  # fmt: skip
        if not family:
            return self.reduction(tree, REDUCER_NAMES[name], variables, data)
        joining = [f for f in family if self.joins(f)]
        fitting = [f for f in joining if self.fit(data, f.result, False) is not None]
        if not fitting:
            raise ProgramError(
                "CS0311", tree.span, f"{name} cannot reduce {data.type}", "; ".join(f.signature for f in joining)
            )
        return self.join_by_user(name, variables, self.convert(data, fitting[0].result, tree.span), tree)

    def fold(self, tree: syntax.Call) -> DataValue:
        """fold(step, start, body): state = step(state, element) over the reduced variables, in order."""
        if len(tree.arguments) != 3 or not isinstance(tree.arguments[0], syntax.Name):
            raise ProgramError(
                "CS0313",
                tree.span,
                "fold takes a function's name, a start and what is folded",
                "`fold(step, start, a(i))`",
            )
        name = tree.arguments[0].name
        start = self.convert_start(tree)
        variables, value = self.reduced_body(tree, tree.arguments[2])
        if not variables:
            raise ProgramError("CS0308", tree.span, "fold reduces a function, but nothing here is reduced")
        family = self.unit.families.get(name)
        if not family:
            raise ProgramError(
                "CS0313",
                tree.arguments[0].span,
                f"`{name}` is no function of this program",
                "a fold's step is `S step(S state, T element) { ... }`",
            )
        fitting = [
            f
            for f in family
            if len(f.types) == 2 and f.types[0] == f.result and self.fit(value, f.types[1], False) is not None
        ]
        fitting = [f for f in fitting if self.fit(start, f.result, False) is not None]
        if not fitting:
            raise ProgramError(
                "CS0313",
                tree.span,
                f"{name} cannot fold {value.type} from {start.type}: it must be "
                f"{start.type}({start.type}, {value.type})",
                "known: " + "; ".join(f"{f.result} {f.signature}" for f in family),
            )
        chosen = fitting[0]
        function = self.unit.scalar_function(chosen, tree.span)
        start = self.convert(start, chosen.result, tree.arguments[1].span)
        value = self.convert(value, chosen.types[1], tree.arguments[2].span)
        reduction = Reduction("fold", function, True)
        return self.reduce_components(reduction, variables, start.nodes + value.nodes, chosen.result, tree.span)

    def convert_start(self, tree: syntax.Call) -> DataValue:
        start = self.settled(self.eval(tree.arguments[1]), tree.arguments[1].span)
        if not isinstance(start, DataValue):
            raise ProgramError(
                "CS0313", tree.arguments[1].span, f"a fold starts with a value, but this is {start.type}"
            )
        return start

    # Numbers the host must know

    def host_int(self, tree: syntax.Tree) -> int | None:
        """An int that is known before anything is evaluated; None while a function is checked alone."""
        value = self.settled(self.eval(tree), tree.span)
        if not isinstance(value, DataValue) or value.type not in (INT, Scalar("uint")):
            shown = value.type
            raise ProgramError("CS0314", tree.span, f"an end of a range is int, but {tree.span.short} is {shown}")
        if not is_host(value) or self.scalar:
            if self.scalar:
                raise NotScalar
            names = ", ".join(sorted(v.name for v in value.node.free))
            raise ProgramError(
                "CS0315",
                tree.span,
                f"the end of a range cannot depend on `{names}`: domains are boxes",
                "take the largest box and choose: `i <= j ? a(i) : 0`",
            )
        number = self.unit.host_number(value)
        return None if number is None else int(number)

    def range_of(self, tree: syntax.Tree):
        return self.ranges_of(tree, 1)[0]

    def ranges_of(self, tree: syntax.Tree, rank: int) -> tuple:
        """The ranges that a restriction's right side gives: an interval, a domain or a function."""
        value = self.eval(tree)
        if isinstance(value, FamilyValue):
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
            found.append(Range(range_.low, range_.high, range_.shrunk, where) if isinstance(range_, Range) else range_)
        return tuple(found)


def ordinal(position: int) -> str:
    return ("first", "second", "third", "fourth", "fifth", "sixth")[min(position, 5)]


def children(tree: syntax.Tree):
    """Direct subtrees in the order they are written."""
    for entry in dataclass_fields(tree):
        value = getattr(tree, entry.name)
        if isinstance(value, syntax.Tree):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, syntax.Tree))


def walk(tree: syntax.Tree):
    """The tree and all under it, in reading order, without recursion."""
    stack = [tree]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(list(children(found))))


def is_affine(node: Node) -> bool:
    return affine(node) is not None


def constant(node: Node) -> bool:
    return node.op == "scalar" and isinstance(node.value, (Literal, Argument))
