"""Assignments to elements, `a[2] = x`, `a[1:3] = b`, `a(i, 0) = i`: the function with other values at indices."""

from __future__ import annotations

from renderer.cdollar.checker.calls import CallLowering
from renderer.cdollar.checker.domain_inference import IndexConstraint
from renderer.cdollar.checker.functions import make_function
from renderer.cdollar.checker.scopes import Variable
from renderer.cdollar.checker.slices import lower_slice
from renderer.cdollar.checker.values import DataValue, FunctionValue, SliceArgument
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.ir.dag import BoundVariable, Node, Range
from renderer.cdollar.ir.types import INT


class ElementLowering(CallLowering):
    """Lowers functions with other elements, in one body."""

    def lower_with_elements(self, tree: ast.WithElements) -> FunctionValue:
        """The function that has the value at the indices. New names in them are bound variables over the domain.

        A slice takes a function of its own indices, from 0 on, or one value for all. Raises CS0324.
        """
        self.body.require_host()
        subject = self._operand(tree.subject)
        if not isinstance(subject, FunctionValue) or subject.borders or any(p != INT for p in subject.type.parameters):
            message = f"{tree.subject.span.excerpt} is {subject.type}, whose elements cannot be assigned"
            raise ProgramError("CS0324", tree.span, message, "the elements of functions of int indices can")
        if len(tree.indices) != len(subject.domain):
            message = f"{tree.subject.span.excerpt} has {len(subject.domain)} indices, {len(tree.indices)} are given"
            raise ProgramError("CS0324", tree.span, message)
        names = [i.name for i in tree.indices if isinstance(i, ast.Name) and not self.is_known(i.name)]
        with self.body.block() as scope, self.program.inference.context() as context:
            for part in (*tree.indices, tree.value):
                if not isinstance(part, ast.Blank):
                    self.assign_binders(part, context, names)
            variables, places = [], []
            for k, (index, range_) in enumerate(zip(tree.indices, subject.domain, strict=True)):
                variables.append(BoundVariable(f"_{k}", "int", range_))
                places.append(DataValue(INT, (self.dag.bound_variable(variables[-1]),)))
                if isinstance(index, ast.Name) and index.name in names and index.name not in scope.names:
                    scope.names[index.name] = Variable(places[-1], None, "a bound variable")
            conditions: list[Node] = []
            rest: list[tuple[DataValue, int | None]] = []
            for index, variable, place in zip(tree.indices, variables, places, strict=True):
                self._condition_of(index, variable, place, conditions, rest)
            value = self._value_at(tree, rest)
            converted = self.convert_data(value, subject.type.result, tree.value.span)
            old = self.access(subject, places, tree.span)
            if conditions:
                chosen = self.builder.select(self.builder.chain("&&", tuple(conditions)), converted, old)
                assert chosen is not None, "both have the type of the elements"
                converted = chosen
        return make_function(self.dag, variables, converted)

    def _condition_of(
        self, index: ast.AstNode, variable: BoundVariable, place: DataValue, conditions: list[Node], rest: list
    ) -> None:
        """Adds where an index is the one that is assigned, and for a slice the index of what is assigned."""
        if isinstance(index, ast.Blank):
            index = ast.Slice(index.span, None, None, None)
        if isinstance(index, ast.Slice):
            conditions += self._slice_conditions(lower_slice(self, index, variable.range), place, rest)
            return
        value = self._operand(index)
        if isinstance(value, FunctionValue) or value.type != INT:
            raise ProgramError("CS0324", index.span, f"an index is int, but {index.span.excerpt} is {value.type}")
        if value.node is place.node:
            return
        self.program.inference.add_constraint(IndexConstraint(value.node, variable.range, index.span))
        conditions.append(self.builder.apply("==", "int", place.node, value.node))

    def _slice_conditions(self, part: SliceArgument, place: DataValue, rest: list) -> list[Node]:
        """Where a place is in a slice; adds its index in the slice to `rest`."""
        if part.low is None or part.size is None:
            rest.append((place, None))
            return []
        number, apply = self.dag.constant, self.builder.apply
        offset = apply("-", "int", place.node, number(part.low, "int"))
        position, conditions = offset, []
        if part.step != 1:
            position = apply("/", "int", offset, number(part.step, "int"))
            zero = apply("%", "int", offset, number(part.step, "int"))
            conditions.append(apply("==", "int", zero, number(0, "int")))
        rest.append((DataValue(INT, (position,)), part.size))
        conditions.append(apply(">=", "int", position, number(0, "int")))
        conditions.append(apply("<", "int", position, number(part.size, "int")))
        return conditions

    def _value_at(self, tree: ast.WithElements, rest: list[tuple[DataValue, int | None]]) -> DataValue:
        """What is assigned: a value, or an element of a function of the slices' indices."""
        with self.body.guarded():
            value = self._operand(tree.value)
            if isinstance(value, DataValue):
                return value
            if len(value.type.parameters) != len(rest) or any(p != INT for p in value.type.parameters):
                wanted = f"a function of {len(rest)} indices" if rest else "one value"
                message = f"{tree.value.span.excerpt} is {value.type}, but {wanted} is assigned"
                raise ProgramError("CS0324", tree.value.span, message, "slices take a function: `a[1:3] = b`")
            indices = []
            for (index, size), range_ in zip(rest, value.domain_with_borders, strict=True):
                if size is not None and isinstance(range_, Range) and range_.size != size:
                    message = f"{tree.value.span.excerpt} has {range_.size} elements, but {size} are assigned"
                    raise ProgramError("CS0324", tree.value.span, message, "give both the same size: `a[1:3] = b[:2]`")
                low = range_.low if isinstance(range_, Range) else 0
                node = self.builder.apply("+", "int", index.node, self.dag.constant(low, "int")) if low else index.node
                indices.append(DataValue(INT, (node,)))
            return self.apply_at(value, indices, tree.value.span, frozenset())
