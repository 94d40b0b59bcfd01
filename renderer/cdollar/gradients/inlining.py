"""Inlines device functions without loops, so that reverse mode differentiates them as expressions.

Reverse mode costs a small multiple of a function, however many arguments it has; a tangent function costs one for each.
"""

from __future__ import annotations

from renderer.cdollar.gradients.derivatives import Algebra
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir import device_function as device

MAX_NODES = 400  # of an inlined function
MAX_RETURNS = 4  # each may repeat what comes after a branch
Environment = dict[device.Local, ir.Node]


class TooMuch(Exception):
    """A function is not inlined: it has loops, or is too large."""


def inline_calls(dag: ir.Dag, roots: tuple[ir.Node, ...]) -> tuple[ir.Node, ...]:
    """The roots with calls of functions without loops replaced by their expressions."""
    inlined: dict[ir.Node, tuple[ir.Node, ...]] = {}

    def change(node: ir.Node, inputs: tuple[ir.Node, ...]) -> ir.Node:
        new = ir.with_inputs(dag, node, inputs)
        if isinstance(new.attribute, ir.UserCall):
            try:
                inlined[new] = Inliner(dag).call(new)
            except TooMuch:
                return new
            return inlined[new][0] if len(inlined[new]) == 1 else new
        if isinstance(new.attribute, ir.Component) and new.inputs[0] in inlined:
            return inlined[new.inputs[0]][new.attribute.index]
        return new

    return ir.rewrite(roots, change)


class Inliner:
    """Runs one function on expressions; branches become selections."""

    def __init__(self, dag: ir.Dag):
        self.dag, self.algebra = dag, Algebra(dag)
        self.returns = 0

    def call(self, node: ir.Node) -> tuple[ir.Node, ...]:
        """The components of a call; raises TooMuch."""
        function = node.attribute.function
        environment: Environment = dict(zip(function.parameters, node.inputs, strict=True))
        result = self.run(list(function.body), environment)
        if result is None or len(ir.topological_order(result, ir.inputs_outside_functions)) > MAX_NODES:
            raise TooMuch
        return result

    def run(self, statements: list[device.Statement], environment: Environment) -> tuple[ir.Node, ...] | None:
        """The components that statements return; None if they come to their end."""
        for position, statement in enumerate(statements):
            if isinstance(statement, device.StoreOp):
                values = [self.value(node, environment) for node in statement.nodes]
                environment.update(zip(statement.locals, values, strict=True))
            elif isinstance(statement, device.ReturnOp):
                self.returns += 1
                if self.returns > MAX_RETURNS:
                    raise TooMuch
                return tuple(self.value(node, environment) for node in statement.nodes)
            elif isinstance(statement, device.BranchOp):
                condition, rest = self.value(statement.condition, environment), statements[position + 1 :]
                if leaves(statement):
                    ends = [
                        self.run([*branch, *rest], dict(environment))
                        for branch in (statement.if_true, statement.if_false)
                    ]
                    if ends[0] is None or ends[1] is None:
                        raise TooMuch
                    return tuple(self.algebra.select(condition, a, b) for a, b in zip(ends[0], ends[1], strict=True))
                self.merge(statement, condition, environment)
            else:
                raise TooMuch
        return None

    def merge(self, branch: device.BranchOp, condition: ir.Node, environment: Environment) -> None:
        """Runs both branches; locals that differ after them are selected."""
        after = [dict(environment), dict(environment)]
        for statements, own in zip((branch.if_true, branch.if_false), after, strict=True):
            self.run(list(statements), own)
        for local in after[0].keys() & after[1].keys():
            environment[local] = self.algebra.select(condition, after[0][local], after[1][local])

    def value(self, node: ir.Node, environment: Environment) -> ir.Node:
        """An expression over locals with these replaced."""

        def change(part: ir.Node, inputs: tuple[ir.Node, ...]) -> ir.Node:
            if part.op == "local":
                return environment[part.attribute]
            new = ir.with_inputs(self.dag, part, inputs)
            if isinstance(new.attribute, ir.UserCall):
                raise TooMuch
            return new

        return ir.rewrite((node,), change)[0]


def leaves(branch: device.BranchOp) -> bool:
    """Whether a branch may leave the function or a loop."""
    return any(
        isinstance(s, (device.ReturnOp, device.JumpOp)) or isinstance(s, device.BranchOp) and leaves(s)
        for s in (*branch.if_true, *branch.if_false)
    )
