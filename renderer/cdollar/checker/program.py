"""The state that all functions of the lowering share: `Program` for a compilation, `Body` for each function body.

Lowering turns the syntax tree into the nodes of a DAG. Some numbers must be known meanwhile, such as the ends of ranges
and the conditions of host statements: a HostEvaluator has the target compute them at once.
"""

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from renderer.cdollar.checker.arrays import open_array
from renderer.cdollar.checker.domains import InferenceStack
from renderer.cdollar.checker.node_builder import NodeBuilder
from renderer.cdollar.checker.scopes import Scope
from renderer.cdollar.checker.tables import FunctionTable, TypeTable, UserFunction
from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import DataValue, DomainValue, FunctionValue, TupleValue, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, Span
from renderer.cdollar.gradients.tangents import TangentFunctions
from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.device_function import DeviceFunction, Local
from renderer.cdollar.ir.operations import evaluate_numbers
from renderer.cdollar.ir.types import INT, DomainType, FunctionType, Tuple, Type, component_types
from renderer.errors import InputError
from renderer.records import dataclass, field
from renderer.system.progress import Progress
from renderer.system.trust import named_file

# Numbers known to the host

FIRST = ir.BoundVariable("i", "int", ir.Range(0, 1))  # the index of a number that is evaluated as an array of one


class HostEvaluator:
    """Evaluates numbers that must be known while the program is built: ends of ranges, conditions of host statements.

    While `abstract_depth` is positive, a function is checked with abstract arguments, whose numbers are unknown (None).
    """

    def __init__(self, target: Target):
        self.target = target
        self.abstract_depth = 0
        self.progress: Progress | None = None  # counts the iterations of loops
        self.keeps_expressions = False  # while a function is differentiated: an array would hide its inputs
        self.differentiations = 0  # gradients that were built
        self.statement_count = 0  # statements that ran on the host
        # Numbers of parameters that decided what was built, as an end of a range does: others need a new compilation.
        self.scalars_read: set[ir.RuntimeScalar] = set()
        self.evaluated: WeakKeyDictionary[ir.Node, float] = WeakKeyDictionary()  # numbers that node_number() computed

    def node_number(self, node: ir.Node) -> float | None:
        """The number of a node without free variables; None if it is unknown.

        An operation on numbers is computed here; the target computes what needs arrays or loops.
        """
        if not self.abstract_depth:
            leaves = (n.attribute for n in ir.topological_order([node]) if n.op == "scalar")
            self.scalars_read |= {leaf for leaf in leaves if isinstance(leaf, ir.RuntimeScalar)}
        if node.op == "scalar":
            number: float | None = node.attribute.number
            return number
        if node.op == "apply" and isinstance(node.attribute, str) and all(n.op == "scalar" for n in node.inputs):
            numbers = [child.attribute.number for child in node.inputs]
            types = [child.type for child in node.inputs]
            return None if None in numbers else evaluate_numbers(node.attribute, node.type, numbers, types)
        if self.abstract_depth and has_unknown(node):
            return None
        if node not in self.evaluated:
            self.evaluated[node] = self.target.evaluate_scalars([node])[0]
        return self.evaluated[node]

    def cheap_numbers(self, value: DataValue) -> list[float] | None:
        """The numbers of a closed value without reductions; None for other values and while a number is unknown."""
        is_known = all(node.op == "scalar" and node.attribute.number is not None for node in value.nodes)
        is_cheap = value.is_closed and not any(node.needs_evaluation for node in value.nodes)
        if not is_known and (self.abstract_depth or not is_cheap):
            return None
        numbers = [self.node_number(node) for node in value.nodes]
        known = [number for number in numbers if number is not None]
        return known if len(known) == len(numbers) else None

    def materialize_variables(self, scope: Scope) -> None:
        """Evaluates what variables hold, together, so that the DAG of a long loop stays small.

        Functions with finite domains and numbers become arrays, which stay on the device.
        """
        if self.abstract_depth or self.keeps_expressions:
            return
        variables = [variable for _, variable in scope.variables() if variable.value is not None]
        wanted: dict[Value, FunctionValue] = {}
        values = [variable.value for variable in variables]
        for value in values:  # the fields of tuples are appended
            if isinstance(value, TupleValue):
                values += value.fields
            elif value is not None and (function := self.to_evaluate(value)) is not None:
                wanted[value] = function
        arrays = dict(zip(wanted, self.target.materialize_all(list(wanted.values())), strict=True))
        for variable in variables:
            assert variable.value is not None
            variable.value = self.materialized(variable.value, arrays)

    def to_evaluate(self, value: Value) -> FunctionValue | None:
        """The function to evaluate in place of a value; None for a value that stays as it is.

        For numbers it is a function of one index, 0. Reads of arrays, cheap expressions, and functions with free
        variables or an infinite domain stay.
        """
        if isinstance(value, DataValue):
            # a read of an array, or the component of a read
            node = value.node.inputs[0] if isinstance(value.node.attribute, ir.Component) else value.node
            is_read = isinstance(node.attribute, ir.Access) and isinstance(node.inputs[0].attribute, ir.ArraySource)
            if is_read or not value.is_closed or not any(n.needs_evaluation for n in value.nodes):
                return None
            type_ = FunctionType(value.type, (INT,))
            return FunctionValue(type_, self.target.dag.function((FIRST,), value.nodes, type_))
        if not isinstance(value, FunctionValue) or value.node.free_variables:
            return None
        is_finite = all(isinstance(r, ir.Range) for r in value.domain) and not value.borders
        # The attribute of a function node: a tuple of its variables, or the source of an array.
        is_computed = value.node.op != "function" or isinstance(value.node.attribute, tuple) and is_finite
        return value if is_computed else None

    def materialized(self, value: Value, arrays: dict[Value, FunctionValue]) -> Value:
        """A value, or each field of a tuple, replaced by its array in `arrays` if it has one."""
        if isinstance(value, TupleValue):
            return TupleValue(value.type, tuple(self.materialized(field, arrays) for field in value.fields))
        array = arrays.get(value)
        if array is None or isinstance(value, FunctionValue):
            return array or value
        assert isinstance(value, DataValue), "to_evaluate() takes functions and data"
        dag = self.target.dag
        return DataValue(value.type, dag.components(dag.access(array.node, (dag.constant(0, "int"),))))


def has_unknown(node: ir.Node) -> bool:
    """True if a node depends on an abstract argument or on a bound variable."""
    for child in ir.topological_order([node]):
        if child.op == "scalar" and child.attribute.number is None or child.op == "variable":
            return True
        if child.op == "function" and isinstance(child.attribute, ir.ArraySource) and child.attribute.data is None:
            return True
        if child.op == "reduce" and not all(isinstance(v.range, ir.Range) for v in child.attribute[1]):
            return True
    return False


# State of a compilation

# The budget of MAX_EXPANSIONS lowered bodies grows by this number for each function that a program declares.
EXPANSIONS_PER_FUNCTION = 200


class NotDeviceCode(Exception):
    """A body that was tried as a device function builds functions."""


class Rules(NamedTuple):
    """The functions at the top of the lowering, which modules below call recursively: imports only go downwards."""

    expression: "Callable[[Body, ast.AstNode, Type | None], Value]"
    call: "Callable[[Body, UserFunction, Sequence[Value], Span], Value]"
    device_function: "Callable[[Program, UserFunction], DeviceFunction | None]"


class Program:
    """All tables of one compilation, its DAG and its inference contexts."""

    def __init__(self, rules: Rules, make_target: Callable[[ir.Dag], Target], folder: Path | None = None):
        self.rules, self.make_target, self.dag = rules, make_target, ir.Dag()
        self.builder = NodeBuilder(self.dag)
        self.types = TypeTable()
        self.functions = FunctionTable(self.types)
        self.globals = Scope()
        self.inference = InferenceStack(self.dag.warn)
        self.host = HostEvaluator(make_target(self.dag))
        self.tangents = TangentFunctions(self.dag)
        self.call_stack: list[UserFunction] = []  # the functions whose bodies are being lowered
        self.called: dict[Hashable, Value] = {}  # the values of calls since start(), by function, arguments and context
        # By a variable of a domain that is not a box (`j : 0..i`): the bool node that is true at the domain's points.
        self.tests: dict[ir.BoundVariable, ir.Node] = {}
        self.folder = folder
        self.opened_files: dict[str, FunctionValue] = {}
        self.noted: dict[Span, Value] | None = None  # for editors: see note()

    def start(self, span: Span) -> None:
        """Starts to lower a function, a statement or a line of the prompt at `span`; the budget of bodies grows."""
        self.dag.span, self.dag.expansions = span, max(0, self.dag.expansions - EXPANSIONS_PER_FUNCTION)
        if not self.host.abstract_depth:  # the functions of a program are checked with the same abstract arguments
            self.called = {}

    def note(self, span: Span, value: Value) -> None:
        """Keeps the value of an expression or of a declared variable, for editors."""
        if self.noted is not None:
            self.noted[span] = value

    def lower_once(self, key: Hashable, lower_body: Callable[[], Value]) -> Value:
        """The value of a body: the one that is known for an equal key, else a new one; raises CS0603."""
        if key not in self.called:
            self.dag.count_expansion()
            self.called[key] = lower_body()
        return self.called[key]

    def open_file(self, name: str, span: Span) -> FunctionValue:
        """`file("big.npy")`: a function of its indices; nothing is read yet.

        Paths are relative to the program's folder, then to the current one. The folder is None for a program that the
        user types.
        """
        if name not in self.opened_files:
            try:
                path = named_file(name, self.folder, (".npy",), "the file")
            except InputError as error:
                try:
                    path = named_file(os.path.abspath(name), self.folder, (".npy",), "the file")
                except (InputError, ValueError):
                    raise ProgramError("CS0502", span, str(error)) from None  # of the first path
            self.opened_files[name] = open_array(self.dag, path, None, name, span)
        return self.opened_files[name]

    def abstract_value(self, name: str, type_: Type) -> Value:
        """An unknown value of the type (JAX's abstract value)."""
        if isinstance(type_, FunctionType):
            return self.abstract_function(name, type_)
        if isinstance(type_, DomainType):
            return DomainValue((ir.UNKNOWN,) * type_.rank)
        if isinstance(type_, Tuple):
            return TupleValue(type_, tuple(self.abstract_value(f"{name}.{n}", t) for n, t in type_.fields))
        return DataValue(type_, tuple(self.dag.runtime_scalar(None, t, name) for t in component_types(type_)))

    def abstract_function(self, name: str, type_: FunctionType) -> FunctionValue:
        """An unknown function of the type."""
        ranges = (ir.UNKNOWN,) * sum(len(component_types(p)) for p in type_.parameters)
        return FunctionValue(type_, self.dag.array(type_, name, None, ranges), ranges)


@dataclass
class Body:
    """The context of all functions that lower one body: the program's state, and the current point of the lowering.

    The body is of `function`; None for expressions outside of functions and for the lines of the REPL.
    """

    program: Program
    scope: Scope = field(default_factory=Scope)
    function: UserFunction | None = None
    in_device_code: bool = False  # True for the body of a device function, which cannot build functions
    guard_depth: int = 0  # the number of enclosing conditions
    loop_depth: int = 0
    defining: str = ""  # the local function `var f(i) = ...` that is being lowered
    # Both by the id() of a syntax tree, for lowering/reductions.py: the current box of a restriction to a union, and
    # the value of a restriction's domain, which is used once.
    chosen_boxes: dict[int, ir.Box] = field(default_factory=dict)
    domains: dict[int, Value] = field(default_factory=dict)
    locals: list[Local] = field(default_factory=list)  # local variables of device code
    # Errors of the body's statements, while the function is checked.
    errors: list[ProgramError] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take over the program's DAG and builder, which all functions use."""
        self.dag, self.builder = self.program.dag, self.program.builder

    @contextmanager
    def block(self, scope: Scope | None = None) -> Iterator[Scope]:
        """Lowers in an inner scope (or the given one), then returns to the current one."""
        outer, self.scope = self.scope, scope or Scope(self.scope)
        try:
            yield self.scope
        finally:
            self.scope = outer

    @contextmanager
    def guarded(self, is_guarded: bool = True) -> Iterator[None]:
        """Lowers expressions that are evaluated only under a condition."""
        self.guard_depth += is_guarded
        try:
            yield
        finally:
            self.guard_depth -= is_guarded

    def require_host(self) -> None:
        """Raises NotDeviceCode where functions cannot be built."""
        if self.in_device_code:
            raise NotDeviceCode


def lower(body: Body, tree: ast.AstNode, expected: Type | None = None) -> Value:
    """An expression inside of a full expression; `expected` is the type that a lambda or an array literal takes on."""
    return body.program.rules.expression(body, tree, expected)
