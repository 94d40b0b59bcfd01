"""Runs the bodies that build functions: their statements run on the host, once, while the program is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import NoReturn

from renderer.cdollar.checker.expressions import ExpressionLowering, check_condition
from renderer.cdollar.checker.program import Body, Program, UserCalls, UserFunction
from renderer.cdollar.checker.scopes import Scope, Variable
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, Operand, OverloadSet, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.ast import walk
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.ir.types import Data, DomainType, FunctionType, Type

MAX_HOST_STATEMENTS = 100_000
MATERIALIZE_EVERY = 128  # loop iterations after which the functions that variables hold are evaluated
DEVICE_HINT = "put the loop into a device function"


@dataclass(frozen=True)
class Returned:
    """The value of a `return` that was reached."""

    value: Value


@dataclass(frozen=True)
class ScopeEnd:
    """In a list of statements still to run: goes back to a block's outer scope."""

    scope: Scope


Outcome = Returned | str | None  # what ends statements: a return, "break", "continue", or their end
Statements = list[ast.AstNode | ScopeEnd]


class StatementLowering:
    """What statements on the host and those of device functions share; `function` is None for the REPL's statements."""

    def __init__(self, program: Program, user_calls: UserCalls, function: UserFunction | None, body: Body):
        self.program, self.function, self.body = program, function, body
        self.dag, self.builder = program.dag, program.builder
        self.expressions = ExpressionLowering(program, user_calls, body)
        self.loop_depth = 0

    def jump_kind(self, tree: ast.Jump) -> str:
        """The kind of the jump; raises CS0207 outside of a loop."""
        if not self.loop_depth:
            raise ProgramError("CS0207", tree.span, f"`{tree.kind}` is outside of a loop")
        return tree.kind

    def declare_once(self, tree: ast.VariableDeclaration) -> None:
        """Raises CS0109 if the block has a variable of this name."""
        if tree.name in self.body.scope.names:
            message = f"`{tree.name}` is declared twice in this block"
            raise ProgramError("CS0109", tree.name_span, message, "assign to it without a type, or use another name")

    def lower_assignment(self, tree: ast.Assignment) -> tuple[Variable, Operand]:
        """The variable on the left, and the new value in its type.

        Raises CS0202 or CS0209 if there is no such variable or it is read-only.
        """
        variable = self.body.scope.find(tree.name)
        if variable is None:
            if self.program.globals.find(tree.name):
                raise ProgramError("CS0209", tree.name_span, f"`{tree.name}` is a constant of the program")
            message = f"the name `{tree.name}` is not declared"
            raise ProgramError("CS0202", tree.name_span, message, f"declare it: `var {tree.name} = ...;`")
        if variable.type is None:
            message = f"`{tree.name}` is {variable.read_only_reason} and cannot be assigned"
            raise ProgramError("CS0209", tree.name_span, message)
        new = tree.value
        if tree.operator:
            new = ast.Binary(tree.span, tree.operator, ast.Name(tree.name_span, tree.name), new)
        if tree.part is not None:
            self._require_mutable(variable, tree.part)
        if isinstance(new, ast.WithElements):
            value: Value = self.expressions.lower_with_elements(new)
        else:
            value = self.expressions.lower_expression(new, variable.type)
        return variable, self.expressions.convert(value, variable.type, tree.value.span)

    def _require_mutable(self, variable: Variable, part: ast.AstNode) -> None:
        """Raises CS0113 where parts of a variable are not assigned."""
        if variable.is_mutable:
            return
        hint = "make a new value, `v = float3(1, v.y, v.z);`, or declare it `mutable`"
        if isinstance(part, ast.Call):
            name = part.callee.span.excerpt
            hint = f"define the whole function at once, `var {name}2(i) = ...;`, or declare it `mutable`"
        raise ProgramError("CS0113", part.span, f"`{part.span.excerpt}` cannot be assigned: values are immutable", hint)


class HostExecutor(StatementLowering):
    """Runs statements; conditions that depend on bound variables select between the values of both branches."""

    def run(self, statements: list[ast.AstNode]) -> Outcome:
        """Runs statements in the current scope."""
        return self._run(list(reversed(statements)))

    def _run(self, rest: Statements) -> Outcome:
        """Runs a stack of statements, whose top is the next one."""
        while rest:
            tree = rest.pop()
            if isinstance(tree, ScopeEnd):
                self.body.scope = tree.scope
                continue
            self._count_statement(tree)
            outcome = getattr(self, "visit_" + type(tree).__name__)(tree, rest)
            if outcome is not None:
                return outcome
        return None

    def _count_statement(self, tree: ast.AstNode) -> None:
        self.program.host.statement_count += 1
        if self.program.host.statement_count > MAX_HOST_STATEMENTS:
            message = f"the program runs more than {MAX_HOST_STATEMENTS} statements on the host"
            raise ProgramError("CS0601", tree.span, message, DEVICE_HINT)

    def _enter_block(self, statements: list[ast.AstNode], rest: Statements) -> None:
        rest.append(ScopeEnd(self.body.scope))
        rest.extend(reversed(statements))
        self.body.scope = Scope(self.body.scope)

    def visit_Block(self, tree: ast.Block, rest: Statements) -> None:
        """Statements in a scope of their own."""
        self._enter_block(tree.body, rest)

    def visit_Jump(self, tree: ast.Jump, rest: Statements) -> str:
        """`break` or `continue`."""
        return self.jump_kind(tree)

    def visit_Return(self, tree: ast.Return, rest: Statements) -> Returned:
        """`return value;`."""
        if tree.value is None or self.function is None:
            raise ProgramError("CS0208", tree.span, "`return` needs a value")
        return Returned(self.expressions.lower_as(tree.value, self.function.result_type))

    # Conditions

    def _condition(self, tree: ast.AstNode) -> DataValue:
        value = self.expressions.lower_operand(tree)
        is_data = isinstance(value, DataValue)
        return check_condition(value, tree.span, "compare it: `x != 0`" if is_data else "reduce it: `any(f)`, `all(f)`")

    def _constant_condition(self, condition: DataValue) -> bool | None:
        """The truth of a closed condition; None if it depends on bound variables or abstract arguments."""
        if not condition.is_closed:
            return None
        number = self.program.host.node_number(condition.node)
        return None if number is None else bool(number)

    def visit_If(self, tree: ast.If, rest: Statements) -> Outcome:
        """Runs one branch, or both where the condition depends on a bound variable."""
        condition = self._condition(tree.condition)
        known = self._constant_condition(condition)
        if known is not None:
            self._enter_block(tree.if_true if known else tree.if_false, rest)
            return None
        if not any(isinstance(t, (ast.Return, ast.Jump)) for t in walk(tree)):
            self._merge_branches(tree, condition)
            return None
        first, second = self._run_branch(tree.if_true, rest), self._run_branch(tree.if_false, rest)
        if isinstance(first, Returned) and isinstance(second, Returned):
            return Returned(self._select(tree, condition, first.value, second.value))
        if self.program.host.abstract_depth and condition.is_closed:
            return first if isinstance(first, Returned) else second if isinstance(second, Returned) else None
        message = f"{tree.condition.span.excerpt} depends on a bound variable, so a loop cannot be left here"
        raise ProgramError("CS0602", tree.span, message, f"{DEVICE_HINT}: it then runs at every point")

    def _select(self, tree: ast.If, condition: DataValue, if_true: Value, if_false: Value) -> Value:
        resolve = self.expressions.resolve
        values = (resolve(if_true, tree.span), resolve(if_false, tree.span))
        return self.expressions.select(tree.span, tree.condition.span, condition, *values)

    def _run_branch(self, statements: list[ast.AstNode], rest: Statements) -> Outcome:
        """Runs a branch and all that follows it on a copy of the variables."""
        scope_copies: dict[Scope, Scope] = {}
        copy = self.body.scope.clone(scope_copies)
        later = [ScopeEnd(scope_copies.get(s.scope, s.scope)) if isinstance(s, ScopeEnd) else s for s in rest]
        with self.body.block(Scope(copy)), self.body.guarded():
            return self._run([*later, ScopeEnd(copy), *reversed(statements)])

    def _merge_branches(self, tree: ast.If, condition: DataValue) -> None:
        """Runs both branches on copies; a variable that they leave with different values selects between them."""
        outer, ends = self.body.scope, []
        for statements in (tree.if_true, tree.if_false):
            ends.append(outer.clone({}))
            with self.body.block(Scope(ends[-1])), self.body.guarded():
                self.run(statements)
        for name, variable in outer.variables():
            if outer.find(name) is not variable:
                continue
            if_true, if_false = (end.find(name).value for end in ends)  # type: ignore[union-attr]  # a clone has it
            if if_true is if_false or if_true == if_false:
                variable.value = if_true
            elif if_true is None or if_false is None:
                variable.value = None
            else:
                value = self._select(tree, condition, if_true, if_false)
                assert variable.type is not None
                variable.value = self.expressions.convert(value, variable.type, tree.span)

    # Loops

    def visit_Loop(self, tree: ast.Loop, rest: Statements) -> Outcome:
        """The start, then the iterations, in a scope of their own."""
        with self.body.block() as scope:
            self.run(tree.start)
            self.loop_depth += 1
            outcome = self._iterate(tree, scope)
            self.loop_depth -= 1
        return outcome

    def _iterate(self, tree: ast.Loop, scope: Scope) -> Outcome:
        for iteration in count(1):
            self._count_statement(tree)
            if (iteration > 1 or tree.test_first) and self._loop_condition(tree, scope) is False:
                break
            with self.body.block(Scope(scope)):
                outcome = self.run(tree.body)
            if isinstance(outcome, Returned):
                return outcome
            if outcome == "break":
                break
            self.run(tree.step)
            if self.program.host.abstract_depth:
                break  # one iteration checks the body
            if iteration % MATERIALIZE_EVERY == 0:
                self.program.host.materialize_variables(scope)
        return None

    def _loop_condition(self, tree: ast.Loop, scope: Scope) -> bool | None:
        if tree.condition is None:
            return True
        condition = self._condition(tree.condition)
        if not condition.is_closed:
            names = condition.variable_names()
            message = f"a loop's condition cannot depend on the bound variable `{names}` here"
            raise ProgramError("CS0602", tree.condition.span, message, f"{DEVICE_HINT}: it then runs at every point")
        if condition.node.needs_evaluation and not self.program.host.abstract_depth:
            self.program.host.materialize_variables(scope)
            condition = self._condition(tree.condition)
        return self._constant_condition(condition)

    # Declarations and assignments

    def visit_VariableDeclaration(self, tree: ast.VariableDeclaration, rest: Statements) -> None:
        """`var x = e`, `let f(i) = e`, `float[] x = e`, or a declaration without a value."""
        self.declare_once(tree)
        type_ = self.program.types.resolve(tree.type) if tree.type is not None else None
        names, expressions = self.body.scope.names, self.expressions
        if tree.value is None:
            names[tree.name] = Variable(None, type_, is_mutable=tree.is_mutable)
            return
        if tree.parameters is not None:
            value: Value = self._declared_function(tree, tree.parameters, tree.value, type_)
            type_ = None
        elif type_ is not None:
            value = expressions.lower_as(tree.value, type_)
        else:
            value = expressions.lower_expression(tree.value)
        if isinstance(value, OverloadSet):
            value = expressions.resolve(value, tree.value.span)
        if tree.kind == "let":
            value = expressions.let_bind(value, tree.value.span)
        if isinstance(value, DataValue):
            value = self.builder.with_default_type(value)
            type_ = type_ or value.type
        elif isinstance(value, FunctionValue):
            type_ = type_ or value.type.as_function_type
        elif isinstance(value, DomainValue):
            type_ = DomainType(len(value.ranges))
        names[tree.name] = Variable(value, type_, is_mutable=tree.is_mutable)
        if self.program.declared is not None:
            self.program.declared[tree.name_span] = value

    def _declared_function(
        self, tree: ast.VariableDeclaration, parameters: list[ast.BoundParameter], body: ast.AstNode, type_: Type | None
    ) -> Value:
        """`var f(i) = body`, or `float f(i) = body`."""
        self.body.defining = tree.name
        value = self.expressions.lower_bound_function(parameters, body)
        self.body.defining = ""
        if type_ is None:
            return value
        if not isinstance(type_, Data):
            message = f"{tree.name}(...) yields data, not {type_}"
            raise ProgramError("CS0401", tree.span, message, f"`var {tree.name}(...) = ...`")
        return self.expressions.convert(value, FunctionType(type_, value.type.parameters), body.span)

    def visit_Assignment(self, tree: ast.Assignment, rest: Statements) -> None:
        """`x = e`; in loops, numbers are computed at once, so that a variable stays a leaf of the DAG."""
        variable, value = self.lower_assignment(tree)
        if isinstance(value, DataValue):
            value = self.builder.with_default_type(value)
            numbers = self.program.host.cheap_numbers(value) if self.loop_depth else None
            if numbers is not None:
                pairs = zip(value.nodes, numbers, strict=True)
                value = DataValue(value.type, tuple(self.dag.runtime_scalar(x, n.type, tree.name) for n, x in pairs))
        variable.value = value

    def visit_Restriction(self, tree: ast.Restriction, rest: Statements) -> None:
        """`int i : 0..n;`: restricts the bound variables of this name in the rest of the block."""
        for (name, span), restriction in zip(tree.names, self.expressions.lower_restriction(tree), strict=True):
            if self.body.scope.find(name) is not None:
                raise ProgramError("CS0312", span, f"`{name}` is already declared, so it cannot be a bound variable")
            self.body.scope.restrictions[name] = restriction


def always_returns(body: list[ast.AstNode]) -> bool:
    """Whether every path through the statements ends in a return or does not end."""
    for tree in body:
        if isinstance(tree, ast.If):
            returns = always_returns(tree.if_true) and always_returns(tree.if_false)
        elif isinstance(tree, ast.Block):
            returns = always_returns(tree.body)
        else:
            returns = isinstance(tree, ast.Return) or isinstance(tree, ast.Loop) and is_infinite_loop(tree)
        if returns:
            return True
    return False


def is_infinite_loop(tree: ast.Loop) -> bool:
    """Whether only a return can leave the loop."""
    is_true = tree.condition is None or isinstance(tree.condition, ast.Literal) and tree.condition.value is True
    return is_true and not any(isinstance(t, ast.Jump) and t.kind == "break" for part in tree.body for t in walk(part))


def fail_missing_return(function: UserFunction) -> NoReturn:
    """Raises CS0208."""
    span: Span = function.declaration.name_span
    message = f"{function.name} does not return a value on every path"
    raise ProgramError("CS0208", span, message, "end it with `return ...;`")
