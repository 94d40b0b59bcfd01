"""Elementwise kernels: all arrays are read at the linear index that is written, four elements at a time if possible."""

from __future__ import annotations

from collections.abc import Callable

from renderer.cdollar.ir.dag import Access, BoundVariable, Node, without_lets
from renderer.cdollar.ir.passes import order_within_scope
from renderer.cdollar.targets.dialects import CDialect, indented
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.expression_emitter import EmittedValue, RangesOf

VECTOR = "xyzw"  # components of a vector of four elements


def is_elementwise(variables: tuple[BoundVariable, ...], bodies: tuple[Node, ...], ranges_of: RangesOf) -> bool:
    """Whether all arrays are read at the very index that is written, so that indices need no decoding."""
    box = [(v.range.low, v.range.high) for v in variables]
    nodes = [node for body in bodies for node in order_within_scope(body)]
    reads = 0
    for node in nodes:
        if node.op == "reduce" and node.free_variables:
            return False
        if node.op != "apply" or not isinstance(node.attribute, Access):
            continue
        indices = [index.attribute if index.op == "variable" else None for index in node.inputs[1:]]
        ranges = ranges_of(without_lets(node.inputs[0]))
        if indices != list(variables) or [(r.low, r.high) for r in ranges] != box:
            return False
        reads += 1
    users = [node for node in nodes for child in node.inputs if child.op == "variable"]
    only_read = all(isinstance(user.attribute, Access) for user in users)
    return reads > 0 and only_read and not any(body.op == "variable" for body in bodies)


def emitter_of(variables: tuple[BoundVariable, ...], bodies: tuple[Node, ...], ranges_of: RangesOf) -> Emitter:
    """The emitter of a kernel that computes `bodies` at each point of the variables' box."""
    elementwise = is_elementwise(variables, bodies, ranges_of)
    return (ElementwiseEmitter if elementwise else Emitter)(CDialect(), ranges_of)


class ElementwiseEmitter(Emitter):
    """Loads arrays at `linear_index`, or, while `component` is set, from that component of a loaded vector."""

    def access(self, node: Node) -> EmittedValue:
        """Emit loads of an array's components."""
        source, block = self.input_of(without_lets(node.inputs[0])), self.hoist_target(node)
        names = []
        for k, type_ in enumerate(source.types):
            element = self.dialect.load(source.buffer(k), "linear_index", type_)
            if self.component:
                element = f"{source.buffer(k)}_vector.{self.component}"
            names.append(self.declare(block.lines, type_, element))
        return EmittedValue(tuple(names))

    def bind_element(self, variables: tuple[BoundVariable, ...]) -> None:
        """Bind the variables of the element at `linear_index`, whose coordinates nothing needs."""
        for variable in variables:
            self.define(variable, "linear_index")

    def vector(
        self, variables: tuple[BoundVariable, ...], emit: Callable[[], None], outputs: tuple[str, ...] = ()
    ) -> list[str]:
        """Vector loads, then each element; none unless all arrays and `outputs` hold 4-byte numbers."""
        types = [type_ for source in self.inputs.values() for type_ in source.types]
        if not all(type_ in ("float", "int", "uint") for type_ in (*types, *outputs)):
            return []
        elements = []
        for component in VECTOR:
            self.component = component
            elements += ["{", *indented(self.element(variables, emit)), "}"]
        self.component = ""
        loads = [
            f"const {type_}4 {source.buffer(k)}_vector = ((GLOBAL const {type_}4 *){source.buffer(k)})[vector_index];"
            for source in self.inputs.values()
            for k, type_ in enumerate(source.types)
        ]
        return [*loads, *elements]
