"""Bodies of functions that build functions: their statements run on the host, once."""

from __future__ import annotations

from dataclasses import dataclass

from renderer.cdollar.checker.checker import Checker
from renderer.cdollar.checker.values import (
    DataValue,
    FunctionValue,
    Scope,
    UserFunction,
    Value,
    Variable,
    constant_values,
    is_closed,
)
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.ast import walk
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.types import FunctionType, Type, is_data

MAX_HOST_STATEMENTS = 100_000
MATERIALIZE_EVERY = 128


@dataclass(frozen=True)
class Returned:
    value: Value


@dataclass(frozen=True)
class Pop:
    """Ends the scope of a block in a list of statements still to run."""

    scope: Scope


@dataclass
class StatementRestriction:
    type: Type | None
    range: object
    span: Span


class HostExecutor:
    """Runs the statements of a body that builds functions; conditions on bound variables choose between values."""

    def __init__(self, compilation, function: UserFunction | None, scope: Scope, guarded: int = 0):
        self.compilation, self.function = compilation, function
        self.checker = Checker(compilation, scope)
        self.checker.guarded = guarded
        self.loops = 0

    def run(self, body: list) -> Returned | str | None:
        """What ends the statements: a value, "break", "continue", or None at the end."""
        rest = list(reversed(body))
        while rest:
            tree = rest.pop()
            if isinstance(tree, Pop):
                self.checker.scope = tree.scope
                continue
            self.count_step(tree)
            if isinstance(tree, ast.Block):
                self.enter(tree.body, rest)
            elif isinstance(tree, ast.If):
                done = self.run_if(tree, rest)
                if done is not None:
                    return done
            elif isinstance(tree, ast.Loop):
                done = self.run_loop(tree)
                if done is not None:
                    return done
            elif isinstance(tree, ast.Jump):
                if not self.loops:
                    raise ProgramError("CS0207", tree.span, f"`{tree.kind}` stands outside of a loop")
                return tree.kind
            elif isinstance(tree, ast.Return):
                return self.run_return(tree)
            else:
                getattr(self, "do_" + type(tree).__name__)(tree)
        return None

    def count_step(self, tree: ast.AstNode) -> None:
        self.compilation.statement_count += 1
        if self.compilation.statement_count > MAX_HOST_STATEMENTS:
            raise ProgramError(
                "CS0601",
                tree.span,
                f"the program runs more than {MAX_HOST_STATEMENTS} statements on the host",
                "put the loop into a function of numbers: it then runs on the device",
            )

    def enter(self, body: list, rest: list) -> None:
        rest.append(Pop(self.checker.scope))
        rest.extend(reversed(body))
        self.checker.scope = Scope(self.checker.scope)

    def run_return(self, tree: ast.Return) -> Returned:
        if tree.value is None or self.function is None:
            raise ProgramError("CS0208", tree.span, "`return` needs a value")
        value = self.checker.root(tree.value, self.function.result_type)
        return Returned(self.checker.convert(value, self.function.result_type, tree.value.span))

    def run_if(self, tree: ast.If, rest: list) -> Returned | str | None:
        condition = self.value(tree.condition)
        if not isinstance(condition, DataValue):
            raise ProgramError(
                "CS0405",
                tree.condition.span,
                f"a condition is bool, but this is {condition.type}",
                "reduce it: `any(f)`, `all(f)`",
            )
        known = self.known_truth(condition, tree.condition.span)
        if known is not None:
            self.enter(tree.if_true if known else tree.if_false, rest)
            return None
        if not any(isinstance(t, (ast.Return, ast.Jump)) for t in walk(tree)):
            self.merge(tree, condition)
            return None
        first = self.branch(tree.if_true, rest)
        second = self.branch(tree.if_false, rest)
        if not (isinstance(first, Returned) and isinstance(second, Returned)):
            if self.compilation.abstract and is_closed(condition):
                return first if isinstance(first, Returned) else second if isinstance(second, Returned) else None
            raise ProgramError(
                "CS0602",
                tree.span,
                f"{tree.condition.span.short} depends on a bound variable, so a loop cannot be left here",
                "put the loop into a function of numbers: it then runs on the device",
            )
        choice = ast.Conditional(tree.span, tree.condition, tree.condition, tree.condition)
        return Returned(
            self.checker.promoted(
                [condition, first.value, second.value], lambda v: self.checker.choose_value(choice, *v), tree.span
            )
        )

    def branch(self, body: list, rest: list) -> Returned | str | None:
        """A branch and all that follows it, on a copy of the variables."""
        outer = self.checker.scope
        twin = {}
        copy = copied(outer, twin)
        self.checker.scope = Scope(copy)
        self.checker.guarded += 1
        try:
            later = [Pop(twin.get(id(s.scope), s.scope)) if isinstance(s, Pop) else s for s in rest]
            return self.run([*body, Pop(copy), *reversed(later)])
        finally:
            self.checker.guarded -= 1
            self.checker.scope = outer

    def merge(self, tree: ast.If, condition: DataValue) -> None:
        """Both branches on copies; a variable that they leave different becomes a choice."""
        outer = self.checker.scope
        ends = []
        for body in (tree.if_true, tree.if_false):
            copy = copied(outer, {})
            self.checker.scope = Scope(copy)
            self.checker.guarded += 1
            try:
                self.run(body)
            finally:
                self.checker.guarded -= 1
            ends.append(copy)
        self.checker.scope = outer
        choice = ast.Conditional(tree.span, tree.condition, tree.condition, tree.condition)
        for name, variable in outer.variables():
            yes, no = ends[0].find(name), ends[1].find(name)
            if outer.find(name) is variable and yes.value is not no.value and yes.value != no.value:
                if yes.value is None or no.value is None:
                    variable.value = None
                    continue
                chosen = self.checker.promoted(
                    [condition, yes.value, no.value], lambda v: self.checker.choose_value(choice, *v), tree.span
                )
                variable.value = self.checker.convert(chosen, variable.type, tree.span)
            elif outer.find(name) is variable:
                variable.value = yes.value

    def value(self, tree: ast.AstNode) -> Value:
        return self.checker.settled(self.checker.root(tree), tree.span)

    def known_truth(self, condition: DataValue, span: Span) -> bool | None:
        known = self.checker.truth(condition, span)
        if known is None and is_closed(condition):
            number = self.compilation.host_number(condition)
            known = None if number is None else bool(number)
        return known

    def run_loop(self, tree: ast.Loop) -> Returned | str | None:
        outer = self.checker.scope
        self.checker.scope = Scope(outer)
        self.run(tree.start)
        scope = self.checker.scope
        self.loops += 1
        try:
            return self.iterate(tree, scope)
        finally:
            self.loops -= 1
            self.checker.scope = outer

    def iterate(self, tree: ast.Loop, scope: Scope) -> Returned | str | None:
        rounds = 0
        while True:
            self.count_step(tree)
            self.checker.scope = scope
            if rounds or tree.test_first:
                known = self.loop_condition(tree, scope)
                if known is False:
                    return None
                if known is None and rounds:
                    return None  # checked apart from its callers: once is enough
            self.checker.scope = Scope(scope)
            done = self.run(tree.body)
            self.checker.scope = scope
            if isinstance(done, Returned):
                return done
            if done == "break":
                return None
            self.run(tree.step)
            rounds += 1
            if self.compilation.abstract:
                return None
            if rounds % MATERIALIZE_EVERY == 0:
                self.compilation.settle(scope)

    def loop_condition(self, tree: ast.Loop, scope: Scope) -> bool | None:
        if tree.condition is None:
            return None if self.compilation.abstract else True
        condition = self.value(tree.condition)
        if not isinstance(condition, DataValue):
            raise ProgramError(
                "CS0405",
                tree.condition.span,
                f"a condition is bool, but this is {condition.type}",
                "reduce it: `any(f)`, `all(f)`",
            )
        if not is_closed(condition):
            names = ", ".join(sorted(v.name for v in condition.node.free_variables))
            raise ProgramError(
                "CS0602",
                tree.condition.span,
                f"a loop's condition cannot depend on the bound variable `{names}` here",
                "put the loop into a function of numbers: it then runs on the device",
            )
        if (
            condition.node.op != "scalar"
            and not self.compilation.abstract
            and self.compilation.needs_evaluation(condition.node)
        ):
            self.compilation.settle(scope)
            condition = self.value(tree.condition)
        return self.known_truth(condition, tree.condition.span)

    def do_VariableDeclaration(self, tree: ast.VariableDeclaration) -> None:
        declare_once(self.checker.scope, tree)
        type_ = self.compilation.type_of(tree.type) if tree.kind == "type" else None
        if tree.head is not None:
            value: Value = self.declared_function(tree, type_)
        elif tree.value is None:
            self.checker.scope.names[tree.name] = Variable(None, type_)
            return
        else:
            value = self.checker.root(tree.value, type_)
        if type_ is not None and tree.head is None:
            value = self.checker.convert(value, type_, tree.value.span)
        value = self.named(value, tree)
        self.checker.scope.names[tree.name] = Variable(
            value, variable_type(value) if type_ is None or tree.head is not None else type_
        )

    def named(self, value: Value, tree: ast.VariableDeclaration) -> Value:
        from_domain = not isinstance(value, (DataValue, FunctionValue))
        if from_domain and not hasattr(value, "ranges"):
            value = self.checker.settled(value, tree.value.span)
        if tree.kind == "let":
            value = self.checker.shared(value, tree.value.span)
        return with_default_type(self.compilation, value) if isinstance(value, DataValue) else value

    def declared_function(self, tree: ast.VariableDeclaration, type_: Type | None) -> FunctionValue:
        self.checker.defining = tree.name
        value = self.checker.head_function(tree.head, tree.value)
        self.checker.defining = ""
        if type_ is not None:
            if not is_data(type_):
                raise ProgramError(
                    "CS0401", tree.span, f"{tree.name}(...) yields data, not {type_}", f"`var {tree.name}(...) = ...`"
                )
            target = FunctionType(type_, value.type.parameters)
            value = self.checker.convert(value, target, tree.value.span)
        return value

    def do_Assignment(self, tree: ast.Assignment) -> None:
        variable = assignable(self.compilation, self.checker.scope, tree)
        value = self.checker.root(combined(tree), variable.type)
        value = self.checker.convert(value, variable.type, tree.value.span)
        if isinstance(value, DataValue):
            value = with_default_type(self.compilation, value)
            numbers = self.numbers(value) if self.loops else None
            if numbers is not None:
                nodes = zip(value.nodes, numbers, strict=True)
                value = DataValue(
                    value.type, tuple(self.compilation.dag.runtime_scalar(x, n.type, tree.name) for n, x in nodes)
                )
        variable.value = value

    def numbers(self, value: DataValue) -> list | None:
        """The numbers of a cheap host value, so that a loop's variable stays a leaf of the DAG."""
        found = constant_values(value)
        if (
            found is not None
            or not is_closed(value)
            or self.compilation.abstract
            or any(self.compilation.needs_evaluation(n) for n in value.nodes)
        ):
            return found
        return [self.compilation.host_node(node) for node in value.nodes]

    def do_Restriction(self, tree: ast.Restriction) -> None:
        written = self.compilation.type_of(tree.type) if tree.type is not None else None
        ranges = self.checker.with_frame(
            tree.domain, [], lambda: self.checker.ranges_of(tree.domain, len(tree.names))
        ) if tree.domain is not None else (None,) * len(tree.names)  # fmt: skip
        for (name, span), range_ in zip(tree.names, ranges, strict=True):
            if self.checker.scope.find(name) is not None:
                raise ProgramError("CS0312", span, f"`{name}` is already declared, so it is no bound variable")
            self.checker.scope.restrictions[name] = StatementRestriction(written, range_, tree.span)


def copied(scope: Scope, twin: dict) -> Scope:
    """A copy of a chain of scopes; `twin` maps the id of each scope to its copy."""
    copy = Scope(copied(scope.parent, twin) if scope.parent else None)
    copy.names = {name: Variable(v.value, v.type, v.why_fixed) for name, v in scope.names.items()}
    copy.restrictions = dict(scope.restrictions)
    twin[id(scope)] = copy
    return copy


def variable_type(value: Value) -> Type | None:
    if isinstance(value, FunctionValue):
        return value.type.as_function_type
    return value.type if isinstance(value, DataValue) else None


def with_default_type(compilation, value: DataValue) -> DataValue:
    """A variable's value: a number whose suffix left float or double open becomes float."""
    if not value.is_untyped:
        return value
    return DataValue(value.type, tuple(compilation.dag.constant(n.attribute.number, n.type) for n in value.nodes))


def combined(tree: ast.Assignment) -> ast.AstNode:
    """`x += e` as `x + e`."""
    if not tree.operator:
        return tree.value
    return ast.Binary(tree.span, tree.operator, ast.Name(tree.name_span, tree.name), tree.value)


def declare_once(scope: Scope, tree: ast.VariableDeclaration) -> None:
    if tree.name in scope.names:
        raise ProgramError(
            "CS0109",
            tree.name_span,
            f"`{tree.name}` is declared twice in this block",
            "assign to it without a type, or use another name",
        )


def assignable(compilation, scope: Scope, tree: ast.Assignment) -> Variable:
    variable = scope.find(tree.name)
    if variable is None:
        if compilation.globals.find(tree.name):
            raise ProgramError("CS0209", tree.name_span, f"`{tree.name}` is a constant of the program")
        raise ProgramError(
            "CS0202",
            tree.name_span,
            f"the name `{tree.name}` is not known here",
            f"declare it: `var {tree.name} = ...;`",
        )
    if variable.type is None:
        raise ProgramError("CS0209", tree.name_span, f"`{tree.name}` is {variable.why_fixed} and cannot be assigned")
    return variable


def always_returns(body: list[ast.AstNode]) -> bool:
    for tree in body:
        if isinstance(tree, ast.Return):
            return True
        if isinstance(tree, ast.If) and always_returns(tree.if_true) and always_returns(tree.if_false):
            return True
        if isinstance(tree, ast.Block) and always_returns(tree.body):
            return True
        if isinstance(tree, ast.Loop) and endless(tree):
            return True
    return False


def endless(tree: ast.Loop) -> bool:
    forever = tree.condition is None or isinstance(tree.condition, ast.Literal) and tree.condition.value is True
    return forever and not any(isinstance(t, ast.Jump) and t.kind == "break" for part in tree.body for t in walk(part))


def missing_return(function: UserFunction):
    raise ProgramError(
        "CS0208",
        function.declaration.name_span,
        f"{function.name} does not return a value on every path",
        "end it with `return ...;`",
    )
