"""Rewrites of expressions for reverse mode: calls are inlined, and repeated values are evaluated once, into arrays.

Reverse mode costs a small multiple of the function, whatever the number of its arguments; a tangent function costs one
evaluation for each argument. So device functions without loops are inlined and differentiated as expressions. Nodes,
lets, components and abstractions: ir/dag.py. A bound variable is the index of a function or of a reduction, as i and k
in `b(i) = 2 * sum(a(i, k))`. GradientHoister changes this to `t(i) = sum(a(i, k)); b(i) = 2 * t(i)`, so that the
gradient reads each sum where it would compute it again.
"""

from renderer.cdollar.gradients.derivatives import Algebra, Context, Nodes
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir import device_function as device
from renderer.cdollar.ir.passes import ReductionHoister, alpha_rename, is_computed_function

# Inlining

MAX_NODES = 400  # nodes of an inlined function
MAX_RETURNS = 4  # return statements of one inlining: each branch with a return doubles the statements after it
Environment = dict[device.Local, ir.Node]


class NotInlined(Exception):
    """A function has loops or is too large to be inlined."""


def inline_calls(dag: ir.Dag, roots: Nodes) -> Nodes:
    """The roots with calls of functions without loops replaced by their expressions."""
    inlined: dict[ir.Node, Nodes] = {}

    def change(node: ir.Node, inputs: Nodes) -> ir.Node:
        """Replaces a call by the body of its function, and a component of the call by the body's component."""
        new = ir.with_inputs(dag, node, inputs)
        if isinstance(new.attribute, ir.UserCall):
            try:
                inlined[new] = Inliner(dag).call(new)
            except NotInlined:
                return new
            return inlined[new][0] if len(inlined[new]) == 1 else new
        if isinstance(new.attribute, ir.Component) and new.inputs[0] in inlined:
            return inlined[new.inputs[0]][new.attribute.index]
        return new

    return ir.rewrite(roots, change)


class Inliner:
    """Executes one device function symbolically: locals hold expressions, branches become selections."""

    def __init__(self, dag: ir.Dag):
        self.dag, self.algebra = dag, Algebra(dag)
        self.returns = 0

    def call(self, node: ir.Node) -> Nodes:
        """The expressions of a call's components; raises NotInlined."""
        function = node.attribute.function
        environment: Environment = dict(zip(function.parameters, node.inputs, strict=True))
        result = self.execute(list(function.body), environment)
        if result is None or len(ir.topological_order(result, ir.inputs_outside_functions)) > MAX_NODES:
            raise NotInlined
        return result

    def execute(self, statements: list[device.Statement], environment: Environment) -> Nodes | None:
        """The expressions that statements return; None if they return nothing; raises NotInlined."""
        for position, statement in enumerate(statements):
            if isinstance(statement, device.StoreOp):
                values = [self.value(node, environment) for node in statement.nodes]
                # No target is an element of a local array: the ClearOp that begins one has raised NotInlined.
                pairs = zip(statement.targets, values, strict=True)
                environment.update((local, value) for local, value in pairs if isinstance(local, device.Local))
            elif isinstance(statement, device.ReturnOp):
                self.returns += 1
                if self.returns > MAX_RETURNS:
                    raise NotInlined
                return tuple(self.value(node, environment) for node in statement.nodes)
            elif isinstance(statement, device.BranchOp):
                condition, rest = self.value(statement.condition, environment), statements[position + 1 :]
                if may_leave(statement):
                    if_true = self.execute([*statement.if_true, *rest], dict(environment))
                    if_false = self.execute([*statement.if_false, *rest], dict(environment))
                    if if_true is None or if_false is None:
                        raise NotInlined
                    return tuple(self.algebra.select(condition, a, b) for a, b in zip(if_true, if_false, strict=True))
                self.merge(statement, condition, environment)
            else:
                raise NotInlined
        return None

    def merge(self, branch: device.BranchOp, condition: ir.Node, environment: Environment) -> None:
        """Executes both branches; each local that has a value after both becomes a selection of the two values.

        A local that only one branch declares has no value afterwards.
        """
        after = [dict(environment), dict(environment)]
        for statements, values in zip((branch.if_true, branch.if_false), after, strict=True):
            self.execute(list(statements), values)
        for local in after[0].keys() & after[1].keys():
            environment[local] = self.algebra.select(condition, after[0][local], after[1][local])

    def value(self, node: ir.Node, environment: Environment) -> ir.Node:
        """An expression, with each local replaced by the expression that it holds."""

        def change(node: ir.Node, inputs: Nodes) -> ir.Node:
            if node.op == "local":
                return environment[node.attribute]
            new = ir.with_inputs(self.dag, node, inputs)
            if isinstance(new.attribute, ir.UserCall):
                raise NotInlined
            return new

        return ir.rewrite((node,), change)[0]


def may_leave(branch: device.BranchOp) -> bool:
    """True if a branch may leave the function or a loop."""
    leaves, inside = (device.ReturnOp, device.JumpOp), (*branch.if_true, *branch.if_false)
    return any(isinstance(s, leaves) or isinstance(s, device.BranchOp) and may_leave(s) for s in inside)


# Hoisting


class GradientHoister(ReductionHoister):
    """Makes each reduction that depends on bound variables a function of these variables, which becomes an array.

    A reduction that is the whole body of a function stays: the function is that array already.
    """

    def _with_scope(self, node: ir.Node, scope: ir.VariableSet) -> ir.Node:
        """A function whose whole bodies are reductions: hoists inside of these alone."""
        if is_computed_function(node) and all(n.op == "reduce" for n in node.inputs):
            inner = [scope | frozenset(n.attribute[1]) for n in node.inputs]
            # super() without arguments fails in a comprehension before Python 3.12
            bodies = [super(GradientHoister, self)._with_scope(n, s) for n, s in zip(node.inputs, inner, strict=True)]
            return ir.with_inputs(self.dag, node, tuple(bodies))
        return super()._with_scope(node, scope)

    def _reduction(self, node: ir.Node, scope: ir.VariableSet) -> ir.Node:
        """Hoists also a reduction that needs all variables of the scope (`<=` where ReductionHoister has `<`)."""
        free = node.free_variables
        if free and free <= scope and all(isinstance(v.range, ir.Range) for v in free):
            return self._hoist(self._with_scope(node, free | frozenset(node.attribute[1])))
        return super()._reduction(node, scope)


def renamed(dag: ir.Dag, values: Nodes, variables: Context, reduced: bool = False) -> tuple[Context, Nodes]:
    """New variables with the ranges of `variables`, and the values with the new variables in place of the old ones."""
    new = tuple(ir.BoundVariable(v.name, v.type, v.range, reduced) for v in variables)
    return new, ir.substitute(dag, values, dict(zip(variables, map(dag.bound_variable, new), strict=True)))


def read_once(dag: ir.Dag, values: Nodes, variables: Context) -> Nodes:
    """Stores values over `variables` in a function that is evaluated once; returns its components at the variables.

    For values u(i), v(i): f = (j -> (u(j), v(j))), and f(i)[0], f(i)[1]. The reductions in f get new variables too.
    """
    new, bodies = renamed(dag, values, variables)
    function = dag.abstraction(new, alpha_rename(dag, bodies), is_array=True)
    if not function.free_variables:
        function = dag.intern("let", function.type, (function,))
    return dag.components(dag.access(function, tuple(map(dag.bound_variable, variables))))
