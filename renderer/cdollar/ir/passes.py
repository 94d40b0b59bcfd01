"""Passes over the DAG, in the order of PASSES; and the traversal orders by which the targets evaluate the result.

The targets call run_passes() before they run a DAG. A pass takes the roots of a DAG and returns new roots; it appends
remarks for --explain, which give the reason of each decision (as LLVM's optimization remarks). simplify() removes
neutral operations, fuse() inlines functions into their users, hoist_reductions() splits the DAG into kernels at
reductions that would otherwise be repeated.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.operations import OPERATIONS
from renderer.cdollar.ir.types import INTEGERS

Pass = Callable[[ir.Dag, ir.Nodes, list[str]], ir.Nodes]
INLINE_THRESHOLD = 40  # a function whose repetition costs more operations than this is evaluated once, into an array


def run_passes(dag: ir.Dag, roots: ir.Nodes, passes: Sequence[Pass]) -> tuple[ir.Nodes, list[str]]:
    """The roots after the passes, and their remarks."""
    remarks: list[str] = []
    for transform in passes:
        roots = transform(dag, roots, remarks)
    return roots, remarks


def simplify(dag: ir.Dag, roots: ir.Nodes, remarks: list[str]) -> ir.Nodes:
    """Remove x * 1, x / 1 and integer x + 0, x - 0, x * 0: exact for all x (floating-point x + 0 and x * 0 are not)."""

    def change(node: ir.Node, inputs: ir.Nodes) -> ir.Node:
        if node.op == "apply" and isinstance(node.attribute, str) and len(inputs) == 2:
            name, is_integer = node.attribute, node.type in INTEGERS
            left, right = (n.attribute.number if n.is_constant else None for n in inputs)
            if name in ("*", "/") and right == 1 or is_integer and name in ("+", "-") and right == 0:
                return inputs[0]
            if name == "*" and left == 1 or is_integer and name == "+" and left == 0:
                return inputs[1]
            if is_integer and name == "*" and 0 in (left, right):
                return inputs[0] if left == 0 else inputs[1]
        return ir.with_inputs(dag, node, inputs)

    return ir.rewrite(roots, change)


# Fusion


def nodes_outside_functions(body: ir.Nodes) -> list[ir.Node]:
    """All nodes reachable from `body` without entering functions and lets; the functions and lets are included."""
    return ir.topological_order(body, lambda node: () if node.op in ("function", "let") else node.inputs)


def cost(body: ir.Nodes) -> int:
    """A rough count of operations outside of functions; a read of an array counts 2."""
    total = 0
    for node in nodes_outside_functions(body):
        if node.op == "apply":
            if isinstance(node.attribute, str):
                total += OPERATIONS[node.attribute].cost if node.attribute in OPERATIONS else 1
            elif isinstance(node.attribute, ir.UserCall):
                total += INLINE_THRESHOLD
            elif isinstance(node.attribute, ir.Access):
                total += 2
    return total


def is_computed_function(node: ir.Node) -> bool:
    """True if the node is a function made of an expression, not an array."""
    return node.op == "function" and not isinstance(node.attribute, ir.ArraySource)


def fuse(dag: ir.Dag, roots: ir.Nodes, remarks: list[str]) -> ir.Nodes:
    """Inline functions whose repetition costs little; leave others as functions, which are evaluated into arrays."""
    inlined, span = functions_to_inline(roots, remarks), dag.span

    def change(node: ir.Node, inputs: ir.Nodes) -> ir.Node:
        """Replaces a read of an inlined function by its body, with the indices in place of the variables."""
        if node.op == "apply" and isinstance(node.attribute, ir.Access) and node.inputs[0] in inlined:
            function = inputs[0]
            body, dag.span = function.inputs, dag.spans.get(node, dag.span)  # where the program becomes too large
            if any(inner.op == "reduce" for inner in nodes_outside_functions(body)):
                body = alpha_rename(dag, body)  # indices may contain a reduction of the same function
            body = ir.substitute(dag, body, dict(zip(function.attribute, inputs[1:], strict=True)))
            return body[0] if not isinstance(node.type, tuple) else TupleNode(body)
        if isinstance(node.attribute, ir.Component) and isinstance(inputs[0], TupleNode):
            return inputs[0].inputs[node.attribute.index]
        return ir.with_inputs(dag, node, inputs)

    roots, dag.span = ir.rewrite(roots, change), span
    return roots


class TupleNode(ir.Node):
    """The components of an inlined function; each Component node over it is replaced by one of them."""

    def __init__(self, components: ir.Nodes):
        super().__init__("tuple", None, components, None, frozenset())


def functions_to_inline(roots: ir.Nodes, remarks: list[str]) -> set[ir.Node]:
    """Choose the functions to inline, with a remark for each other one.

    Callees are visited before their callers, so that a caller's cost includes the callees that it inlines. A function
    of outer variables or over an infinite domain cannot become an array: it is inlined whatever it costs.
    """
    order = ir.topological_order(roots)
    accesses: dict[ir.Node, list[ir.Node]] = {}
    for node in order:
        if node.op == "apply" and isinstance(node.attribute, ir.Access) and is_computed_function(node.inputs[0]):
            accesses.setdefault(node.inputs[0], []).append(node)
    inlined: set[ir.Node] = set()
    inline_cost: dict[ir.Node, int] = {}
    reduces: dict[ir.Node, bool] = {}
    for node in filter(is_computed_function, order):
        body_nodes = nodes_outside_functions(node.inputs)
        inner = [n for n in body_nodes if n in inlined]
        inline_cost[node] = cost(node.inputs) + sum(inline_cost[n] * len(accesses.get(n, ())) for n in inner)
        reduces[node] = any(n.op == "reduce" for n in body_nodes) or any(reduces[n] for n in inner)
        reads = accesses.get(node, [])
        is_finite = all(isinstance(v.range, ir.Range) for v in node.attribute)
        if not reads:
            continue
        if not is_finite or node.free_variables:
            inlined.add(node)
        elif any(any(read.attribute.borders) for read in reads):
            remarks.append(f"evaluate once {describe(node)}: a border mode reads it")
        elif reduces[node]:
            remarks.append(f"evaluate once {describe(node)}: it reduces")
        elif len(reads) == 1 or inline_cost[node] * len(reads) <= INLINE_THRESHOLD:
            inlined.add(node)
        else:
            reason = f"{len(reads)} different reads of {inline_cost[node]} operations"
            remarks.append(f"evaluate once {describe(node)}: {reason}")
    return inlined


def describe(node: ir.Node) -> str:
    """The text of a function in remarks: its variables and ranges."""
    return f"function({format_ranges(node.attribute)})"


def format_ranges(variables: ir.Variables) -> str:
    """The text of variables and their ranges: `i : 0..5, j : 0..7`."""
    return ", ".join(f"{v.name} : {v.range}" for v in variables)


def alpha_rename(dag: ir.Dag, body: ir.Nodes) -> ir.Nodes:
    """The same expressions with new reduced variables, so that a copy may be used inside another copy.

    Functions without free variables stay the same: they are evaluated once, as arrays.
    """
    renamed: dict[ir.BoundVariable, ir.BoundVariable] = {}
    for node in ir.topological_order(body, open_inputs):
        for variable in node.attribute[1] if node.op == "reduce" else ():
            renamed.setdefault(variable, ir.BoundVariable(variable.name, variable.type, variable.range, reduced=True))

    def change(node: ir.Node, inputs: ir.Nodes) -> ir.Node:
        if node.op == "variable" and node.attribute in renamed:
            return dag.bound_variable(renamed[node.attribute])
        if node.op == "reduce":
            reduction, variables = node.attribute
            return ir.with_inputs(dag, node, inputs, (reduction, tuple(renamed[v] for v in variables)))
        return ir.with_inputs(dag, node, inputs)

    return ir.rewrite(body, change, open_inputs)


def open_inputs(node: ir.Node) -> ir.Nodes:
    """The inputs of a node, the last one first; none of functions without free variables."""
    is_closed = node.op in ("function", "let", "primitive") and not node.free_variables
    return () if is_closed else node.inputs[::-1]


# Hoisting


def order_within_scope(root: ir.Node) -> list[ir.Node]:
    """Nodes under a root, inputs first, without entering reductions and functions."""
    return ir.topological_order([root], lambda node: () if node.op in ("reduce", "function") else node.inputs)


def order_within_space(root: ir.Node, evaluated: Collection[int] = ()) -> list[ir.Node]:
    """Nodes under the root that are evaluated in its iteration space, inputs first.

    Bodies of reductions and functions are not among them, nor nodes whose id is in `evaluated`.
    """

    def inputs_of(node: ir.Node) -> Iterable[ir.Node]:
        if node.op == "reduce":
            return ()
        inputs = node.inputs[1:] if isinstance(node.attribute, ir.Access) else node.inputs
        return [child for child in inputs if id(child) not in evaluated]

    return ir.topological_order([root], inputs_of)


def hoist_reductions(dag: ir.Dag, roots: ir.Nodes, remarks: list[str]) -> ir.Nodes:
    """Hoist reductions out of the functions around them.

    A reduction that depends on only some of the enclosing bound variables becomes a function of these variables, which
    a kernel evaluates once into an array.
    """
    hoister = ReductionHoister(dag, remarks)
    scopes = (frozenset(root.attribute) if is_computed_function(root) else frozenset() for root in roots)
    return tuple(hoister.rewrite(root, scope) for root, scope in zip(roots, scopes, strict=True))


class ReductionHoister:
    """Rewrites expressions inside their scopes; a scope is the set of bound variables around an expression."""

    def __init__(self, dag: ir.Dag, remarks: list[str]):
        self.dag, self.remarks = dag, remarks
        self.rewritten: dict[tuple[ir.Node, ir.VariableSet], ir.Node] = {}

    def rewrite(self, root: ir.Node, scope: ir.VariableSet) -> ir.Node:
        """Return the expression with its reductions hoisted; `scope` is the set of bound variables around it."""
        if (root, scope) not in self.rewritten:
            new: dict[ir.Node, ir.Node] = {}
            for node in order_within_scope(root):
                if node.op == "reduce":
                    new[node] = self._reduction(node, scope)
                elif is_computed_function(node):
                    new[node] = self._with_scope(node, frozenset(node.attribute))
                else:
                    new[node] = ir.with_inputs(self.dag, node, tuple(new[child] for child in node.inputs))
            self.rewritten[root, scope] = new[root]
        return self.rewritten[root, scope]

    def _with_scope(self, node: ir.Node, scope: ir.VariableSet) -> ir.Node:
        return ir.with_inputs(self.dag, node, tuple(map(partial(self.rewrite, scope=scope), node.inputs)))

    def _reduction(self, node: ir.Node, scope: ir.VariableSet) -> ir.Node:
        """Hoists a reduction that needs fewer variables than the scope; without free variables it is split off."""
        reduction, variables = node.attribute
        free = node.free_variables
        if not (free < scope and all(isinstance(v.range, ir.Range) for v in free)):
            return self._with_scope(node, scope | frozenset(variables))
        hoisted = self._with_scope(node, free | frozenset(variables))
        if free:
            return self._hoist(hoisted)
        self.remarks.append(f"split at the scalar reduction `{reduction.name}` over {format_ranges(variables)}")
        return hoisted

    def _hoist(self, node: ir.Node) -> ir.Node:
        """Return a reduction as an access, at its free variables, of an array over these variables."""
        free = ir.in_order(node.free_variables)
        function = self.dag.abstraction(free, self.dag.components(node), is_array=True)
        name = node.attribute[0].name
        self.remarks.append(f"evaluate once {describe(function)}: the reduction `{name}` depends on nothing else")
        return self.dag.access(function, tuple(map(self.dag.bound_variable, free)))


PASSES: list[Pass] = [simplify, fuse, hoist_reductions]
