"""Full expressions, the names in them, their bound variables, and the domains of functions.

An unknown name in an index, as `i` in `a(i)`, is a bound variable. `assign_binders` finds the reduction that binds it.
The inference of checker/domains.py then finds its range. A full expression is one that is no operand of another: the
right side of a statement or a condition, for example; bound variables never leave it. `tree` is a node of the syntax
tree; a box is a tuple of ranges, one for each dimension. Most functions return the Value of a tree in a Body: its type
and its DAG nodes.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple, NoReturn

from renderer.cdollar.checker.domains import DataRange, InferenceContext, count_points
from renderer.cdollar.checker.node_builder import CONSTANTS, FUNCTIONS
from renderer.cdollar.checker.program import Body, lower
from renderer.cdollar.checker.scopes import NameRestriction, Variable
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, Operand, OverloadSet, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.frontend.hints import WORDS, did_you_mean
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.affine import index_bounds
from renderer.cdollar.ir.operations import OPERATIONS, REDUCER_NAMES
from renderer.cdollar.ir.types import BOOL, FLOAT, INT, PROMOTED, UINT, FunctionType, Scalar, Type
from renderer.cdollar.lowering.conversions import convert, resolve
from renderer.cdollar.lowering.functions import apply_at, eta_expand, make_function

# Names

Reductions = tuple[ast.AstNode, ...]  # the possible reductions around a name, the outermost first


def find_variable(body: Body, name: str) -> Variable | None:
    """The variable or constant of the program of this name."""
    return body.scope.find(name) or body.program.globals.find(name)


def is_function(body: Body, name: str) -> bool:
    """True if a function of the program or a built-in function has this name."""
    return name in body.program.functions or name in FUNCTIONS


def has_value(body: Body, name: str) -> bool:
    """True if a variable of this name is more than a declaration `int l;`, which may declare a bound variable."""
    variable = find_variable(body, name)
    return variable is not None and (variable.value is not None or variable.type not in (INT, UINT))


def is_known(body: Body, name: str) -> bool:
    """True if the name is declared; other names in indices are bound variables."""
    return has_value(body, name) or is_function(body, name) or name in CONSTANTS


def fail_unknown(body: Body, tree: ast.Name) -> NoReturn:
    """Raises CS0216 for a function that is defined by itself, else CS0204 or CS0202 with a similar name as the hint."""
    if find_variable(body, tree.name) is not None:
        raise ProgramError("CS0204", tree.span, f"`{tree.name}` is used before it has a value")
    if tree.name == body.defining:
        message = f"`{tree.name}` is defined by itself, which no point can be computed from"
        hint = "sum to each point, `var s(i : a) = sum(k <= i ? a(k) : 0, k : a)`, or `fold` for the last alone"
        raise ProgramError("CS0216", tree.span, message, hint)
    functions = body.program.functions
    known = functions.overloads.keys() | functions.generics.keys() | FUNCTIONS.keys() | CONSTANTS.keys()
    hint = similar_variable(body, tree.name) or did_you_mean(tree.name, known) or "declare it before its use"
    raise ProgramError("CS0202", tree.span, f"the name `{tree.span.excerpt}` is not declared", hint)


def similar_variable(body: Body, name: str) -> str:
    """The hint for an unknown name: what another language means by it, or a variable of a similar name; else ""."""
    scopes = (body.scope, body.program.globals)
    return WORDS.get(name) or did_you_mean(name, {known for scope in scopes for known, _ in scope.variables()})


def is_index_call(body: Body, callee: ast.AstNode) -> bool:
    """True if a call of `callee` indexes a function, so that unknown names in the arguments are bound variables."""
    if not isinstance(callee, ast.Name):
        return True
    variable = find_variable(body, callee.name)
    if variable is not None:
        return isinstance(variable.value, FunctionValue) or variable.is_faulty
    return callee.name in body.program.functions


def is_reduction_call(body: Body, tree: ast.AstNode) -> bool:
    """True if the expression reduces the bound variables of its operand that nothing else binds."""
    if isinstance(tree, ast.Unary):
        return tree.operator in "+*"
    if not isinstance(tree, ast.Call) or not isinstance(tree.callee, ast.Name):
        return False
    name = tree.callee.name
    if body.scope.find(name):
        return False
    if name == "fold" or len(tree.arguments) != 1:
        return name == "fold"
    if name in body.program.functions:
        return any(f.is_reduction_operator for f in body.program.functions.get(name))
    return name in REDUCER_NAMES


def assign_binders(body: Body, tree: ast.AstNode, context: InferenceContext, parameters: list[str]) -> None:
    """Assigns each unknown name in `tree` to the innermost reduction around all its occurrences, in `context.binders`.

    `parameters` are the bound variables on the left side, `var c(j) = ...`. Raises CS0202, CS0216 or CS0302.
    """
    occurrences: dict[str, list[tuple[ast.Name, Reductions, bool]]] = {}
    for name, reductions, in_index in name_occurrences(body, tree, (), in_index=False, hidden=frozenset(parameters)):
        if not is_known(body, name.name):
            occurrences.setdefault(name.name, []).append((name, reductions, in_index))
    for text, uses in occurrences.items():
        first, common, _ = uses[0]  # `common`: the reductions around all uses of the name
        for _, reductions, _ in uses[1:]:
            common = tuple(a for a, b in zip(common, reductions, strict=False) if a is b)
        if not any(in_index for _, _, in_index in uses) and body.scope.restriction(text) is None:
            fail_unknown(body, first)
        if not common:
            message = f"the bound variable `{text}` is neither declared on the left nor reduced"
            hint = f"`var c({text}) = ...` keeps it, `+ (...)` around all its uses or `sum(..., int {text})` reduces it"
            meant = similar_variable(body, text) if len(text) > 1 else ""
            if meant:
                message = f"`{text}` is not declared, nor bound by the left side or a reduction"
                hint = f"{meant}; {hint}"
            raise ProgramError("CS0302", first.span, message, hint)
        context.binders.setdefault(id(common[-1]), []).append(text)


def name_occurrences(
    body: Body, tree: ast.AstNode, reductions: Reductions, in_index: bool, hidden: frozenset[str]
) -> Iterator[tuple[ast.Name, Reductions, bool]]:
    """The names in a tree except `hidden` ones: (name, reductions around the name, True if the name is in an index).

    `reductions` and `in_index` describe the tree itself. `hidden` are names that something inside the full expression
    declares: parameters of lambdas, names of `let ... in`, names that a reduction restricts.
    """
    if isinstance(tree, ast.Name):
        if tree.name not in hidden:
            yield tree, reductions, in_index
        return
    if isinstance(tree, ast.Lambda):
        yield from name_occurrences(body, tree.body, reductions, in_index, hidden | {v.name for v in tree.parameters})
        return
    if isinstance(tree, ast.LetIn):
        yield from name_occurrences(body, tree.value, reductions, in_index, hidden)
        yield from name_occurrences(body, tree.body, reductions, in_index, hidden | {tree.name})
        return
    inside = reductions
    if isinstance(tree, (ast.Unary, ast.Call)) and is_reduction_call(body, tree):
        inside = (*reductions, tree)
        # a name with a value cannot be reduced: reduced_variables() says so
        restricted = [r for r in tree.restrictions if not has_value(body, r.names[0][0])]
        hidden |= {name for r in restricted for name, _ in r.names}
        for restriction in tree.restrictions:
            if restriction.domain is not None:  # domains lie outside of the reduction
                check_own_names(restriction, restriction.domain, hidden)
                yield from name_occurrences(body, restriction.domain, reductions, in_index, hidden)
    if isinstance(tree, ast.Call):
        if not isinstance(tree.callee, ast.Name):
            yield from name_occurrences(body, tree.callee, inside, in_index, hidden)
        elif not is_known(body, tree.callee.name) and tree.callee.name not in hidden:
            fail_unknown(body, tree.callee)
        is_index, arguments = is_index_call(body, tree.callee), tree.arguments
        if isinstance(tree.callee, ast.Name) and (name := tree.callee.name) in ("grad", "value_and_grad"):
            is_redefined = find_variable(body, name) is not None or name in body.program.functions
            # The further arguments of grad() are names of parameters, not expressions.
            arguments = arguments if is_redefined else arguments[:1]
        for argument in arguments:
            yield from name_occurrences(body, argument, inside, is_index or in_index, hidden)
        return
    for child in ast.children(tree):
        if not isinstance(child, (ast.Restriction, ast.NamedType, ast.FunctionalType)):
            yield from name_occurrences(body, child, inside, in_index, hidden)


def check_own_names(restriction: ast.Restriction, domain: ast.AstNode, hidden: frozenset[str]) -> None:
    """Raises CS0202 for `k : h(k) > 0`, a domain that is written as a condition on its own variable."""
    restricted = {name for name, _ in restriction.names} & hidden
    uses = [] if isinstance(domain, ast.Lambda) else [n for n in ast.walk(domain) if isinstance(n, ast.Name)]
    for use in uses:
        if use.name in restricted:
            hint = f"a condition is a function with a name: `{use.name} : j => ... j ...`"
            raise ProgramError("CS0202", use.span, f"`{use.name}` has no value in its own domain", hint)


def type_from_first_use(body: Body, name: str, tree: ast.AstNode) -> Type | None:
    """The type of the first parameter to which `tree` passes a new bound variable; None if it is unknown."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.callee, ast.Name):
            continue
        for position, argument in enumerate(call.arguments):
            if isinstance(argument, ast.Name) and argument.name == name:
                types = callee_parameter_types(body, call.callee.name)
                if position < len(types) and isinstance(types[position], Scalar):
                    return types[position]
    return None


def callee_parameter_types(body: Body, name: str) -> tuple[Type, ...]:
    """The parameter types of the first function of a name; () if they are not known."""
    variable = find_variable(body, name)
    if variable is not None:
        return variable.value.type.parameters if isinstance(variable.value, FunctionValue) else ()
    if overloads := body.program.functions.get(name):
        return overloads[0].parameter_types
    operation = OPERATIONS.get(name)
    return (FLOAT, FLOAT) if operation and operation.parameters[0] == "r" else ()  # "r": it takes floating point only


# Full expressions and bound variables

DOMAIN_FUNCTIONS = ("domain", "size", "low", "high", "empty")
ENDS = {"low": min, "high": max}  # how an end of a union follows from the ends of its boxes
DOMAIN_MEMBERS = {"lo": "low", "hi": "high", "Length": "size"} | {name: name for name in (*ENDS, "size", "empty")}


def lower_expression(body: Body, tree: ast.AstNode, expected: Type | None = None) -> Value:
    """A full expression: every bound variable in it is reduced by one of its reductions."""
    with body.program.inference.context() as context:
        assign_binders(body, tree, context, [])
        return lower(body, tree, expected)


def lower_as(body: Body, tree: ast.AstNode, type_: Type) -> Value:
    """A full expression, converted to a type."""
    return convert(body, lower_expression(body, tree, type_), type_, tree.span)


def lower_resolved_expression(body: Body, tree: ast.AstNode, expected: Type | None = None) -> Operand:
    """A full expression that is data or a function; raises CS0203 for a domain."""
    return resolve(body, lower_expression(body, tree, expected), tree.span)


def lower_restriction(body: Body, tree: ast.Restriction) -> list[NameRestriction]:
    """The restriction of each name of a statement such as `int i : 0..n;`.

    The ends of `j : 0..i;` have values only where i is bound: dependent_restriction() finds the statement there.
    """
    if isinstance(tree.domain, ast.RangeExpression) and any(
        isinstance(node, ast.Name) and not is_known(body, node.name) and body.scope.restriction(node.name) is not None
        for node in ast.walk(tree.domain)
    ):
        return [NameRestriction(None, None, tree.span, tree)]
    with body.program.inference.context() as context:
        if tree.domain is not None:
            assign_binders(body, tree.domain, context, [])
        return declared_restrictions(body, tree, tree.span, len(tree.names))


def dependent_restriction(body: Body, name: str) -> ast.Restriction | None:
    """The statement `j : 0..i;` that restricts the name by other bound variables, if there is one."""
    restriction = body.scope.restriction(name)
    return restriction.statement if restriction is not None else None


def lower_operand(body: Body, tree: ast.AstNode) -> Operand:
    """An operand inside of a full expression: data or a function; raises CS0203 for a domain."""
    return resolve(body, lower(body, tree), tree.span)


def host_int(body: Body, tree: ast.AstNode) -> int | None:
    """An int or uint that is known while the program is built; None if it depends on abstract arguments."""
    value = lower_operand(body, tree)
    if not isinstance(value, DataValue) or value.type not in (INT, UINT):
        message = f"an end of a range is int, but {tree.span.excerpt} is {value.type}"
        raise ProgramError("CS0314", tree.span, message)
    body.require_host()
    if not value.is_closed:
        message = f"the end of a range cannot depend on `{value.variable_names()}` here: this domain is a box"
        hint = "reductions by operators have such ranges: `sum(a(j), j : 0..i)`"
        raise ProgramError("CS0315", tree.span, message, hint)
    number = body.program.host.node_number(value.node)
    return None if number is None else int(number)


def lower_range(body: Body, tree: ast.RangeExpression) -> DomainValue:
    """`low..high`."""
    low, high = host_int(body, tree.low), host_int(body, tree.high)
    if low is None or high is None:
        return DomainValue((ir.UNKNOWN,))
    return DomainValue((ir.Range(low, max(low, high), provenance=tree.span.provenance),))


def restriction_ranges(body: Body, tree: ast.AstNode, rank: int, box: ir.Box | None = None) -> list[ir.Dimension]:
    """The ranges of a restriction's right side: a range, a function's domain, or `box`, one box of a union.

    Raises CS0314 or CS0323.
    """
    span = tree.span
    if box is not None:
        value: Value = DomainValue(box)
    else:  # reductions.union_restriction() may have lowered the domain already, to see whether it is a union
        value = body.domains.pop(id(tree), None) or lower(body, tree)
    if isinstance(value, OverloadSet):
        value = resolve(body, value, span)
    if isinstance(value, FunctionValue):
        value = DomainValue(value.domain)
    if not isinstance(value, DomainValue):
        message = f"a restriction needs a range or a function, but {span.excerpt} is {value.type}"
        raise ProgramError("CS0314", span, message, "`0..n`, `f` or `domain(f)[0]`")
    if len(value.ranges) != rank:
        message = f"{span.excerpt} has {len(value.ranges)} dimensions, but restricts {rank}"
        raise ProgramError("CS0314", span, message, "`(i, j) : f`, or `i : domain(f)[0]`")
    if value.further_boxes:
        message = f"{span.excerpt} is a union of {len(value.boxes)} boxes, but a function's domain is one box"
        raise ProgramError("CS0323", span, message, "unions restrict reductions: `sum(a(i), i : (0..3) | (5..9))`")
    if ir.INFINITE in value.ranges:
        raise ProgramError("CS0314", span, f"{span.excerpt} has an infinite domain: it restricts nothing")
    return [
        replace(r, provenance=span.provenance, extends=False) if isinstance(r, ir.Range) else r for r in value.ranges
    ]


def new_bound_variable(body: Body, name: str, span: Span, reduced: bool, declared: NameRestriction) -> ir.BoundVariable:
    """A new bound variable in the current scope and context; raises CS0305.

    Its type and range come from `declared`, else from a restriction statement for its name.
    """
    restrictions = [r for r in (declared, body.scope.restriction(name)) if r is not None]
    outer = body.scope.find(name)  # a declaration without a value, `uint l;`, gives the type of bound variables
    written = [*(r.type for r in restrictions), outer.type if outer is not None else None]
    type_ = next((t for t in written if t is not None), INT)
    if not isinstance(type_, Scalar) or type_.name in ("bool", "long", *PROMOTED):
        message = f"a bound variable cannot be {type_}"
        raise ProgramError("CS0305", span, message, "allowed: int, uint, float, double")
    range_: ir.Dimension = ir.NOT_INFERRED if type_ in (INT, UINT) else ir.INFINITE
    restriction = next((r for r in restrictions if r.range is not None), None)
    if restriction is not None and restriction.range is not None:
        if range_ is ir.INFINITE:
            raise ProgramError("CS0305", restriction.span, f"`{name}` is {type_}: only int and uint have a range")
        range_ = restriction.range
    variable = ir.BoundVariable(name, type_.name, range_, reduced)
    context = body.program.inference.current
    assert context is not None
    context.variables[variable] = span
    if restriction is not None:
        context.restricted.add(variable)
    value = DataValue(type_, (body.dag.bound_variable(variable),))
    body.scope.names[name] = Variable(value, None, "a bound variable")
    return variable


def reduced_variables(body: Body, restriction: ast.Restriction) -> list[ir.BoundVariable]:
    """`l : 0..n`, `int l`, `(i, j) : f` in a reduction: new variables."""
    declared_at, test = (restriction.domain or restriction).span, restriction_test(body, restriction.domain)
    declared = declared_restrictions(body, restriction, declared_at, len(restriction.names), test)
    variables = []
    for (name, span), declaration in zip(restriction.names, declared, strict=True):
        if has_value(body, name):
            message = f"`{name}` is already declared, so this reduction cannot reduce it"
            raise ProgramError("CS0312", span, message, "use another name")
        variables.append(new_bound_variable(body, name, restriction.span, reduced=True, declared=declaration))
    if test is not None:  # one condition on all variables, kept under the first one
        body.program.tests[variables[0]] = test.condition(variables)
    return variables


class RestrictionTest(NamedTuple):
    """A domain that is not a box, such as `j : 0..i`: the points of a box at which a condition is true.

    `box` is the range of each variable; None if the indices that use the variable give it. condition(variables) makes
    the bool node; it is kept by variable in Program.tests, for the reduction or function that binds the variable.
    """

    box: ir.Dimension | None
    condition: Callable[[list[ir.BoundVariable]], ir.Node]


def restriction_test(body: Body, domain: ast.AstNode | None) -> RestrictionTest | None:
    """The test of `low..high` with an end that depends on bound variables, or of a function that yields bool.

    None for a box. A function is a condition only if its domain is infinite; `i : d` with a finite d is d's domain.
    """
    if domain is None:
        return None
    if isinstance(domain, ast.RangeExpression):
        ends = [lower_operand(body, domain.low), lower_operand(body, domain.high)]
        if all(isinstance(end, DataValue) and end.type in (INT, UINT) for end in ends):
            low, high = (end.node for end in ends if isinstance(end, DataValue))
            return None if not low.free_variables | high.free_variables else range_test(body, low, high, domain.span)
    function = body.domains.get(id(domain))  # the domain's value, if reductions.union_restriction() has lowered it
    if not isinstance(function, FunctionValue) or function.type.result != BOOL or set(function.domain) != {ir.INFINITE}:
        return None

    def test(variables: list[ir.BoundVariable]) -> ir.Node:
        points = [DataValue(Scalar(v.type), (body.dag.bound_variable(v),)) for v in variables]
        return apply_at(body, function, points, domain.span, free=frozenset()).node

    return RestrictionTest(None, test)


def range_test(body: Body, low: ir.Node, high: ir.Node, span: Span) -> RestrictionTest:
    """The test of `low..high`; its box is the least one, if the ranges of the variables in the ends are known."""
    body.require_host()
    bounds = [index_bounds(end) for end in (low, high)]
    ranges = [v.range for v in low.free_variables | high.free_variables]
    box: ir.Dimension | None = ir.UNKNOWN if ir.UNKNOWN in ranges or body.program.host.abstract_depth else None
    if bounds[0] is not None and bounds[1] is not None:
        box = ir.Range(bounds[0][0], max(bounds[0][0], bounds[1][1]), narrowed=True, provenance=span.provenance)

    def test(variables: list[ir.BoundVariable]) -> ir.Node:
        point = body.dag.bound_variable(variables[0])
        # an end without variables is an end of the box, which needs no test
        ends = [(name, end) for name, end in ((">=", low), ("<", high)) if box is None or end.free_variables]
        tests = [body.builder.apply(name, end.type, point, end) for name, end in ends]
        if box is None:
            # The indices that use the variable give its range, and the RangeCheck tests at run time that the ends stay
            # in it. Without such indices, the range is least_box().
            data_range = DataRange(body.guard_depth + 1, partial(least_box, body, low, high, span))
            body.program.inference.data_ranges[variables[0]] = data_range
            tests.insert(0, body.dag.apply(ir.RangeCheck(variables[0]), "bool", low, high))
            body.dag.spans.setdefault(tests[0], span)
        return body.builder.chain("&&", tuple(tests)).node

    return RestrictionTest(box, test)


def least_box(body: Body, low: ir.Node, high: ir.Node, span: Span) -> ir.Range | None:
    """The range from the least `low` to the greatest `high`; None while the ranges of their variables are not known."""
    found = []
    for name, end in (("min", low), ("max", high)):
        variables = ir.in_order(end.free_variables)
        if not all(isinstance(v.range, ir.Range) and v.range.size for v in variables):
            return None
        node = body.dag.intern("reduce", end.type, (end,), (ir.Reduction(name), variables)) if variables else end
        body.dag.spans.setdefault(node, span)
        number = body.program.host.node_number(node)
        if number is None:
            return None
        found.append(int(number))
    return ir.Range(found[0], max(found), narrowed=True, provenance=span.provenance)


def declared_restrictions(
    body: Body,
    tree: ast.Restriction | ast.BoundParameter,
    span: Span,
    rank: int = 1,
    test: RestrictionTest | None = None,
) -> list[NameRestriction]:
    """The restrictions of `rank` bound variables by the type and domain of their declaration, if these are written.

    With a `test` the domain is no box: the range is the box of the test.
    """
    type_ = body.program.types.resolve(tree.type) if tree.type is not None else None
    if test is not None:
        return [NameRestriction(type_, test.box, span)] * rank
    box = body.chosen_boxes.get(id(tree))
    ranges = restriction_ranges(body, tree.domain, rank, box) if tree.domain is not None else [None] * rank
    return [NameRestriction(type_, range_, span) for range_ in ranges]


def lower_bound_function(
    body: Body, parameters: list[ast.BoundParameter], tree: ast.AstNode, expected: Type | None = None
) -> FunctionValue:
    """`var c(j, k) = tree`: a function of its bound parameters, its domain inferred."""
    body.require_host()
    with body.block(), body.program.inference.context() as context:
        assign_binders(body, tree, context, [p.name for p in parameters])
        variables = []
        for position, parameter in enumerate(parameters):
            statement = dependent_restriction(body, parameter.name) if parameter.domain is None else None
            if statement is not None:
                parameter = replace(parameter, type=parameter.type or statement.type, domain=statement.domain)
            test = restriction_test(body, parameter.domain)
            (declared,) = declared_restrictions(body, parameter, (parameter.domain or parameter).span, 1, test)
            type_ = declared.type
            if type_ is None and isinstance(expected, FunctionType) and position < len(expected.parameters):
                type_ = expected.parameters[position]
            declared = declared._replace(type=type_ or type_from_first_use(body, parameter.name, tree))
            variables.append(new_bound_variable(body, parameter.name, parameter.span, reduced=False, declared=declared))
            if test is not None:
                body.program.tests[variables[-1]] = test.condition(variables[-1:])
        tests = [body.program.tests[v] for v in variables if v in body.program.tests]
        with body.guarded(bool(tests)):
            value = lower_operand(body, tree)
        if isinstance(value, FunctionValue):  # `var f(i) = a(i, );` has the free dimensions of its body, too
            rest, value = eta_expand(body, value, tree.span)
            variables += rest
        if tests:  # the domain is a box; the function is 0 at the points outside of what was written
            condition = body.builder.chain("&&", tuple(tests)).node
            value = body.builder.where(condition, value, body.builder.zero(value.type))
    return make_function(body.dag, variables, value)


def call_domain_function(body: Body, name: str, tree: ast.Call) -> Value:
    """`domain(f)`, `size(f, k)`, `low(f, k)`, `high(f, k)`, `empty(f)`, of a function or a domain.

    Raises CS0205, CS0408 or CS0316.
    """
    if not tree.arguments or isinstance(tree.arguments[0], ast.Blank):
        raise ProgramError("CS0205", tree.span, f"{'size' if name == 'size' else 'domain'}(f) needs a function")
    domain, span = lower(body, tree.arguments[0]), tree.arguments[0].span
    if not isinstance(domain, DomainValue):
        function = resolve(body, domain, span)
        if not isinstance(function, FunctionValue):
            raise ProgramError("CS0408", span, f"{span.excerpt} is {function.type}, not a function")
        domain = DomainValue(function.domain_with_borders)
    if len(tree.arguments) > 1:
        domain = selected_dimension(body, domain, tree.arguments[1])
    return domain if name == "domain" else domain_number(body, domain, name, tree.span)


def domain_number(body: Body, domain: DomainValue, name: str, span: Span) -> DataValue:
    """The "size" of a domain, whether it is "empty", or its "low" or "high" end; raises CS0314 or CS0316."""
    if name in ENDS and len(domain.ranges) != 1:
        message = f"{name}(f) of {len(domain.ranges)} dimensions needs one of them"
        raise ProgramError("CS0316", span, message, f"`{name}(f, 0)`")
    if any(ir.INFINITE in box for box in domain.boxes):
        raise ProgramError("CS0314", span, f"this domain is infinite: it has no {'ends' if name in ENDS else 'size'}")
    if name in ENDS:
        ranges = [box[0] for box in domain.boxes]
        ends = [getattr(range_, name) for range_ in ranges if isinstance(range_, ir.Range)]
        return runtime_int(body, ENDS[name](ends) if len(ends) == len(ranges) else None, name)
    total = count_points(domain)
    if total is not None and total >= 2**31:
        message = f"the size {total} does not fit into int"
        raise ProgramError("CS0316", span, message, "use the sizes of the dimensions: `size(f, 0)`")
    size = runtime_int(body, total, "size")
    if name == "size":
        return size
    return DataValue(BOOL, (body.builder.apply("==", "int", size.node, body.dag.constant(0, "int")),))


def selected_dimension(body: Body, domain: DomainValue, dimension: ast.AstNode) -> DomainValue:
    """The range of one dimension of a domain; raises CS0316, or CS0323 for a union."""
    if domain.further_boxes:
        raise ProgramError("CS0323", dimension.span, "a union of boxes has no dimensions of its own")
    number = host_int(body, dimension)
    if number is not None and not 0 <= number < len(domain.ranges):
        raise ProgramError("CS0316", dimension.span, f"dimension {number} is not one of 0..{len(domain.ranges)}")
    return DomainValue((domain.ranges[number or 0],))  # the first one stands for one that is not known yet


def runtime_int(body: Body, number: int | None, name: str) -> DataValue:
    """An int that the host passes to kernels."""
    return DataValue(INT, (body.dag.runtime_scalar(number, "int", name),))


def domain_member(body: Body, domain: DomainValue, tree: ast.MemberAccess) -> DataValue:
    """`domain(f)[0].low` and the like."""
    name = DOMAIN_MEMBERS.get(tree.name, "")
    if not name or name in ENDS and (len(domain.ranges) != 1 or domain.further_boxes):
        message = f"a {domain.type} has no member `{tree.name}`"
        raise ProgramError("CS0206", tree.name_span, message, "one dimension `domain(f)[0]` has low, high and size")
    return domain_number(body, domain, name, tree.span)


def domain_index(body: Body, domain: DomainValue, tree: ast.Call) -> DomainValue:
    """`domain(f)[k]`."""
    if len(tree.arguments) != 1:
        raise ProgramError("CS0316", tree.span, "a domain takes one index: the dimension")
    return selected_dimension(body, domain, tree.arguments[0])
