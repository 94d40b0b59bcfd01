"""The compilation of a C$ program: declares it, checks its functions, and lowers calls of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from renderer.cdollar.checker.classes import functions_of
from renderer.cdollar.checker.device_function_lowering import DeviceFunctionLowering
from renderer.cdollar.checker.expressions import ExpressionLowering
from renderer.cdollar.checker.generics import Generics
from renderer.cdollar.checker.gradients import GradientFunction, call_gradient
from renderer.cdollar.checker.host_executor import HostExecutor, Returned, always_returns, fail_missing_return
from renderer.cdollar.checker.program import Body, NotDeviceCode, Program, UserFunction
from renderer.cdollar.checker.scopes import Scope, Variable
from renderer.cdollar.checker.target import Target
from renderer.cdollar.checker.values import DataValue, Value
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile, Span, raise_first
from renderer.cdollar.gradients.tangents import TangentFunctions
from renderer.cdollar.ir.dag import Dag, TooLarge, UserCall, tuple_type
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.cdollar.ir.types import Data, component_types

MAX_CALL_DEPTH = 64
MAX_ERRORS = 20  # of a program, after which no function is checked any more


class Compilation:
    """A checked program. `make_target(dag)` gives the target that evaluates it."""

    def __init__(self, source: SourceFile, make_target: Callable[[Dag], Target], folder: Path | None = None):
        self.source, self.program = source, Program(make_target, folder)
        self.dag = self.program.dag
        self.call_stack: list[UserFunction] = []
        self.target = self.program.host.target
        self.tangents = TangentFunctions(self.dag)
        self.generics = Generics(self.program)

    def restart(self, source: SourceFile) -> None:
        """Before another line of the prompt or another frame: forgets what counted for the last one."""
        self.source, self.call_stack = source, []
        self.program.inference.contexts, self.program.inference.log = [], []
        self.program.host.statement_count = 0

    # Declarations

    def load(self, items: list[ast.AstNode], checked: bool = True) -> None:
        """Declares the types, functions and constants of a file, then (if `checked`) checks each new function.

        Functions are checked with abstract arguments, as if called with unknown values. Functions loaded earlier (the
        prelude) may be redefined.
        """
        types, functions = self.program.types, self.program.functions
        functions.prelude_functions = set(functions.all())
        types.declared_later = {i.name for i in items if isinstance(i, (ast.ClassDeclaration, ast.TypeAlias))}
        try:
            for item in items:
                if isinstance(item, (ast.ClassDeclaration, ast.TypeAlias)):
                    types.declare(item)
            for item in items:
                if isinstance(item, ast.ClassDeclaration):
                    functions.declare_all(functions_of(item))
                elif isinstance(item, ast.FunctionDeclaration):
                    functions.declare_all([item])
            for item in items:
                if isinstance(item, ast.VariableDeclaration):
                    self.run_globally(item)
            if checked:
                self.check_all([f for f in functions.all() if f not in functions.prelude_functions])
        except TooLarge:
            raise too_large(Span(self.source, 0, 1)) from None

    def check_all(self, functions: list[UserFunction]) -> None:
        """Checks functions; the first error raised shows those of other functions too."""
        errors: dict[tuple[int, str], ProgramError] = {}  # an error in a function that others call is one error
        for function in functions:
            try:
                self.check(function)
            except ProgramError as error:
                errors.setdefault((error.span.start, error.code), error)
                self.restart(self.source)
            if len(errors) > MAX_ERRORS:
                break
        raise_first(list(errors.values()))

    def run_globally(self, statement: ast.AstNode) -> None:
        """Runs a statement in the scope of the program's constants."""
        HostExecutor(self.program, self, None, Body(self.program.globals)).run([statement])

    def check(self, function: UserFunction) -> None:
        """Checks a function with abstract arguments."""
        if function.takes_data and isinstance(function.result_type, Data) and self.device_function_or_none(function):
            return
        self.program.host.abstract_depth += 1
        try:
            parameters = zip(function.parameter_names, function.parameter_types, strict=True)
            with self._calling(function, function.declaration.name_span):
                self._run_body(function, [self.program.abstract_value(name, type_) for name, type_ in parameters], 0)
        finally:
            self.program.host.abstract_depth -= 1

    # Expressions outside of functions

    def expressions(self, scope: Scope | None = None) -> ExpressionLowering:
        """Lowers expressions in a scope; without one, only the program's own names are known."""
        return ExpressionLowering(self.program, self, Body(scope or Scope()))

    def call_main(self, function: UserFunction, values: list[Value]) -> Value:
        """A call whose index constraints are checked."""
        with self.program.inference.context():
            return self.call(function, values, function.declaration.name_span, Body())

    # Calls

    def call(self, function: UserFunction, values: list, span: Span, body: Body) -> Value:
        """The value of a function: its one expression or built functions inlined, or one node of a device function."""
        if isinstance(function, GradientFunction):
            return call_gradient(self, function, values, span, body)
        is_data = isinstance(function.result_type, Data) and all(isinstance(v, DataValue) for v in values)
        if is_data and (body.in_device_code or not function.is_expression):
            lowered = self.device_function_or_none(function)
            if lowered is not None:
                if function.is_expression:
                    return self._inline_in_device_code(function, values, span)
                inputs = (node for value in values for node in value.nodes)
                types = tuple_type(component_types(lowered.result_type))
                node = self.dag.apply(UserCall(lowered), types, *inputs)
                return DataValue(lowered.result_type, self.dag.components(node))
        body.require_host()
        with self._calling(function, span):
            return self._run_body(function, values, body.guard_depth)

    def device_function_or_none(self, function: UserFunction) -> DeviceFunction | None:
        """The function lowered for the device, None if its body builds functions."""
        if function.device_function is None and not function.is_host_only:
            try:
                with self._calling(function, function.declaration.name_span), self.program.inference.isolated():
                    function.device_function = DeviceFunctionLowering(self.program, self, function).lower()
            except NotDeviceCode:
                function.is_host_only = True
        return function.device_function

    def require_device_function(self, function: UserFunction, span: Span) -> DeviceFunction:
        """The function lowered for the device; raises CS0605 if its body builds functions."""
        result = self.device_function_or_none(function)
        if result is None:
            message = f"{function.name} builds functions, so it cannot reduce"
            raise ProgramError("CS0605", span, message, "its body may use numbers, vectors and records only")
        return result

    @contextmanager
    def _calling(self, function: UserFunction, span: Span) -> Iterator[None]:
        """Lowers the body of a function that is called at `span`; raises CS0604 if it calls itself."""
        if function in self.call_stack:
            path = " -> ".join(f.name for f in self.call_stack[self.call_stack.index(function) :] + [function])
            message = f"{function.name} calls itself ({path}): devices have no recursion"
            raise ProgramError("CS0604", span, message, "write a loop")
        self.call_stack.append(function)
        try:
            yield
        finally:
            self.call_stack.pop()

    def _scope_of_call(self, function: UserFunction, values: list) -> Scope:
        scope = Scope()
        for name, type_, value in zip(function.parameter_names, function.parameter_types, values, strict=True):
            scope.names[name] = Variable(value, type_)
        return scope

    def _inline_in_device_code(self, function: UserFunction, values: list, span: Span) -> Value:
        statement = function.declaration.body[0]
        assert isinstance(statement, ast.Return)
        if statement.value is None:
            raise ProgramError("CS0208", statement.span, "`return` needs a value")
        body = Body(self._scope_of_call(function, values), in_device_code=True)
        with self._calling(function, span):
            return ExpressionLowering(self.program, self, body).lower_as(statement.value, function.result_type)

    def _run_body(self, function: UserFunction, values: list, guard_depth: int) -> Value:
        span = function.declaration.name_span
        if len(self.call_stack) > MAX_CALL_DEPTH:
            raise ProgramError("CS0604", span, f"calls nest deeper than {MAX_CALL_DEPTH}")
        body = Body(self._scope_of_call(function, values), guard_depth=guard_depth)
        try:
            outcome = HostExecutor(self.program, self, function, body).run(function.declaration.body)
        except TooLarge:
            raise too_large(span) from None
        if isinstance(outcome, Returned):
            return outcome.value
        if self.program.host.abstract_depth and always_returns(function.declaration.body):
            return self.program.abstract_value(function.name, function.result_type)
        fail_missing_return(function)


def too_large(span: Span) -> ProgramError:
    """CS0603."""
    message = "the program builds more nodes than the compiler takes"
    return ProgramError("CS0603", span, message, "evaluate parts of it: `let`, or a cast to an array type")
