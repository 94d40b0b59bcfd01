"""A compilation of a C$ program: declares its types and functions, checks the functions, and lowers their calls.

The runtime (runtime/evaluate.py, the REPL, the language server) creates a Compilation, loads a program, calls main.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from renderer.cdollar.checker.program import Body, NotDeviceCode, Program, Rules
from renderer.cdollar.checker.scopes import Scope, Variable
from renderer.cdollar.checker.tables import UserFunction, class_functions
from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import DataValue, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span, raise_first
from renderer.cdollar.ir.dag import Dag, UserCall, tuple_type
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.cdollar.ir.types import Data, Type, component_types
from renderer.cdollar.lowering import statements
from renderer.cdollar.lowering.domains import lower_as
from renderer.cdollar.lowering.expressions import lower_any_expression
from renderer.cdollar.lowering.gradients import GradientFunction, call_gradient

MAX_CALL_DEPTH = 64
MAX_INLINED_NODES = 500  # nodes of a function of one expression above which a call of it is one node


def call(body: Body, function: UserFunction, values: Sequence[Value], span: Span) -> Value:
    """The value of a function for converted arguments, called from `body`.

    A function of one expression and one that builds functions are inlined, unless they are large; others are one node
    of a device function. Equal calls have one value: a chain of functions that call the next one twice with the same
    arguments takes linear time.
    """
    program = body.program
    if function.error is not None:
        raise function.error
    data = [v for v in values if isinstance(v, DataValue)]
    is_gradient = isinstance(function, GradientFunction)
    lowered = None  # the device function, if the body has been lowered to one
    if isinstance(function.result_type, Data) and len(data) == len(values) and not is_gradient:
        lowered = function.device_function
        if body.in_device_code or not function.is_expression:
            lowered = device_function_or_none(program, function)
        if lowered is not None and (not function.is_expression or lowered.node_count > MAX_INLINED_NODES):
            inputs = (node for value in data for node in value.nodes)
            types = tuple_type(component_types(lowered.result_type))
            node = body.dag.apply(UserCall(lowered), types, *inputs)
            return DataValue(lowered.result_type, body.dag.components(node))
    host = program.host
    callee = function.key if isinstance(function, GradientFunction) else function
    # the values of a call, and what else its lowering depends on
    key = callee, (*values,), body.in_device_code, body.guard_depth > 0, host.abstract_depth > 0, host.keeps_expressions

    def lower_body() -> Value:
        if isinstance(function, GradientFunction):
            return call_gradient(body, function, values, span)
        if body.in_device_code and lowered is not None:
            return inline_in_device_code(program, function, values, span)
        body.require_host()
        with calling(program, function, span):
            return run_function(program, function, values, body.guard_depth)

    return program.lower_once(key, lower_body)


def device_function_or_none(program: Program, function: UserFunction) -> DeviceFunction | None:
    """The function lowered for the device, None if its body builds functions."""
    if function.device_function is None and not function.is_host_only:
        try:
            with calling(program, function, function.declaration.name_span), program.inference.isolated():
                body = Body(program, function=function, in_device_code=True)
                function.device_function = statements.lower_device_function(body)
        except NotDeviceCode:
            function.is_host_only = True  # it is not tried again
    return function.device_function


@contextmanager
def calling(program: Program, function: UserFunction, span: Span) -> Iterator[None]:
    """Lowers the body of a function that is called at `span`; raises CS0604 if it calls itself."""
    stack = program.call_stack
    if function in stack:
        path = " -> ".join(f.name for f in stack[stack.index(function) :] + [function])
        message = f"{function.name} calls itself ({path}): devices have no recursion"
        raise ProgramError("CS0604", span, message, "write a loop")
    if not stack:
        program.start(function.declaration.name_span)
    stack.append(function)
    try:
        yield
    finally:
        stack.pop()


def scope_of_call(function: UserFunction, values: Sequence[Value]) -> Scope:
    """The parameters of a function with their values."""
    scope = Scope()
    for name, type_, value in zip(function.parameter_names, function.parameter_types, values, strict=True):
        scope.names[name] = Variable(value, type_)
    return scope


def inline_in_device_code(program: Program, function: UserFunction, values: Sequence[Value], span: Span) -> Value:
    """The value of a function of one expression, inside of a device function."""
    statement = function.declaration.body[0]
    assert isinstance(statement, ast.Return) and statement.value is not None, "lower_return has checked the value"
    body = Body(program, scope_of_call(function, values), in_device_code=True)
    with calling(program, function, span):
        return lower_as(body, statement.value, function.result_type)


def run_function(program: Program, function: UserFunction, values: Sequence[Value], guard_depth: int) -> Value:
    """Runs the statements of a function on the host; raises CS0604 and CS0208."""
    span, trees = function.declaration.name_span, function.declaration.body
    if len(program.call_stack) > MAX_CALL_DEPTH:
        raise ProgramError("CS0604", span, f"calls nest deeper than {MAX_CALL_DEPTH}")
    body = Body(program, scope_of_call(function, values), function, guard_depth=guard_depth)
    outcome = statements.run(body, trees)
    raise_first(body.errors)
    if isinstance(outcome, statements.Returned):
        return outcome.value
    if program.host.abstract_depth and statements.always_returns(trees):  # the check runs a loop once
        return program.abstract_value(function.name, function.result_type)
    statements.fail_missing_return(function)


MAX_ERRORS = 20  # errors of a program, after which no function is checked any more
RULES = Rules(lower_any_expression, call, device_function_or_none)


class Compilation:
    """A checked program. `make_target(dag)` gives the target that evaluates it."""

    def __init__(self, source: SourceFile, make_target: Callable[[Dag], Target], folder: Path | None = None):
        self.source, self.program = source, Program(RULES, make_target, folder)
        self.dag = self.program.dag
        self.target = self.program.host.target
        self.abstract_arguments: dict[tuple[str, Type], Value] = {}  # by name and type of a parameter

    def restart(self, source: SourceFile) -> None:
        """Forgets the state of the last line of the prompt, or of the last frame."""
        self.source, self.program.call_stack = source, []
        self.program.inference.contexts, self.program.inference.log = [], []
        self.program.host.statement_count = 0
        self.program.start(Span(source, 0, 1))

    # Declarations

    def load(self, items: list[ast.AstNode], checked: bool = True) -> None:
        """Declares the types, functions and constants of a file, then (if `checked`) checks each new function.

        Functions are checked with abstract arguments, as if called with unknown values. Functions loaded earlier (the
        prelude) may be redefined.
        """
        types, functions = self.program.types, self.program.functions
        functions.prelude_functions = set(functions.all())
        types.declared_later = {i.name for i in items if isinstance(i, (ast.ClassDeclaration, ast.TypeAlias))}
        for item in items:
            if isinstance(item, (ast.ClassDeclaration, ast.TypeAlias)):
                types.declare(item)
        for item in items:
            if isinstance(item, ast.ClassDeclaration):
                functions.declare_all(class_functions(item))
            elif isinstance(item, ast.FunctionDeclaration):
                functions.declare_all([item])
        for item in items:
            if isinstance(item, ast.VariableDeclaration):
                self.run_globally(item)
        if checked:
            self.check_all([f for f in functions.all() if f not in functions.prelude_functions])

    def check_all(self, functions: list[UserFunction]) -> None:
        """Checks functions; raises the first error, whose text shows the errors of other functions too."""
        errors: dict[tuple[int, str], ProgramError] = {}  # an error in a function that others call is one error
        for function in functions:
            try:
                self.check(function)
            except ProgramError as error:
                for each in (error, *error.others):
                    errors.setdefault((each.span.start, each.code), each)
                function.error = error if error.code == "CS0603" else None
                self.restart(self.source)  # the call stack and the contexts are left as the error found them
            if len(errors) > MAX_ERRORS:
                break
        raise_first(list(errors.values()))

    def run_globally(self, statement: ast.AstNode) -> None:
        """Runs a statement in the scope of the program's constants."""
        self.program.start(statement.span)
        statements.run(Body(self.program, self.program.globals), [statement])

    def check(self, function: UserFunction) -> None:
        """Checks a function with abstract arguments."""
        program = self.program
        if function.takes_data and isinstance(function.result_type, Data):
            if device_function_or_none(program, function):
                return
        program.host.abstract_depth += 1
        try:
            parameters = zip(function.parameter_names, function.parameter_types, strict=True)
            known = self.abstract_arguments
            values = [known.setdefault(p, program.abstract_value(*p)) for p in parameters]
            call(self.body(), function, values, function.declaration.name_span)
        finally:
            program.host.abstract_depth -= 1

    def body(self, scope: Scope | None = None) -> Body:
        """The context of an expression outside of functions; without a scope, it knows the program's names only."""
        return Body(self.program, scope or Scope())

    def call_main(self, function: UserFunction, values: list[Value]) -> Value:
        """The value of main; its index constraints are checked."""
        with self.program.inference.context():
            return call(self.body(), function, values, function.declaration.name_span)
