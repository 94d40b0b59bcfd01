"""Reverse mode over the DAG: the derivatives of a number by the arrays and numbers that it is computed from.

`grad(f)` (lowering/gradients.py) is the caller. The adjoint of a node is its derivative of the loss, an expression over
the node's bound variables. So the gradient is a DAG like any other, which every pass and target takes. The adjoint of a
function that is evaluated once is the sum of the contributions of all its reads (transposition.py). A leaf is a number
or function to differentiate by. Source: Griewank and Walther, Evaluating Derivatives, 2008.

Nodes are visited from the loss to the leaves; `adjoint` is the adjoint of the visited node. A Term is an adjoint
or a contribution: a value that counts where its guard holds. A context is the tuple of bound variables that a value
depends on. Example: for the loss sum(x(i) * y), the product has in the context (i,) the adjoint 1. So the read x(i) has
the adjoint y in the context (i,), and y has the adjoint x(i) in the context (i,), which total() sums over i.
"""

from itertools import combinations
from typing import NamedTuple

from renderer.cdollar.gradients.derivatives import Algebra, Context, NoDerivative, Nodes, Term, contribution, is_smooth
from renderer.cdollar.gradients.folds import FoldGradient
from renderer.cdollar.gradients.rewrites import GradientHoister, inline_calls, read_once
from renderer.cdollar.gradients.tangents import TangentFunctions, called_derivatives, smooth_outputs
from renderer.cdollar.gradients.transposition import FunctionRead, Transposer
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.contraction import contraction_factors
from renderer.cdollar.ir.passes import cost, fuse, simplify
from renderer.cdollar.ir.primitives import primitive
from renderer.cdollar.ir.types import FLOATS, FunctionType, component_types, promoted_type


class Leaf(NamedTuple):
    """The attribute of a let node that marks a leaf; `number` is unique."""

    number: int


def mark(dag: ir.Dag, node: ir.Node) -> ir.Node:
    """A leaf of the same value: a new let node, which hash consing shares with no other node."""
    return dag.intern("let", node.type, (node,), Leaf(next(ir.unique_ids)))


def is_leaf(node: ir.Node) -> bool:
    """True if a node is marked."""
    return node.op == "let" and isinstance(node.attribute, Leaf)


def without_leaf_marks(dag: ir.Dag, roots: Nodes, marks: set[Leaf]) -> Nodes:
    """The roots, with each leaf that has one of these marks replaced by the marked node."""

    def change(node: ir.Node, inputs: Nodes) -> ir.Node:
        return inputs[0] if is_leaf(node) and node.attribute in marks else ir.with_inputs(dag, node, inputs)

    return ir.rewrite(roots, change)


INLINE_COST = 6  # operations: a cheaper adjoint is computed at each use instead of stored
MAX_ARGMAX_VARIABLES = 4  # bound variables of a min or max that has a gradient


class ReverseMode:
    """One differentiation of one number.

    `adjoints` holds the adjoints of each component of a node, by the context (the bound variables) of the adjoint.
    `reads` holds the reads of each function, each with the component of the function that the contribution belongs to.
    `active` holds the nodes that depend on a leaf. `outside` holds the free variables of the loss, for whose values the
    whole gradient is computed. `marks` holds the attributes of the leaves.

    For the loss sum(x(i) * y) of the example above, with component 0 of all nodes:
        adjoints[loss] = {(): 1}, adjoints[x(i) * y] = {(i,): 1}, adjoints[x(i)] = {(i,): y}, adjoints[y] = {(i,): x(i)}
        reads[x] = [the read x(i) in the context (i,) with the value y]
    """

    def __init__(self, dag: ir.Dag, tangents: TangentFunctions):
        self.dag, self.algebra, self.tangents = dag, Algebra(dag), tangents
        self.transposer = Transposer(dag)
        self.adjoints: dict[tuple[ir.Node, int], dict[Context, Term]] = {}
        self.reads: dict[ir.Node, list[tuple[int, FunctionRead]]] = {}
        self.active: set[ir.Node] = set()
        self.outside: ir.VariableSet = frozenset()
        self.marks: set[Leaf] = set()

    def run(self, loss: ir.Node, leaves: list[tuple[ir.Node, ir.Ranges]]) -> list[ir.Node]:
        """The derivative of `loss` by each leaf: a number, or a function over the given domain; raises NoDerivative."""
        remarks: list[str] = []  # of the passes; not shown
        self.outside, self.marks = loss.free_variables, {leaf.attribute for leaf, _ in leaves}
        roots = fuse(self.dag, inline_calls(self.dag, simplify(self.dag, (loss,), remarks)), remarks)
        (loss,) = (GradientHoister(self.dag, remarks).rewrite(root, self.outside) for root in roots)
        order = ir.topological_order([loss])
        self.find_active(order)
        self.add(loss, 0, (), Term(self.algebra.number(1, loss.type)))
        for node in reversed(order):
            if node in self.active and not self.is_leaf_here(node):
                self.visit(node)
        # The passes above rebuild nodes, so `leaves` may no longer be nodes of the loss: their marks identify them. A
        # leaf that the passes removed has no adjoint; its derivative is 0.
        by_mark = {node.attribute: node for node in order if self.is_leaf_here(node)}
        results = tuple(self.result(by_mark.get(leaf.attribute, leaf), ranges) for leaf, ranges in leaves)
        return list(without_leaf_marks(self.dag, results, self.marks))

    def is_leaf_here(self, node: ir.Node) -> bool:
        """True if a node is a leaf of this differentiation, and not of a differentiation around it."""
        return is_leaf(node) and node.attribute in self.marks

    def find_active(self, order: list[ir.Node]) -> None:
        """Adds to `active` the nodes that depend on a leaf by floating-point numbers."""
        for node in order:
            inputs, is_read = node.inputs, isinstance(node.attribute, ir.Access)
            if is_read:
                inputs = inputs[:1]  # the function: indices have no derivative
            elif node.attribute == "select":
                inputs = inputs[1:]  # the two values: a condition has no derivative
            depends = any(child in self.active for child in inputs)
            may_be_active = is_read or node.op in ("function", "primitive", "let") or is_smooth(node)
            if self.is_leaf_here(node) or depends and may_be_active:
                self.active.add(node)

    def result(self, leaf: ir.Node, ranges: ir.Ranges) -> ir.Node:
        """The derivative by a leaf: a number, or a function over `ranges`."""
        if not isinstance(leaf.type, FunctionType):
            return self.total_value(leaf, (), 0, leaf.type)
        variables = ir.new_variables(ranges)
        bodies = self.function_adjoints(leaf, component_types(leaf.type.result), variables)
        return self.dag.function(variables, bodies, leaf.type.as_function_type)

    # Adjoints

    def add(self, node: ir.Node, component: int, context: Context, new: Term) -> None:
        """Adds a contribution to the adjoint of a component of a node."""
        if node not in self.active or new.value.is_constant and new.value.attribute.number == 0:
            return
        known = self.adjoints.setdefault((node, component), {})
        old = known.get(context)
        if old is not None:
            a, guard, values = self.algebra, old.guard, (old.value, new.value)
            if old.guard is not new.guard:  # each value counts under its guard, the sum where one of the guards holds
                values = a.where(old.guard, old.value), a.where(new.guard, new.value)
                guard = None if old.guard is None or new.guard is None else a.compare("||", old.guard, new.guard)
            new = Term(a.op("+", *values), guard)
        known[context] = new

    def total(self, node: ir.Node, wanted: Context, component: int = 0) -> Term | None:
        """The adjoint of a node over the `wanted` variables: the sum of its adjoints over all contexts."""
        total: Term | None = None
        for context, adjoint in self.adjoints.get((node, component), {}).items():
            if any(v not in wanted for v in context):
                # Summed over the other variables of the context, as the contribution of a FunctionRead is.
                use = FunctionRead(context, adjoint.guard, adjoint.value, node)
                adjoint = Term(self.transposer.summed_contribution(use, wanted))
            if total is not None:
                values = (self.algebra.where(a.guard, a.value) for a in (total, adjoint))
                adjoint = Term(self.algebra.op("+", *values))
            total = adjoint
        return total

    def total_value(self, node: ir.Node, wanted: Context, component: int, type_: str) -> ir.Node:
        """The adjoint of a node over the `wanted` variables, 0 where nothing contributes."""
        total = self.total(node, wanted, component)
        return self.algebra.number(0, type_) if total is None else self.algebra.where(total.guard, total.value)

    def evaluated_once(self, value: ir.Node, variables: Context) -> ir.Node:
        """A value over variables, stored as a function that is evaluated once and read at the variables."""
        if value.op in ("scalar", "variable") or not variables:
            return value
        return read_once(self.dag, (value,), variables)[0]

    def function_adjoints(self, function: ir.Node, types: tuple[str, ...], variables: Context) -> Nodes:
        """The adjoint of each component of a function over `variables` of its domain: sums of its reads' contributions.

        A component that is no floating-point number has the adjoint 0.
        """
        types = tuple(map(promoted_type, types))
        terms: list[list[ir.Node]] = [[] for _ in types]
        for component, use in self.reads.get(function, ()):
            if types[component] in FLOATS:
                terms[component] += self.transposer.contributions(use, variables)
        terms = [self.merge_sums(column) for column in terms]
        counts = [len(column) for column in terms]
        # A column holds the contributions to one component; of several, each reduction becomes an array before they are
        # added. Usually every read contributes to every component: then the k-th entries of all columns come from one
        # read and share work, and become one array. If the counts are equal by chance, the sums are the same.
        if max(counts) > 1 and min(counts) == max(counts):
            together = [self.evaluated_together(each, variables) for each in zip(*terms, strict=True)]
            terms = [list(column) for column in zip(*together, strict=True)]
        elif max(counts) > 1:
            terms = [[self.evaluated_together((t,), variables)[0] for t in column] for column in terms]
        sums = (self.algebra.sum(column) for column in terms)
        return tuple(s or self.algebra.number(0, type_) for s, type_ in zip(sums, types, strict=True))

    def merge_sums(self, terms: list[ir.Node]) -> list[ir.Node]:
        """The terms, with sums over equal ranges merged into one sum; matrix products stay, because they are tiled."""
        kept: list[ir.Node] = []
        sums: dict[tuple[tuple[int, int], ...], ir.Node] = {}
        for term in terms:
            is_sum = term.op == "reduce" and term.attribute[0].name == "+" and contraction_factors(term) is None
            variables = term.attribute[1] if is_sum else ()
            key = tuple((v.range.low, v.range.high) for v in variables)
            first = sums.get(key) if is_sum else None
            if first is None:
                kept.append(term)
                if is_sum:
                    sums[key] = term
                continue
            into = dict(zip(variables, map(self.dag.bound_variable, first.attribute[1]), strict=True))
            (body,) = ir.substitute(self.dag, term.inputs, into)
            both = self.algebra.op("+", first.inputs[0], body)
            sums[key] = self.dag.intern("reduce", term.type, (both,), first.attribute)
            kept[kept.index(first)] = sums[key]
        return kept

    def evaluated_together(self, values: Nodes, variables: Context) -> Nodes:
        """Values over variables; if all are reductions, the components of one function that is evaluated once."""
        if not variables or any(value.op != "reduce" for value in values):
            return values
        return read_once(self.dag, values, variables)

    # Visits of nodes

    def visit(self, node: ir.Node) -> None:
        """Adds the contributions of a node to the adjoints of its inputs; all users of the node were visited before."""
        if node.op == "function":
            self.visit_function(node)
        elif node.op == "primitive":
            self.visit_primitive(node)
        elif node.op == "let" and isinstance(node.type, FunctionType):  # a read of the let is one of its function
            self.reads.setdefault(node.inputs[0], []).extend(self.reads.get(node, ()))
        elif node.op == "reduce":
            self.visit_reduction(node)
        elif isinstance(node.attribute, ir.Access):
            self.visit_access(node)
        elif isinstance(node.attribute, ir.UserCall):
            self.visit_call(node)
        else:
            for context, adjoint in self.adjoints.get((node, 0), {}).items():
                self.visit_operation(node, context, adjoint)

    def visit_operation(self, node: ir.Node, context: Context, adjoint: Term) -> None:
        """A component, a let, a conversion, or an elementary operation with the derivatives of derivatives.py."""
        first = node.inputs[0]
        if isinstance(node.attribute, ir.Component):
            self.add(first, node.attribute.index, context, adjoint)
        elif node.op == "let" or node.attribute == "convert":
            self.add(first, 0, context, Term(self.algebra.convert(adjoint.value, first.type), adjoint.guard))
        else:
            if node.attribute == "sqrt" and adjoint.guard is None and first in self.active:
                warn_of_zero(self.dag, node)
            for position, child in enumerate(node.inputs):
                term = contribution(self.algebra, node, position, adjoint.value) if child in self.active else None
                if term is not None:
                    self.add(child, 0, context, Term(term.value, self.algebra.both(adjoint.guard, term.guard)))

    def visit_call(self, node: ir.Node) -> None:
        """A call of a device function: the derivatives are computed by its tangent function."""
        outputs = smooth_outputs(node.attribute.function)
        active = tuple(k for k, child in enumerate(node.inputs) if child in self.active)
        derivatives = called_derivatives(self.tangents, node, active)
        for row, output in enumerate(outputs):
            for context, adjoint in self.adjoints.get((node, output), {}).items():
                for column, position in enumerate(active):
                    child, derivative = node.inputs[position], derivatives[row * len(active) + column]
                    value = self.algebra.op("*", adjoint.value, derivative)
                    self.add(child, 0, context, Term(self.algebra.convert(value, child.type), adjoint.guard))

    def visit_access(self, node: ir.Node) -> None:
        """A read of a function: its contribution is kept until all reads of the function are visited."""
        for component in range(len(ir.scalar_types(node))):
            for context, adjoint in self.adjoints.get((node, component), {}).items():
                use = FunctionRead(context, adjoint.guard, adjoint.value, node)
                self.reads.setdefault(node.inputs[0], []).append((component, use))

    def visit_function(self, node: ir.Node) -> None:
        """A function of bound variables: its adjoint over these variables is the adjoint of its body."""
        if not isinstance(node.attribute, tuple):
            return  # an array, which is computed from nothing
        variables: Context = node.attribute
        types = tuple(body.type for body in node.inputs)
        for body, value in zip(node.inputs, self.function_adjoints(node, types, variables), strict=True):
            if body in self.active:
                is_costly = body.op == "reduce" or has_reduction(value) or cost((value,)) > INLINE_COST
                if is_costly and not isinstance(value.attribute, ir.Access):  # a read is evaluated already
                    value = self.evaluated_once(value, variables)
                self.add(body, 0, variables, Term(value))

    # Reductions

    def visit_reduction(self, node: ir.Node) -> None:
        """A reduction: its contribution to its elements; raises NoDerivative for a function of the program."""
        reduction, variables = node.attribute
        free = ir.in_order(node.free_variables - self.outside)
        if reduction.name == "fold":
            self.visit_fold(node, free)
            return
        total = self.total(node, free)
        if total is None:
            return
        context, body = (*free, *variables), node.inputs[0]
        if reduction.name == "+":
            self.add(body, 0, context, total)
        elif reduction.name in ("min", "max"):
            self.add(body, 0, context, self.min_max_adjoint(node, free, total))
        elif reduction.name == "*":
            self.add(body, 0, context, Term(self.product_adjoint(node, free, total.value), total.guard))
        else:
            name = reduction.name if reduction.function is None else reduction.function.name
            raise NoDerivative(f"the reduction by `{name}` has no gradient", self.dag.spans.get(node))

    def visit_fold(self, node: ir.Node, free: Context) -> None:
        """A fold: its contributions to its starts and elements (folds.py)."""
        fold = FoldGradient(self.dag, self.tangents, node, free)
        adjoints = [self.total_value(node, free, component, fold.types[component]) for component in fold.smooth]
        starts, elements = fold.run(adjoints, self.active)
        contexts = [free] * len(starts) + [(*free, *fold.variables)] * len(elements)
        for child, value, context in zip(node.inputs, starts + elements, contexts, strict=True):
            if value is not None:
                self.add(child, 0, context, Term(value))

    def min_max_adjoint(self, node: ir.Node, free: Context, adjoint: Term) -> Term:
        """The adjoint of an element under min or max: the first extreme element gets all of the result's."""
        reduction, variables = node.attribute
        if len(variables) > MAX_ARGMAX_VARIABLES:
            raise NoDerivative(f"{reduction.name} over more than four variables", self.dag.spans.get(node))
        indices = tuple(map(self.dag.bound_variable, variables))
        types = ir.tuple_type(("int",) * len(variables))
        attribute = ir.Reduction(f"arg{reduction.name}"), variables
        extreme = self.dag.intern("reduce", types, (node.inputs[0], *indices), attribute)
        self.dag.spans.setdefault(extreme, self.dag.spans[node])
        guard = adjoint.guard
        for index, first in zip(indices, self.dag.components(extreme), strict=True):
            here = self.evaluated_once(first, free)
            guard = self.algebra.both(guard, self.algebra.compare("==", index, here))
        return Term(adjoint.value, guard)

    def product_adjoint(self, node: ir.Node, free: Context, adjoint: ir.Node) -> ir.Node:
        """The derivative of a product by an element: the product of the others, 0 if two elements are 0.

        Three cases, so that the product is computed once for all elements: no element is 0 (`none_is_zero`), then it is
        divided by the element x; x alone is 0, then it is `nonzero_product`; another element is 0, then it is 0.
        """
        a, variables, x = self.algebra, node.attribute[1], node.inputs[0]
        is_zero = a.compare("==", x, a.number(0, x.type))

        def reduced(name: str, value: ir.Node) -> ir.Node:
            new = self.dag.intern("reduce", value.type, (value,), (ir.Reduction(name), variables))
            return self.evaluated_once(new, free)

        zeros = reduced("+", a.select(is_zero, a.number(1, "int"), a.number(0, "int")))
        nonzero_product = reduced("*", a.select(is_zero, a.number(1, x.type), x))
        only_x_is_zero = a.both(is_zero, a.compare("==", zeros, a.number(1, "int")))
        none_is_zero = a.compare("==", zeros, a.number(0, "int"))
        others = a.select(none_is_zero, a.op("/", nonzero_product, x), a.where(only_x_is_zero, nonzero_product))
        return a.op("*", adjoint, others)

    # Primitives

    def visit_primitive(self, node: ir.Node) -> None:
        """scan, sort and scatter_add of values.

        argsort and histogram, a scatter_add of keys without values, yield integers, which have no derivative.
        """
        name, scalar = node.attribute.name, component_types(node.type.result)[0]
        if scalar not in FLOATS:
            return
        variables = ir.new_variables(node.attribute.ranges)
        (adjoint,) = self.function_adjoints(node, (scalar,), variables)
        if name == "scan":
            self.add_read(node.inputs[0], variables, self.reverse_scan(node, adjoint, variables))
        elif name == "sort":
            order = primitive(self.dag, "argsort", node.attribute.ranges, "int", node.inputs[0])
            self.add_read(node.inputs[0], variables, self.scatter_by_order(order, adjoint, variables))
        elif name in ("scatter_mul", "scatter_max", "scatter_min"):
            raise NoDerivative(f"{name} has no gradient", self.dag.spans.get(node))
        elif len(node.inputs) > 1:  # scatter_add of keys, inputs[0], and values, inputs[1]; without values it counts
            elements = ir.new_variables(ir.domain_ranges(node.inputs[1]))
            indices = []  # of the keys, whose domain may start at other indices than the domain of the values
            for element, range_ in zip(elements, ir.domain_ranges(node.inputs[0]), strict=True):
                offset = self.algebra.number(range_.low - element.range.low, "int")
                indices.append(self.algebra.op("+", self.dag.bound_variable(element), offset))
            # The adjoint of a value is the adjoint of the sum at the value's key; 0 for a key outside of the bins.
            key = self.dag.access(node.inputs[0], tuple(indices))
            function = self.as_function(adjoint, variables)
            self.add_read(node.inputs[1], elements, self.dag.access(function, (key,), ("zero",)))

    def as_function(self, value: ir.Node, variables: Context) -> ir.Node:
        """A function of `variables` without free variables that yields the value."""
        element = self.evaluated_once(value, variables)
        if isinstance(element.attribute, ir.Access):
            return element.inputs[0]
        return self.dag.abstraction(ir.new_variables(v.range for v in variables), (value,), is_array=True)

    def reverse_scan(self, node: ir.Node, adjoint: ir.Node, variables: Context) -> ir.Node:
        """The adjoint of a scan's elements, the sums from each element to the end: a scan of the reversed adjoint."""
        last = variables[-1]
        ends = self.algebra.number(last.range.low + last.range.high - 1, "int")
        mirrored = self.algebra.op("-", ends, self.dag.bound_variable(last))
        (backward,) = ir.substitute(self.dag, (adjoint,), {last: mirrored})
        sums = primitive(self.dag, "scan", node.attribute.ranges, adjoint.type, self.as_function(backward, variables))
        return self.dag.access(sums, (*map(self.dag.bound_variable, variables[:-1]), mirrored))

    def scatter_by_order(self, order: ir.Node, adjoint: ir.Node, variables: Context) -> ir.Node:
        """The adjoint of the elements before a sort: each element gets the adjoint at its sorted position."""
        (variable,) = variables
        size = variable.range.size
        values = self.as_function(adjoint, variables)
        sums = primitive(self.dag, "scatter_add", (ir.Range(0, size),), adjoint.type, order, values)
        low = self.algebra.number(variable.range.low, "int")
        return self.dag.access(sums, (self.algebra.op("-", self.dag.bound_variable(variable), low),))

    def add_read(self, function: ir.Node, variables: Context, value: ir.Node) -> None:
        """Adds a read of each element of a function over `variables`, with the contribution `value`."""
        if function in self.active:
            element = self.dag.access(function, tuple(map(self.dag.bound_variable, variables)))
            self.reads.setdefault(function, []).append((0, FunctionRead(variables, None, value, element)))


def has_reduction(value: ir.Node) -> bool:
    """True if an expression contains a reduction that depends on bound variables."""
    nodes = ir.topological_order([value], ir.inputs_outside_functions)
    return any(node.op == "reduce" and node.free_variables for node in nodes)


def warn_of_zero(dag: ir.Dag, root: ir.Node) -> None:
    """Warns if a square root is 0 where two variables are equal, as a distance is: its derivative is 0 / 0 there."""
    operand = root.inputs[0]
    for a, b in combinations(ir.in_order(operand.free_variables), 2):
        if a.type == b.type and is_zero(dag, *ir.substitute(dag, (operand,), {a: dag.bound_variable(b)})):
            span, names = dag.spans.get(root, dag.span), sorted((a.name, b.name))
            message = f"the gradient has no value where {names[0]} == {names[1]}: {span.excerpt} is 0 there"
            hint = f"leave these points out, `{names[0]} == {names[1]} ? 0 : {span.excerpt}`, or add a small number"
            dag.warn("CS0702", span, message, hint)


def is_zero(dag: ir.Dag, node: ir.Node) -> bool:
    """True if a node is 0 by its form alone: a difference of equal nodes, and sums and products of such."""
    operands = node.inputs
    if node.op == "scalar":
        return bool(node.is_constant) and node.attribute.number == 0
    if node.op == "reduce":
        return node.attribute[0].name == "+" and is_zero(dag, operands[0])
    if node.op == "let" or node.attribute in ("neg", "convert"):
        return is_zero(dag, operands[0])
    # A read, or a component of a read of a function with several: the body with the indices in place of the variables.
    access, position = (operands[0], node.attribute.index) if isinstance(node.attribute, ir.Component) else (node, 0)
    if isinstance(access.attribute, ir.Access):
        function = ir.without_lets(access.inputs[0])
        if not isinstance(function.attribute, tuple) or any(access.attribute.borders):
            return False
        replacement = dict(zip(function.attribute, access.inputs[1:], strict=True))
        return is_zero(dag, ir.substitute(dag, (function.inputs[position],), replacement)[0])
    if node.attribute == "-" and operands[0] is operands[1]:
        return True
    if node.attribute == "*":
        return any(is_zero(dag, operand) for operand in operands)
    return node.attribute in ("+", "-") and all(is_zero(dag, operand) for operand in operands)
