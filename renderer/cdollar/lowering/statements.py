"""Lowers statements, by two tables with a function for each kind of statement.

HOST_RULES run the statements of a body that builds functions, once, while the program is compiled. DEVICE_RULES lower
the statements of a function of data to a device function, whose loops and branches run on the target at every point.

A HOST_RULE gets the stack `rest` of the statements that follow, the next one last, so that deep blocks need no
recursion: a block pushes its statements and a ScopeEnd, and a branch on an unknown condition runs `rest` twice. It
returns an Outcome. While a function is checked with abstract arguments (host.abstract_depth > 0), values are unknown:
all branches run, loops run once, and errors are kept so that later statements are checked too.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from math import prod
from typing import Any, NamedTuple, NoReturn

from renderer.cdollar.checker.program import Body, NotDeviceCode
from renderer.cdollar.checker.scopes import Scope, Variable
from renderer.cdollar.checker.tables import UserFunction
from renderer.cdollar.checker.values import DataValue, FunctionValue, OverloadSet, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import FollowingError, ProgramError, Span, raise_first
from renderer.cdollar.ir import device_function as device
from renderer.cdollar.ir.dag import MAX_NODES, UNKNOWN, Range, new_variables
from renderer.cdollar.ir.types import INT, Data, FunctionType, Record, Tuple, Type, component_types
from renderer.cdollar.lowering import domains
from renderer.cdollar.lowering.calls import lower_with_elements, read_element
from renderer.cdollar.lowering.conversions import convert, convert_data, let_bind, resolve
from renderer.cdollar.lowering.expressions import check_condition, checked_select
from renderer.cdollar.lowering.functions import make_function

# Statements of the host

MAX_HOST_STATEMENTS = 100_000  # statements that a program may run on the host
MATERIALIZE_EVERY = 128  # loop iterations after which the functions that variables hold are evaluated
DEVICE_HINT = "put the loop into a device function, which takes numbers and no arrays"
MAX_LOOP_NODES = MAX_NODES // 4  # nodes by which a loop over bound variables may grow the program, a second's work
POINT_HINT = f"{DEVICE_HINT}: it then runs at every point; over arrays, write `sum(..., k : a..b)`"


class Returned(NamedTuple):
    """The value of a `return` that was reached."""

    value: Value


class ScopeEnd(NamedTuple):
    """The end of a block in the stack of statements: restores the scope outside of the block."""

    scope: Scope


Outcome = Returned | str | None  # why statements end: a return, "break", "continue"; None after the last one
Statements = list[ast.AstNode | ScopeEnd]


def jump_kind(body: Body, tree: ast.Jump) -> str:
    """The kind of a jump, "break" or "continue"; raises CS0207 outside of a loop."""
    if not body.loop_depth:
        raise ProgramError("CS0207", tree.span, f"`{tree.kind}` is outside of a loop")
    return tree.kind


def check_not_declared(body: Body, tree: ast.VariableDeclaration) -> None:
    """Raises CS0109 if the block has a variable of this name."""
    if tree.name in body.scope.names:
        message = f"`{tree.name}` is declared twice in this block"
        raise ProgramError("CS0109", tree.name_span, message, "assign to it without a type, or use another name")


def assigned_value(body: Body, tree: ast.Assignment) -> tuple[Variable, Value]:
    """The variable on the left, and the new value converted to the variable's type.

    Raises CS0202 or CS0209 if there is no such variable or it is read-only.
    """
    variable = body.scope.find(tree.name)
    if variable is None:
        if body.program.globals.find(tree.name):
            raise ProgramError("CS0209", tree.name_span, f"`{tree.name}` is a constant of the program")
        message = f"the name `{tree.name}` is not declared"
        raise ProgramError("CS0202", tree.name_span, message, f"declare it: `var {tree.name} = ...;`")
    if variable.is_faulty:
        raise FollowingError("CS0204", tree.name_span, f"`{tree.name}` has no value")
    if variable.type is None:  # read-only (checker/scopes.py)
        message = f"`{tree.name}` is {variable.read_only_reason} and cannot be assigned"
        raise ProgramError("CS0209", tree.name_span, message)
    new = tree.value
    if tree.operator:
        new = ast.Binary(tree.span, tree.operator, ast.Name(tree.name_span, tree.name), new)
    if tree.target is not None:
        require_mutable(body, variable, tree.target)
    if isinstance(new, ast.WithElements):  # no full expression: new names in the indices need no reduction
        value: Value = lower_with_elements(body, new)
    else:
        value = domains.lower_expression(body, new, variable.type)
    return variable, convert(body, value, variable.type, tree.value.span)


def require_mutable(body: Body, variable: Variable, target: ast.AstNode) -> None:
    """Raises CS0113 unless the fields and elements of a variable, or the fields of its class, may be assigned."""
    type_name = variable.type.name if isinstance(variable.type, Record | Tuple) else ""
    if variable.is_mutable or type_name in body.program.types.mutable_classes:
        return
    hint = "make a new value, `v = float3(1, v.y, v.z);`, or declare it `mutable`"
    if isinstance(target, ast.Call):
        name = target.callee.span.excerpt
        hint = f"define the whole function at once, `var {name}2(i) = ...;`, or declare it `mutable`"
    raise ProgramError("CS0113", target.span, f"`{target.span.excerpt}` cannot be assigned: values are immutable", hint)


def always_returns(body: list[ast.AstNode]) -> bool:
    """True if every path through the statements ends in a return or does not end."""
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
    """True if only a return can leave the loop."""
    is_true = tree.condition is None or isinstance(tree.condition, ast.Literal) and tree.condition.value is True
    trees = (t for statement in tree.body for t in ast.walk(statement))
    return is_true and not any(isinstance(t, ast.Jump) and t.kind == "break" for t in trees)


def fail_missing_return(function: UserFunction) -> NoReturn:
    """Raises CS0208."""
    span: Span = function.declaration.name_span
    message = f"{function.name} does not return a value on every path"
    raise ProgramError("CS0208", span, message, "end it with `return ...;`")


def run(body: Body, statements: list[ast.AstNode]) -> Outcome:
    """Runs statements in the current scope."""
    return run_stack(body, list(reversed(statements)))


def run_stack(body: Body, rest: Statements) -> Outcome:
    """Runs a stack of statements, the last one first."""
    while rest:
        tree = rest.pop()
        if isinstance(tree, ScopeEnd):
            body.scope = tree.scope
            continue
        count_statement(body, tree)
        outcome = None
        try:
            outcome = HOST_RULES[type(tree)](body, tree, rest)
        except ProgramError as error:
            if not body.program.host.abstract_depth or not keep_error(body, tree, error):
                raise
        if outcome is not None:
            return outcome
    return None


def keep_error(body: Body, tree: ast.AstNode, error: ProgramError) -> bool:
    """Keep a statement's error, so that later statements are checked too; False for one that ends the check.

    The codes CS06.. are the limits of the compiler; statements outside of functions are not checked but run. A name
    that the statement declares is known afterwards, and its uses are no errors.
    """
    if error.code.startswith("CS06") or body.function is None:
        return False
    known = [(kept.span, kept.code) for kept in body.errors]
    if not isinstance(error, FollowingError) and (error.span, error.code) not in known:
        body.errors.append(error)
    body.defining = ""  # the error has left declared_function()
    if isinstance(tree, ast.VariableDeclaration):
        body.scope.names.setdefault(tree.name, Variable(None, is_faulty=True))
    return True


def count_statement(body: Body, tree: ast.AstNode) -> None:
    """Raises CS0601 after MAX_HOST_STATEMENTS statements."""
    body.program.host.statement_count += 1
    if body.program.host.statement_count > MAX_HOST_STATEMENTS:
        message = f"the program runs more than {MAX_HOST_STATEMENTS} statements on the host"
        raise ProgramError("CS0601", tree.span, message, DEVICE_HINT)


def enter_block(body: Body, statements: list[ast.AstNode], rest: Statements) -> None:
    """Pushes the statements of a block on the stack `rest`, and enters a new scope."""
    rest.append(ScopeEnd(body.scope))
    rest.extend(reversed(statements))
    body.scope = Scope(body.scope)


def run_return(body: Body, tree: ast.Return, rest: Statements) -> Returned:
    """`return value;`."""
    if tree.value is None or body.function is None:
        raise ProgramError("CS0208", tree.span, "`return` needs a value")
    return Returned(domains.lower_as(body, tree.value, body.function.result_type))


def lower_condition(body: Body, tree: ast.AstNode) -> DataValue:
    """A condition; raises CS0405 unless it is one bool."""
    value = domains.lower_resolved_expression(body, tree)
    is_data = isinstance(value, DataValue)
    return check_condition(value, tree.span, "compare it: `x != 0`" if is_data else "reduce it: `any(f)`, `all(f)`")


def constant_condition(body: Body, condition: DataValue) -> bool | None:
    """The truth of a closed condition; None if it depends on bound variables or abstract arguments."""
    if not condition.is_closed:
        return None
    number = body.program.host.node_number(condition.node)
    return None if number is None else bool(number)


def run_if(body: Body, tree: ast.If, rest: Statements) -> Outcome:
    """Runs the branch of a known condition, else both branches; raises CS0602.

    Without returns and jumps in the branches, their variables are merged (merge_branches). Else each branch is run with
    all statements after it, and if both return, the result selects between the returned values.
    """
    condition = lower_condition(body, tree.condition)
    known = constant_condition(body, condition)
    if known is not None:
        enter_block(body, tree.if_true if known else tree.if_false, rest)
        return None
    if not any(isinstance(t, (ast.Return, ast.Jump)) for t in ast.walk(tree)):
        merge_branches(body, tree, condition)
        return None
    first, second = run_branch(body, tree.if_true, rest), run_branch(body, tree.if_false, rest)
    if isinstance(first, Returned) and isinstance(second, Returned):
        return Returned(checked_select(body, tree, condition, first.value, second.value))
    if body.program.host.abstract_depth and condition.is_closed:  # a run knows the condition and takes one branch
        return first if isinstance(first, Returned) else second if isinstance(second, Returned) else None
    message = f"{tree.condition.span.excerpt} depends on a bound variable, so a loop cannot be left here"
    raise ProgramError("CS0602", tree.span, message, POINT_HINT)


def run_branch(body: Body, statements: list[ast.AstNode], rest: Statements) -> Outcome:
    """Runs a branch and all statements after it on a copy of the variables."""
    body.dag.count_expansion()
    scope_copies: dict[Scope, Scope] = {}
    copy = body.scope.clone(scope_copies)
    # the statements after the branch go on in the copies of their scopes
    later = [ScopeEnd(scope_copies.get(s.scope, s.scope)) if isinstance(s, ScopeEnd) else s for s in rest]
    with body.block(Scope(copy)), body.guarded():
        return run_stack(body, [*later, ScopeEnd(copy), *reversed(statements)])


def merge_branches(body: Body, tree: ast.If, condition: DataValue) -> None:
    """Runs both branches on copies; a variable that they leave with different values selects between them."""
    outer, ends = body.scope, []
    for statements in (tree.if_true, tree.if_false):
        ends.append(outer.clone({}))
        with body.block(Scope(ends[-1])), body.guarded():
            run(body, statements)
    for name, variable in outer.variables():
        if outer.find(name) is not variable:
            continue  # hidden by a variable of the same name in an inner scope
        if_true, if_false = (end.find(name).value for end in ends)  # type: ignore[union-attr]  # a clone has it
        if if_true is if_false or if_true == if_false:
            variable.value = if_true
        elif if_true is None or if_false is None:
            variable.value = None  # one branch gives it no value: to read it is an error
        else:
            value = checked_select(body, tree, condition, if_true, if_false)
            assert variable.type is not None
            variable.value = convert(body, value, variable.type, tree.span)


def run_loop(body: Body, tree: ast.Loop, rest: Statements) -> Outcome:
    """The start, then the iterations, in a new scope."""
    with body.block() as scope:
        run(body, tree.start)
        body.loop_depth += 1
        called = body.program.called  # the values of calls before the loop, which iterate() hides
        try:
            return iterate(body, tree, scope)
        finally:
            body.program.called = called
            body.loop_depth -= 1


def iterate(body: Body, tree: ast.Loop, scope: Scope) -> Outcome:
    """Runs the iterations of a loop."""
    program, expansions, nodes = body.program, body.dag.expansions, len(body.dag.intern_table)
    host = program.host
    for iteration in count(1):
        differentiations = host.differentiations
        program.called = {}  # no iteration keeps the arrays of another one
        body.dag.expansions = expansions  # MAX_EXPANSIONS is a budget outside of loops
        count_statement(body, tree)
        if (iteration > 1 or tree.test_first) and loop_condition(body, tree, scope) is False:
            break
        with body.block(Scope(scope)):
            outcome = run(body, tree.body)
        if isinstance(outcome, Returned):
            return outcome
        if outcome == "break":
            break
        run(body, tree.step)  # after the last statement, or after "continue"
        if host.abstract_depth:
            break  # one iteration of the loop checks its body
        if host.progress is not None:
            host.progress.advance()
        # A step of gradient descent: the next gradient would differentiate through this one, so what depends on it is
        # evaluated at once.
        has_gradient = host.differentiations > differentiations
        if has_gradient or iteration % MATERIALIZE_EVERY == 0 or len(body.dag.intern_table) > MAX_NODES // 2:
            host.materialize_variables(scope)
            if len(body.dag.intern_table) > nodes + MAX_LOOP_NODES:
                message = "this loop runs on the host and repeats its body: the program becomes too large here"
                raise ProgramError("CS0603", tree.span, message, POINT_HINT)
    return None


def loop_condition(body: Body, tree: ast.Loop, scope: Scope) -> bool | None:
    """True if a loop continues; None if the condition depends on abstract arguments; raises CS0602."""
    if tree.condition is None:
        return True
    condition = lower_condition(body, tree.condition)
    if not condition.is_closed:
        names = condition.variable_names()
        message = f"a loop's condition cannot depend on the bound variable `{names}` here"
        raise ProgramError("CS0602", tree.condition.span, message, POINT_HINT)
    if condition.node.needs_evaluation and not body.program.host.abstract_depth:
        # what the condition is computed from is evaluated with all variables, once for both
        body.program.host.materialize_variables(scope)
        condition = lower_condition(body, tree.condition)
    return constant_condition(body, condition)


def run_declaration(body: Body, tree: ast.VariableDeclaration, rest: Statements) -> None:
    """`var x = e`, `let f(i) = e`, `float[] x = e`, or a declaration without a value."""
    check_not_declared(body, tree)
    type_ = body.program.types.resolve(tree.type) if tree.type is not None else None
    names = body.scope.names
    if tree.sizes:
        names[tree.name] = zero_array(body, tree)
        return
    if tree.value is None:
        names[tree.name] = Variable(None, type_, is_mutable=tree.is_mutable)
        return
    if tree.parameters is not None:
        value: Value = declared_function(body, tree, type_)
        type_ = None
    elif type_ is not None:
        value = domains.lower_as(body, tree.value, type_)
    else:
        value = domains.lower_expression(body, tree.value)
    if isinstance(value, OverloadSet):
        value = resolve(body, value, tree.value.span)
    if tree.kind == "let":
        value = let_bind(body, value, tree.value.span)
    if isinstance(value, DataValue):
        value = body.builder.with_default_type(value)
    assert not isinstance(value, OverloadSet), "resolve() has made it a function"
    type_ = type_ or (value.type.as_function_type if isinstance(value, FunctionValue) else value.type)
    names[tree.name] = Variable(value, type_, is_mutable=tree.is_mutable)
    body.program.note(tree.name_span, value)


MAX_LOCAL_COMPONENTS = 1024  # scalar components of one local array, all elements together
SIZE_HINT = f"write the number, at most {MAX_LOCAL_COMPONENTS} components: `float t[8];`"


def zero_array(body: Body, tree: ast.VariableDeclaration) -> Variable:
    """`float t[3];` in a body that builds functions: a mutable function that is 0."""
    numbers = [domains.host_int(body, size) for size in tree.sizes]
    variables = new_variables(UNKNOWN if number is None else Range(0, max(0, number)) for number in numbers)
    value = make_function(body.dag, variables, body.builder.zero(element_type(body, tree)))
    return Variable(value, value.type, is_mutable=True)


def element_type(body: Body, tree: ast.VariableDeclaration) -> Data:
    """The type of the elements of a local array; raises CS0218."""
    assert tree.type is not None, "the parser has seen to it"
    type_ = body.program.types.resolve(tree.type)
    if not isinstance(type_, Data):
        raise ProgramError("CS0218", tree.span, f"the elements of a local array are data, not {type_}")
    return type_


def declared_function(body: Body, tree: ast.VariableDeclaration, type_: Type | None) -> Value:
    """The function of `var f(i) = e`, or of `float f(i) = e`; raises CS0401."""
    assert tree.parameters is not None and tree.value is not None, "the parser demands the value of a function"
    body.defining = tree.name  # for the message where e reads f itself
    value = domains.lower_bound_function(body, tree.parameters, tree.value)
    body.defining = ""
    if type_ is None:
        return value
    if not isinstance(type_, Data):
        message = f"{tree.name}(...) yields data, not {type_}"
        raise ProgramError("CS0401", tree.span, message, f"`var {tree.name}(...) = ...`")
    return convert(body, value, FunctionType(type_, value.type.parameters), tree.value.span)


def run_assignment(body: Body, tree: ast.Assignment, rest: Statements) -> None:
    """`x = e`; in loops, cheap numbers are computed at once, so that the variable stays a leaf of the DAG."""
    variable, value = assigned_value(body, tree)
    if isinstance(value, DataValue):
        value = body.builder.with_default_type(value)
        numbers = body.program.host.cheap_numbers(value) if body.loop_depth else None
        if numbers is not None:
            pairs = zip(value.nodes, numbers, strict=True)
            value = DataValue(value.type, tuple(body.dag.runtime_scalar(x, n.type, tree.name) for n, x in pairs))
    variable.value = value


def run_restriction(body: Body, tree: ast.Restriction, rest: Statements) -> None:
    """`int i : 0..n;`: restricts the bound variables of this name in the rest of the block."""
    for (name, span), restriction in zip(tree.names, domains.lower_restriction(body, tree), strict=True):
        if domains.has_value(body, name):
            raise ProgramError("CS0312", span, f"`{name}` is already declared, so it cannot be a bound variable")
        body.scope.restrictions[name] = restriction


HOST_RULES: Mapping[type[ast.AstNode], Callable[[Body, Any, Statements], Outcome]] = {
    ast.VariableDeclaration: run_declaration, ast.Assignment: run_assignment, ast.If: run_if, ast.Loop: run_loop,
    ast.Jump: lambda body, tree, rest: jump_kind(body, tree), ast.Return: run_return,
    ast.Block: lambda body, tree, rest: enter_block(body, tree.body, rest), ast.Restriction: run_restriction,
}  # fmt: skip


# Statements of device functions


def lower_device_function(body: Body) -> device.DeviceFunction:
    """The device function of a body; raises CS0208 if a path does not return, NotDeviceCode if it builds functions."""
    function = body.function
    assert function is not None, "the body is a function's"
    declaration, result = function.declaration, function.result_type
    if not isinstance(result, Data):
        raise NotDeviceCode
    for name, type_ in zip(function.parameter_names, function.parameter_types, strict=True):
        if not isinstance(type_, Data):
            raise NotDeviceCode
        body.scope.names[name] = Variable(new_local(body, name, type_), type_)
    parameters = tuple(body.locals)
    statements = lower_block(body, declaration.body)
    raise_first(body.errors)
    if not always_returns(declaration.body):
        fail_missing_return(function)
    others = body.locals[len(parameters) :]
    return device.DeviceFunction(function.name, parameters, result, declaration.name_span, statements, others)


def new_local(body: Body, name: str, type_: Data) -> DataValue:
    """A local variable: one device.Local for each component."""
    new = [device.Local(f"{name}{k}" if k else name, scalar) for k, scalar in enumerate(component_types(type_))]
    body.locals += new
    return DataValue(type_, tuple(body.dag.intern("local", local.type, (), local) for local in new))


def lower_block(body: Body, statements: list[ast.AstNode]) -> tuple[device.Statement, ...]:
    """Statements in a new scope."""
    with body.block():
        return tuple(lower_statements(body, statements))


def lower_statements(body: Body, statements: list[ast.AstNode]) -> list[device.Statement]:
    """Statements in the current scope."""
    lowered: list[device.Statement] = []
    for tree in statements:
        try:
            lowered += DEVICE_RULES[type(tree)](body, tree)
        except ProgramError as error:
            if not keep_error(body, tree, error):
                raise
    return lowered


def lower_value(body: Body, tree: ast.AstNode, type_: Data | None = None) -> DataValue:
    """An expression of data, converted to `type_` if given; raises NotDeviceCode for functions."""
    value = domains.lower_resolved_expression(body, tree, type_)
    if not isinstance(value, DataValue):
        raise NotDeviceCode
    return value if type_ is None else convert_data(body, value, type_, tree.span)


def lower_declaration(body: Body, tree: ast.VariableDeclaration) -> list[device.Statement]:
    """A local variable; without a value it starts as zero."""
    if tree.parameters is not None or tree.kind == "let":  # functions, and values of the host that are evaluated once
        raise NotDeviceCode
    check_not_declared(body, tree)
    if tree.sizes:
        return [declare_local_array(body, tree)]
    if tree.type is None:
        assert tree.value is not None
        value = body.builder.with_default_type(lower_value(body, tree.value))
    else:
        type_ = body.program.types.resolve(tree.type)
        if not isinstance(type_, Data):
            raise NotDeviceCode
        value = body.builder.zero(type_) if tree.value is None else lower_value(body, tree.value, type_)
    local = new_local(body, tree.name, value.type)
    body.program.note(tree.name_span, local)
    body.scope.names[tree.name] = Variable(local, value.type, is_mutable=tree.is_mutable)
    return [store(local, value)]


def declare_local_array(body: Body, tree: ast.VariableDeclaration) -> device.ClearOp:
    """`float t[2, 3];`: an array whose elements are 0; raises CS0218 for a size that is no number of the text."""
    type_, sizes = element_type(body, tree), [lower_value(body, size, INT).node for size in tree.sizes]
    shape = tuple(int(node.attribute.number) if node.is_constant else 0 for node in sizes)
    types = component_types(type_)
    if min(shape) < 1 or prod(shape) * len(types) > MAX_LOCAL_COMPONENTS:
        message = f"the size of the local array `{tree.name}` is not a number of the text, or too large"
        raise ProgramError("CS0218", tree.span, message, SIZE_HINT)
    arrays = tuple(device.LocalArray(tree.name, scalar, shape) for scalar in types)
    type_of_array = FunctionType(type_, (INT,) * len(shape), is_array=True)
    body.scope.names[tree.name] = Variable(None, type_of_array, is_mutable=True, arrays=arrays)
    return device.ClearOp(arrays)


def lower_element_store(body: Body, variable: Variable, tree: ast.Assignment) -> list[device.Statement]:
    """`t[i] = e`; raises CS0113 for an assignment to the whole array."""
    if not isinstance(tree.value, ast.WithElements):
        message = f"`{tree.name}` is a local array, whose elements alone are assigned"
        raise ProgramError("CS0113", tree.span, message, f"`{tree.name}[i] = ...;`")
    element = read_element(body, variable, tree.value.indices, tree.span)
    value = lower_value(body, tree.value.value, element.type)
    return [device.StoreOp(element.nodes, value.nodes)]


def lower_assignment(body: Body, tree: ast.Assignment) -> list[device.Statement]:
    """An assignment: a store to a local variable."""
    local = body.scope.find(tree.name)
    if local is not None and local.arrays:
        return lower_element_store(body, local, tree)
    variable, value = assigned_value(body, tree)
    assert isinstance(value, DataValue) and isinstance(variable.value, DataValue), "device code computes with data"
    return [store(variable.value, value)]


def lower_if(body: Body, tree: ast.If) -> list[device.Statement]:
    """An `if`: a branch in device code."""
    condition = lower_condition(body, tree.condition).node
    return [device.BranchOp(condition, lower_block(body, tree.if_true), lower_block(body, tree.if_false))]


def lower_loop(body: Body, tree: ast.Loop) -> list[device.Statement]:
    """A loop: the statements of its start, then the loop, in a new scope."""
    with body.block():
        start = lower_statements(body, tree.start)
        condition = lower_condition(body, tree.condition).node if tree.condition is not None else None
        step = lower_block(body, tree.step)
        body.loop_depth += 1
        statements = lower_block(body, tree.body)
        body.loop_depth -= 1
    return [*start, device.LoopOp(condition, step, statements, tree.test_first)]


def lower_return(body: Body, tree: ast.Return) -> list[device.Statement]:
    """`return value;`."""
    assert body.function is not None and isinstance(body.function.result_type, Data), "device functions return data"
    if tree.value is None:
        message = f"`return` needs a value: {body.function.name} returns {body.function.result_type}"
        raise ProgramError("CS0208", tree.span, message)
    return [device.ReturnOp(lower_value(body, tree.value, body.function.result_type).nodes)]


def fail_restriction(body: Body, tree: ast.Restriction) -> NoReturn:
    """Raises NotDeviceCode: device code has no bound variables."""
    raise NotDeviceCode


def store(local: DataValue, value: DataValue) -> device.StoreOp:
    """Assigns a local variable's components."""
    return device.StoreOp(tuple(node.attribute for node in local.nodes), value.nodes)


DEVICE_RULES: Mapping[type[ast.AstNode], Callable[[Body, Any], Iterable[device.Statement]]] = {
    ast.VariableDeclaration: lower_declaration, ast.Assignment: lower_assignment, ast.If: lower_if,
    ast.Loop: lower_loop, ast.Jump: lambda body, tree: [device.JumpOp(jump_kind(body, tree))],
    ast.Return: lower_return, ast.Block: lambda body, tree: lower_block(body, tree.body),
    ast.Restriction: fail_restriction,
}  # fmt: skip
