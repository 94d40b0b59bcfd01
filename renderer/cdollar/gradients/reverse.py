"""Reverse mode over the DAG: the derivatives of a number by the arrays and numbers that it is computed from.

Adjoints are expressions over the bound variables of the nodes that they belong to, so that the gradient is a DAG like
any other: it is fused, hoisted and run by every target. A function that is evaluated once has an adjoint function,
which gathers what all reads of it pass on (scatter.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from renderer.cdollar.gradients.derivatives import Algebra, NoDerivative, is_smooth, passed_on
from renderer.cdollar.gradients.folds import FoldGradient
from renderer.cdollar.gradients.hoisting import LargeHoister, read_once
from renderer.cdollar.gradients.inlining import inline_calls
from renderer.cdollar.gradients.inversion import Context, Use
from renderer.cdollar.gradients.marks import Leaf, is_leaf, without_marks
from renderer.cdollar.gradients.scatter import Transposer
from renderer.cdollar.gradients.tangents import TangentFunctions, called_derivatives, smooth_outputs
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.contraction import contraction_factors
from renderer.cdollar.ir.passes import alpha_rename, cost, fuse, simplify
from renderer.cdollar.ir.primitives import primitive
from renderer.cdollar.ir.types import FLOATS, INT, FunctionType, Record, Scalar, component_types, promoted_type

INLINE_COST = 6  # of an adjoint that is repeated rather than evaluated once
MAX_ARGMAX_VARIABLES = 4


class Adjoint(NamedTuple):
    """What a node contributes to the result, where `guard` holds (None: everywhere)."""

    guard: ir.Node | None
    value: ir.Node


class ReverseMode:
    """Differentiates one number; made anew for each."""

    def __init__(self, dag: ir.Dag, tangents: TangentFunctions):
        self.dag, self.algebra, self.tangents = dag, Algebra(dag), tangents
        self.transposer = Transposer(dag)
        self.adjoints: dict[tuple[ir.Node, int], dict[Context, Adjoint]] = {}
        self.uses: dict[ir.Node, list[tuple[int, Use]]] = {}
        self.active: set[ir.Node] = set()
        self.outside: frozenset[ir.BoundVariable] = frozenset()
        self.marks: set[Leaf] = set()

    def run(self, loss: ir.Node, leaves: list[tuple[ir.Node, tuple[ir.Range, ...]]]) -> list[ir.Node]:
        """The derivative by each leaf, which are given with their domains: a number, or a function with its components.

        Raises NoDerivative.
        """
        remarks: list[str] = []
        self.outside, self.marks = loss.free_variables, {leaf.attribute for leaf, _ in leaves}
        roots = fuse(self.dag, inline_calls(self.dag, simplify(self.dag, (loss,), remarks)), remarks)
        (loss,) = (LargeHoister(self.dag, remarks).rewrite(root, self.outside) for root in roots)
        order = ir.topological_order([loss])
        self.find_active(order)
        self.add(loss, 0, (), Adjoint(None, self.algebra.number(1, loss.type)))
        for node in reversed(order):
            if node in self.active and not self.is_own(node):
                self.process(node)
        found = {node.attribute: node for node in order if self.is_own(node)}  # the passes renew nodes
        results = tuple(self.result(found.get(leaf.attribute, leaf), ranges) for leaf, ranges in leaves)
        return list(without_marks(self.dag, results, self.marks))

    def is_own(self, node: ir.Node) -> bool:
        """Whether a node is one of the leaves."""
        return is_leaf(node) and node.attribute in self.marks

    def find_active(self, order: list[ir.Node]) -> None:
        """The nodes that depend on a leaf by floating-point numbers."""
        for node in order:
            if self.is_own(node):
                self.active.add(node)
            elif isinstance(node.attribute, ir.Access):
                if node.inputs[0] in self.active:
                    self.active.add(node)
            elif node.op == "apply" and node.attribute == "select":
                if is_smooth(node) and any(child in self.active for child in node.inputs[1:]):
                    self.active.add(node)
            elif node.op in ("function", "primitive") or node.op == "let" or is_smooth(node):
                if any(child in self.active for child in node.inputs):
                    self.active.add(node)

    def result(self, leaf: ir.Node, ranges: tuple[ir.Range, ...]) -> ir.Node:
        """The derivative by a leaf."""
        if not isinstance(leaf.type, FunctionType):
            total = self.total(leaf, ())
            zero = self.algebra.number(0, leaf.type)
            return zero if total is None else self.algebra.select(total.guard, total.value, zero)
        variables = over(ranges)
        bodies = self.gathered_components(leaf, component_types(leaf.type.result), variables)
        return self.dag.function(variables, bodies, leaf.type.as_function_type)

    # Adjoints

    def add(self, node: ir.Node, component: int, context: Context, new: Adjoint) -> None:
        """Adds what is passed on to a component of a node."""
        if node not in self.active or new.value.is_constant and new.value.attribute.number == 0:
            return
        known = self.adjoints.setdefault((node, component), {})
        old = known.get(context)
        if old is not None:
            a, guard = self.algebra, old.guard
            if old.guard is not new.guard:
                old, new = (
                    Adjoint(None, a.where(old.guard, old.value)),
                    Adjoint(new.guard, a.where(new.guard, new.value)),
                )
                guard = None if None in (guard, new.guard) else a.compare("||", guard, new.guard)  # type: ignore[arg-type]
            new = Adjoint(guard, a.op("+", old.value, new.value))
        known[context] = new

    def total(self, node: ir.Node, wanted: Context, component: int = 0) -> Adjoint | None:
        """What all contexts pass on to a node, summed over all bound variables but those wanted."""
        total: Adjoint | None = None
        for context, adjoint in self.adjoints.get((node, component), {}).items():
            own = adjoint
            if any(v not in wanted for v in context):
                use = Use(context, adjoint.guard, adjoint.value, node)
                own = Adjoint(None, self.transposer.collapsed(use, wanted))
            if total is None:
                total = own
            else:
                value = self.algebra.op(
                    "+", self.algebra.where(total.guard, total.value), self.algebra.where(own.guard, own.value)
                )
                total = Adjoint(None, value)
        return total

    def evaluated_once(self, value: ir.Node, variables: Context) -> ir.Node:
        """A value over variables as a function that is evaluated once, read at them."""
        if value.op in ("scalar", "variable") or not variables:
            return value
        new = tuple(ir.BoundVariable(v.name, v.type, v.range) for v in variables)
        replacement = dict(zip(variables, map(self.dag.bound_variable, new), strict=True))
        (body,) = alpha_rename(self.dag, ir.substitute(self.dag, (value,), replacement))
        type_ = FunctionType(Scalar(value.type), tuple(Scalar(v.type) for v in variables), True)
        function = self.dag.function(new, (body,), type_)
        if not function.free_variables:
            function = self.dag.intern("let", type_, (function,))
        return self.dag.access(function, tuple(map(self.dag.bound_variable, variables)), (None,) * len(variables))

    def gathered(self, function: ir.Node, type_: str, variables: Context) -> ir.Node:
        """What all reads pass on to the elements of a function of numbers, over variables of its domain."""
        return self.gathered_components(function, (type_,), variables)[0]

    def gathered_components(self, function: ir.Node, types: tuple[str, ...], variables: Context) -> tuple[ir.Node, ...]:
        """As gathered(), of each component."""
        types = tuple(map(promoted_type, types))
        terms: list[list[ir.Node]] = [[] for _ in types]
        for component, use in self.uses.get(function, ()):
            if types[component] in FLOATS:
                terms[component] += self.transposer.terms(use, variables)
        terms = [self.merged(own) for own in terms]
        counts = [len(own) for own in terms]
        if max(counts) > 1 and min(counts) == max(counts):  # the components of each read are evaluated together
            together = [self.evaluated_together(each, variables) for each in zip(*terms, strict=True)]
            terms = [list(own) for own in zip(*together, strict=True)]
        elif max(counts) > 1:
            terms = [[self.evaluated_together((t,), variables)[0] for t in own] for own in terms]
        results = []
        for type_, own in zip(types, terms, strict=True):
            zero = 0.0 if type_ in FLOATS else False if type_ == "bool" else 0
            total = own[0] if own else self.dag.constant(zero, type_)
            for term in own[1:]:
                total = self.algebra.op("+", total, term)
            results.append(total)
        return tuple(results)

    def merged(self, terms: list[ir.Node]) -> list[ir.Node]:
        """The terms, sums over variables of equal ranges as one sum; matrix products stay apart, as they are tiled."""
        kept: list[ir.Node] = []
        sums: dict[tuple, ir.Node] = {}
        for term in terms:
            is_sum = term.op == "reduce" and term.attribute[0].name == "+" and contraction_factors(term) is None
            variables = term.attribute[1] if is_sum else ()
            key = tuple((v.range.low, v.range.high) for v in variables)
            if not is_sum or key not in sums:
                sums.update({key: term} if is_sum else {})
                kept.append(term)
                continue
            first = sums[key]
            into = dict(zip(variables, map(self.dag.bound_variable, first.attribute[1]), strict=True))
            (body,) = ir.substitute(self.dag, term.inputs, into)
            both = self.algebra.op("+", first.inputs[0], body)
            sums[key] = self.dag.intern("reduce", term.type, (both,), first.attribute)
            kept[kept.index(first)] = sums[key]
        return kept

    def evaluated_together(self, values: tuple[ir.Node, ...], variables: Context) -> tuple[ir.Node, ...]:
        """Values over variables as the components of one function, if they are reductions."""
        if not variables or any(value.op != "reduce" for value in values):
            return values
        if len(values) == 1:
            return (self.evaluated_once(values[0], variables),)
        record = Record("adjoint", tuple((f"c{k}", Scalar(v.type)) for k, v in enumerate(values)))
        return read_once(self.dag, values, variables, record)

    # Nodes

    def process(self, node: ir.Node) -> None:
        """Passes the adjoint of a node on to its inputs."""
        if node.op == "function":
            self.function(node)
        elif node.op == "primitive":
            self.primitive(node)
        elif node.op == "let" and isinstance(node.type, FunctionType):
            self.uses.setdefault(node.inputs[0], []).extend(self.uses.get(node, ()))
        elif node.op == "reduce":
            self.reduction(node)
        elif isinstance(node.attribute, ir.Component):
            self.each(node, lambda context, given: self.add(node.inputs[0], node.attribute.index, context, given))
        elif isinstance(node.attribute, ir.Access):
            self.access(node)
        elif isinstance(node.attribute, ir.UserCall):
            self.call(node)
        elif node.op == "let" or node.attribute == "convert":
            child, convert = node.inputs[0], self.algebra.convert
            self.each(
                node, lambda c, given: self.add(child, 0, c, Adjoint(given.guard, convert(given.value, child.type)))
            )
        else:
            self.each(node, lambda context, given: self.operation(node, context, given))

    def each(self, node: ir.Node, pass_on: Callable[[Context, Adjoint], Any]) -> None:
        """Calls `pass_on` for the adjoint in each context."""
        for context, given in self.adjoints.get((node, 0), {}).items():
            pass_on(context, given)

    def operation(self, node: ir.Node, context: Context, given: Adjoint) -> None:
        """An elementary operation."""
        for position, child in enumerate(node.inputs):
            if child not in self.active:
                continue
            term = passed_on(self.algebra, node, position, given.value)
            if term is not None:
                self.add(child, 0, context, Adjoint(self.algebra.both(given.guard, term.condition), term.node))

    def call(self, node: ir.Node) -> None:
        """A device function: by its tangent function."""
        outputs = smooth_outputs(node.attribute.function)
        active = tuple(k for k, child in enumerate(node.inputs) if child in self.active)
        derivatives = called_derivatives(self.tangents, node, active)
        for row, output in enumerate(outputs):
            for context, given in self.adjoints.get((node, output), {}).items():
                for column, position in enumerate(active):
                    child, derivative = node.inputs[position], derivatives[row * len(active) + column]
                    value = self.algebra.op("*", given.value, derivative)
                    self.add(child, 0, context, Adjoint(given.guard, self.algebra.convert(value, child.type)))

    def access(self, node: ir.Node) -> None:
        """A read of a function, kept until all of them are known."""
        for component in range(len(ir.scalar_types(node))):
            for context, given in self.adjoints.get((node, component), {}).items():
                use = Use(context, given.guard, given.value, node)
                self.uses.setdefault(node.inputs[0], []).append((component, use))

    def function(self, node: ir.Node) -> None:
        """A function of bound variables: its adjoint function is that of its body."""
        if not isinstance(node.attribute, tuple):
            return
        variables: Context = node.attribute
        types = tuple(body.type for body in node.inputs)
        for body, value in zip(node.inputs, self.gathered_components(node, types, variables), strict=True):
            if body in self.active:
                is_dear = body.op == "reduce" or has_reduction(value) or cost((value,)) > INLINE_COST
                if is_dear and not is_read(value):
                    value = self.evaluated_once(value, variables)
                self.add(body, 0, variables, Adjoint(None, value))

    # Reductions

    def reduction(self, node: ir.Node) -> None:
        """A reduction: what it passes on to its elements."""
        reduction, variables = node.attribute
        free = tuple(sorted(node.free_variables - self.outside, key=lambda v: v.unique_id))
        if reduction.name == "fold":
            self.fold(node, free)
            return
        total = self.total(node, free)
        if total is None:
            return
        context, body = (*free, *variables), node.inputs[0]
        if reduction.name == "+":
            self.add(body, 0, context, total)
        elif reduction.name in ("min", "max"):
            self.add(body, 0, context, self.extreme(node, free, total))
        elif reduction.name == "*":
            self.add(body, 0, context, Adjoint(total.guard, self.product(node, free, total.value)))
        else:
            name = reduction.name if reduction.function is None else reduction.function.name
            raise NoDerivative(f"the reduction by `{name}` has no gradient", self.dag.spans.get(node))

    def fold(self, node: ir.Node, free: Context) -> None:
        """A fold: see folds.py."""
        fold, given = FoldGradient(self.dag, self.tangents, node, free), []
        for component in fold.smooth:
            zero = self.algebra.number(0, fold.types[component])
            total = self.total(node, free, component)
            given.append(zero if total is None else self.algebra.select(total.guard, total.value, zero))
        passed = fold.run(given, self.active)
        for inputs, values, context in (
            (fold.starts, passed.starts, free),
            (fold.elements, passed.elements, (*free, *fold.variables)),
        ):
            for child, value in zip(inputs, values, strict=True):
                if value is not None:
                    self.add(child, 0, context, Adjoint(None, value))

    def extreme(self, node: ir.Node, free: Context, given: Adjoint) -> Adjoint:
        """min and max pass all on to the first extreme element."""
        reduction, variables = node.attribute
        if len(variables) > MAX_ARGMAX_VARIABLES:
            raise NoDerivative(f"{reduction.name} over more than four variables", self.dag.spans.get(node))
        indices = tuple(map(self.dag.bound_variable, variables))
        types = ir.tuple_type(("int",) * len(variables))
        found = self.dag.intern(
            "reduce", types, (node.inputs[0], *indices), (ir.Reduction(f"arg{reduction.name}"), variables)
        )
        self.dag.spans.setdefault(found, self.dag.spans[node])
        guard = given.guard
        for index, first in zip(indices, self.dag.components(found), strict=True):
            here = self.evaluated_once(first, free)
            guard = self.algebra.both(guard, self.algebra.compare("==", index, here))
        return Adjoint(guard, given.value)

    def product(self, node: ir.Node, free: Context, given: ir.Node) -> ir.Node:
        """A product passes on the product of the others: of those that are not 0, unless two are."""
        a, variables, x = self.algebra, node.attribute[1], node.inputs[0]
        is_zero = a.compare("==", x, a.number(0, x.type))

        def reduced(name: str, value: ir.Node) -> ir.Node:
            new = self.dag.intern("reduce", value.type, (value,), (ir.Reduction(name), variables))
            return self.evaluated_once(new, free)

        zeros = reduced("+", a.select(is_zero, a.number(1, "int"), a.number(0, "int")))
        rest = reduced("*", a.select(is_zero, a.number(1, x.type), x))
        only = a.both(is_zero, a.compare("==", zeros, a.number(1, "int")))
        alone = a.compare("==", zeros, a.number(0, "int"))
        others = a.select(alone, a.op("/", rest, x), a.where(only, rest))
        return a.op("*", given, others)

    # Primitives

    def primitive(self, node: ir.Node) -> None:
        """scan, sort and scatter_add; argsort and counts are integers."""
        name, scalar = node.attribute.name, component_types(node.type.result)[0]
        if scalar not in FLOATS:
            return
        variables = over(node.attribute.ranges)
        given = self.gathered(node, scalar, variables)
        if name == "scan":
            self.pass_to_function(node.inputs[0], variables, self.scanned_back(node, given, variables))
        elif name == "sort":
            order = primitive(self.dag, "argsort", node.attribute.ranges, "int", node.inputs[0])
            self.pass_to_function(node.inputs[0], variables, self.unsorted(node, order, given, variables))
        elif name in ("scatter_mul", "scatter_max", "scatter_min"):
            span = self.dag.spans.get(node)
            raise NoDerivative(f"{name} has no gradient", span)
        elif len(node.inputs) > 1:
            elements = over(ranges_of(ir.without_lets(node.inputs[1])))
            places = []
            for element, range_ in zip(elements, ranges_of(ir.without_lets(node.inputs[0])), strict=True):
                offset = self.algebra.number(range_.low - element.range.low, "int")
                places.append(self.algebra.op("+", self.dag.bound_variable(element), offset))
            key = self.dag.access(node.inputs[0], tuple(places), (None,) * len(places))
            function = self.function_of(given, variables)
            read = self.dag.access(function, (key,), ("zero",))
            self.pass_to_function(node.inputs[1], elements, read)

    def function_of(self, value: ir.Node, variables: Context) -> ir.Node:
        """A closed function of a value over variables."""
        read = self.evaluated_once(value, variables)
        if isinstance(read.attribute, ir.Access):
            return read.inputs[0]
        type_ = FunctionType(Scalar(value.type), (INT,) * len(variables), True)
        return self.dag.function(over(tuple(v.range for v in variables)), (value,), type_)

    def scanned_back(self, node: ir.Node, given: ir.Node, variables: Context) -> ir.Node:
        """The sums from each element to the end: a scan of the reversed adjoint, read backwards."""
        last = variables[-1]
        ends = self.algebra.number(last.range.low + last.range.high - 1, "int")
        mirrored = self.algebra.op("-", ends, self.dag.bound_variable(last))
        (backward,) = ir.substitute(self.dag, (given,), {last: mirrored})
        sums = primitive(self.dag, "scan", node.attribute.ranges, given.type, self.function_of(backward, variables))
        indices = (*map(self.dag.bound_variable, variables[:-1]), mirrored)
        return self.dag.access(sums, indices, (None,) * len(indices))

    def unsorted(self, node: ir.Node, order: ir.Node, given: ir.Node, variables: Context) -> ir.Node:
        """The gradient of sorted elements, at the places where they came from."""
        (variable,) = variables
        size = variable.range.size
        values = self.function_of(given, variables)
        sums = primitive(self.dag, "scatter_add", (ir.Range(0, size),), given.type, order, values)
        low = self.algebra.number(variable.range.low, "int")
        index = self.algebra.op("-", self.dag.bound_variable(variable), low)
        return self.dag.access(sums, (index,), (None,))

    def pass_to_function(self, function: ir.Node, variables: Context, value: ir.Node) -> None:
        """Adds a use of a whole function, element by element."""
        read = self.dag.access(function, tuple(map(self.dag.bound_variable, variables)), (None,) * len(variables))
        if function in self.active:
            self.uses.setdefault(function, []).append((0, Use(variables, None, value, read)))


def over(ranges: tuple[Any, ...]) -> Context:
    """New variables over ranges."""
    return tuple(ir.BoundVariable("ijkmnp"[k % 6], "int", r) for k, r in enumerate(ranges))


def ranges_of(function: ir.Node) -> tuple[Any, ...]:
    """The domain of an array, a primitive or a function of bound variables."""
    attribute = function.attribute
    return tuple(v.range for v in attribute) if isinstance(attribute, tuple) else attribute.ranges


def has_reduction(value: ir.Node) -> bool:
    """Whether a reduction over some of its variables is in an expression."""
    return any(
        n.op == "reduce" and n.free_variables for n in ir.topological_order([value], ir.inputs_outside_functions)
    )


def is_read(value: ir.Node) -> bool:
    """Whether a value is an element of a function, nothing more."""
    return value.op == "apply" and isinstance(value.attribute, ir.Access)
