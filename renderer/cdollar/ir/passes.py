"""Pure passes over the DAG, in the order of PASSES: simplify, fuse, then place the lets that split it into parts."""

from __future__ import annotations

from dataclasses import dataclass, field

from renderer.cdollar.ir.dag import (
    Access,
    ArraySource,
    BoundVariable,
    Component,
    Constant,
    Dag,
    Node,
    Range,
    UserCall,
    rewrite,
    substitute,
    topological_order,
    tuple_type,
    with_inputs,
    with_span_of,
)
from renderer.cdollar.ir.operations import OPERATIONS
from renderer.cdollar.ir.types import FunctionType, Record, Scalar

INLINE_THRESHOLD = 40  # operations that repeating a function may cost before it is evaluated once instead


@dataclass
class Remarks:
    """Why the passes did what they did, for --explain."""

    lines: list[str] = field(default_factory=list)


def number_of(node: Node):
    return node.attribute.number if node.op == "scalar" and isinstance(node.attribute, Constant) else None


def simplify(dag: Dag, roots: tuple[Node, ...], notes: Remarks) -> tuple[Node, ...]:
    """x * 1, x / 1 and integer x + 0, x * 0: exact for all x (floating-point x + 0 and x * 0 are not)."""

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op == "apply" and isinstance(node.attribute, str) and len(inputs) == 2:
            left, right = number_of(inputs[0]), number_of(inputs[1])
            whole = node.type in ("int", "uint")
            if node.attribute in ("*", "/") and right == 1:
                return inputs[0]
            if node.attribute == "*" and left == 1:
                return inputs[1]
            if whole and node.attribute in ("+", "-") and right == 0:
                return inputs[0]
            if whole and node.attribute == "+" and left == 0:
                return inputs[1]
            if whole and node.attribute == "*" and 0 in (left, right):
                return inputs[0] if left == 0 else inputs[1]
        return with_inputs(dag, node, inputs)

    return rewrite(roots, change)


def nodes_outside_functions(body: tuple[Node, ...]) -> list[Node]:
    """Nodes under some nodes, without what is under functions; the functions are among them."""
    seen: set[int] = set()
    found: list[Node] = []
    stack = list(body)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found.append(node)
            if node.op not in ("function", "let"):
                stack.extend(node.inputs)
    return found


def cost(body: tuple[Node, ...]) -> int:
    """A rough count of operations under some nodes, without their functions'; reading an array counts 2."""
    total = 0
    for node in nodes_outside_functions(body):
        if node.op == "apply":
            if isinstance(node.attribute, str):
                operation = OPERATIONS.get(node.attribute)
                total += operation.cost if operation else 1
            elif isinstance(node.attribute, UserCall):
                total += INLINE_THRESHOLD
            elif isinstance(node.attribute, Access):
                total += 2
    return total


def has_reduction(body: tuple[Node, ...]) -> bool:
    return any(node.op == "reduce" for node in nodes_outside_functions(body))


def is_computed_function(node: Node) -> bool:
    """A function made of an expression, not an array."""
    return node.op == "function" and not isinstance(node.attribute, ArraySource)


def is_finite(node: Node) -> bool:
    return all(isinstance(v.range, Range) for v in node.attribute)


def accesses(roots: tuple[Node, ...]) -> dict[Node, list[Node]]:
    """Each built function and the different ways it is applied."""
    found: dict[Node, list[Node]] = {}
    for node in topological_order(roots):
        if node.op == "apply" and isinstance(node.attribute, Access) and is_computed_function(node.inputs[0]):
            found.setdefault(node.inputs[0], []).append(node)
    return found


def fuse(dag: Dag, roots: tuple[Node, ...], notes: Remarks) -> tuple[Node, ...]:
    """Functions put in place of their applications where that repeats little work; others are evaluated once."""
    inlined = functions_to_inline(roots, notes)

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op == "apply" and isinstance(node.attribute, Access) and node.inputs[0] in inlined:
            function = inputs[0]
            body = fresh(dag, function.inputs) if has_reduction(function.inputs) else function.inputs
            replacement = dict(zip(function.attribute, inputs[1:], strict=True))
            body = substitute(dag, body, replacement)
            return body[0] if not isinstance(node.type, tuple) else TupleNode(body)
        if isinstance(node.attribute, Component) and isinstance(inputs[0], TupleNode):
            return inputs[0].parts[node.attribute.index]
        return with_inputs(dag, node, inputs)

    return rewrite(roots, change)


class TupleNode(Node):
    """The components of an inlined function, until their Component nodes take them."""

    def __init__(self, parts: tuple[Node, ...]):
        self.parts = parts
        super().__init__("several", None, parts, None, frozenset())


def functions_to_inline(roots: tuple[Node, ...], notes: Remarks) -> set[Node]:
    """Decides for each function; inner functions first, so that what they cost when inlined counts."""
    uses = accesses(roots)
    chosen: set[Node] = set()
    weight: dict[Node, int] = {}
    reduces: dict[Node, bool] = {}
    for node in topological_order(roots):
        if not is_computed_function(node):
            continue
        own = nodes_outside_functions(node.inputs)
        inside = [n for n in own if is_computed_function(n) and n in chosen]
        weight[node] = cost(node.inputs) + sum(weight[n] * len(uses.get(n, ())) for n in inside)
        reduces[node] = any(n.op == "reduce" for n in own) or any(reduces[n] for n in inside)
        applied = uses.get(node, [])
        if not applied:
            continue
        bordered = any(any(a.attribute.borders) for a in applied)
        if not is_finite(node) or node.free_variables:
            chosen.add(node)
        elif (
            not bordered
            and not reduces[node]
            and (len(applied) == 1 or weight[node] * len(applied) <= INLINE_THRESHOLD)
        ):
            chosen.add(node)
        else:
            why = (
                "a border mode reads it"
                if bordered
                else "it reduces"
                if reduces[node]
                else f"{len(applied)} different reads of {weight[node]} operations"
            )
            notes.lines.append(f"evaluate once {describe(node)}: {why}")
    return chosen


def describe(node: Node) -> str:
    names = ", ".join(f"{v.name} : {v.range}" for v in node.attribute)
    return f"function({names})"


def fresh(dag: Dag, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same expressions with reduced variables of their own, so that a copy can stand inside another."""
    twins: dict[BoundVariable, BoundVariable] = {}
    for node in topological_order(body):
        if node.op == "reduce":
            for variable in node.attribute[1]:
                twins.setdefault(variable, BoundVariable(variable.name, variable.type, variable.range, True))

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op == "variable" and node.attribute in twins:
            return dag.bound_variable(twins[node.attribute])
        if node.op == "reduce":
            reduction, variables = node.attribute
            return with_span_of(
                dag, node, dag.intern("reduce", node.type, inputs, (reduction, tuple(twins[v] for v in variables)))
            )
        return with_inputs(dag, node, inputs)

    return rewrite(body, change)


def hoist_reductions(dag: Dag, roots: tuple[Node, ...], notes: Remarks) -> tuple[Node, ...]:
    """A reduction that depends on part of its surroundings is evaluated once, as a function of that part."""
    done: dict[tuple[Node, frozenset], Node] = {}

    def level(root: Node, frame: frozenset) -> Node:
        if (root, frame) in done:
            return done[root, frame]
        new: dict[Node, Node] = {}
        for node in order_within_scope(root):
            if node.op == "reduce":
                new[node] = reduction(node, frame)
            elif node.op == "function":
                new[node] = function(node)
            else:
                new[node] = with_inputs(dag, node, tuple(new[child] for child in node.inputs))
        done[root, frame] = new[root]
        return new[root]

    def function(node: Node) -> Node:
        if isinstance(node.attribute, ArraySource):
            return node
        body = tuple(level(part, frozenset(node.attribute)) for part in node.inputs)
        return with_inputs(dag, node, body)

    def reduction(node: Node, frame: frozenset) -> Node:
        variables = node.attribute[1]
        if node.free_variables < frame and all(isinstance(v.range, Range) for v in node.free_variables):
            inner = node.free_variables | frozenset(variables)
            inputs = tuple(level(child, inner) for child in node.inputs)
            own = with_inputs(dag, node, inputs)
            if not node.free_variables:
                notes.lines.append(
                    f"split at the scalar reduction `{node.attribute[0].name}` over {ranges_of(variables)}"
                )
                return own
            return hoisted(own)
        return with_inputs(dag, node, tuple(level(child, frame | frozenset(variables)) for child in node.inputs))

    def hoisted(node: Node) -> Node:
        free = tuple(sorted(node.free_variables, key=lambda v: v.unique_id))
        parts = node.type if isinstance(node.type, tuple) else (node.type,)
        result = (
            Scalar(parts[0])
            if len(parts) == 1
            else Record("state", tuple((f"part{k}", Scalar(p)) for k, p in enumerate(parts)))
        )
        type_ = FunctionType(result, tuple(Scalar(v.type) for v in free), True)
        body = tuple(dag.component(node, k) for k in range(len(parts)))
        built = dag.intern("function", type_, body, free)
        notes.lines.append(
            f"evaluate once {describe(built)}: the reduction `{node.attribute[0].name}` depends on nothing else"
        )
        access = dag.access(built, tuple(dag.bound_variable(v) for v in free), (None,) * len(free))
        assert access.type == tuple_type(parts)
        return access

    return tuple(
        level(root, frozenset(root.attribute) if is_computed_function(root) else frozenset()) for root in roots
    )


def ranges_of(variables: tuple[BoundVariable, ...]) -> str:
    return ", ".join(f"{v.name} : {v.range}" for v in variables)


def order_within_scope(root: Node) -> list[Node]:
    """Nodes under a root, inputs first, without what is under reductions and functions."""
    seen: set[int] = set()
    order: list[Node] = []
    stack = [(root, False)]
    while stack:
        node, finished = stack.pop()
        if finished:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            if node.op not in ("reduce", "function"):
                stack.extend((child, False) for child in node.inputs)
    return order


PASSES = [simplify, fuse, hoist_reductions]


def run_passes(dag: Dag, roots: tuple[Node, ...], passes: list) -> tuple[tuple[Node, ...], Remarks]:
    """The roots after the passes, and why they did what they did."""
    notes = Remarks()
    for transform in passes:
        roots = transform(dag, roots, notes)
    return roots, notes
