"""Names in expressions: what each stands for, and which reduction binds each bound variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from renderer.cdollar.checker.domain_inference import InferenceContext
from renderer.cdollar.checker.node_builder import CONSTANTS, FUNCTIONS
from renderer.cdollar.checker.program import Body, Program, UserCalls
from renderer.cdollar.checker.scopes import Variable
from renderer.cdollar.checker.values import FunctionValue
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.ast import children, walk
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.frontend.hints import WORDS, did_you_mean
from renderer.cdollar.ir.dag import Dimension
from renderer.cdollar.ir.operations import OPERATIONS, REDUCER_NAMES
from renderer.cdollar.ir.types import FLOAT, Scalar, Type

Reductions = tuple[ast.AstNode, ...]  # the possible reductions around an occurrence, the outermost first


class NameResolver:
    """Looks names up in a body's scope and in the program's tables: the first layer of the lowering of a body."""

    def __init__(self, program: Program, user_calls: UserCalls, body: Body):
        self.program, self.user_calls, self.body = program, user_calls, body
        self.dag, self.builder = program.dag, program.builder
        self.chosen_boxes: dict[int, tuple[Dimension, ...]] = {}  # by id of a restriction to a union: the current box

    def variable(self, name: str) -> Variable | None:
        """The variable or constant of the program of this name."""
        return self.body.scope.find(name) or self.program.globals.find(name)

    def is_function(self, name: str) -> bool:
        """Whether functions of the program or built-in ones have this name."""
        return name in self.program.functions or name in FUNCTIONS

    def is_redefined(self, name: str) -> bool:
        """Whether the program gives the name of a built-in function another meaning."""
        return self.variable(name) is not None or name in self.program.functions

    def is_known(self, name: str) -> bool:
        """Whether the name is declared; other names in indices are bound variables."""
        return self.variable(name) is not None or self.is_function(name) or name in CONSTANTS

    def fail_unknown(self, tree: ast.Name) -> NoReturn:
        """Raises CS0216 for a function defined by itself, CS0202 with a similar name for others."""
        if tree.name == self.body.defining:
            raise ProgramError(
                "CS0216", tree.span, f"`{tree.name}` is defined by itself, which no point can be computed from",
                "sum to each point, `var s(i : a) = sum(k <= i ? a(k) : 0, k : a)`, or `fold` for the last alone",
            )  # fmt: skip
        scopes = (self.body.scope, self.program.globals)
        names = {name for scope in scopes for name, _ in scope.variables()} | self.program.functions.overloads.keys()
        names |= self.program.functions.generics.keys()
        known = names | FUNCTIONS.keys() | CONSTANTS.keys()
        hint = WORDS.get(tree.name) or did_you_mean(tree.name, known) or "declare it before its use"
        raise ProgramError("CS0202", tree.span, f"the name `{tree.span.excerpt}` is not declared", hint)

    def is_index_call(self, callee: ast.AstNode) -> bool:
        """Whether calling this indexes a function, so that new names in the arguments are bound variables."""
        if not isinstance(callee, ast.Name):
            return True
        variable = self.variable(callee.name)
        if variable is not None:
            return isinstance(variable.value, FunctionValue)
        return callee.name in self.program.functions

    def is_reduction_call(self, tree: ast.AstNode) -> bool:
        """Whether the expression reduces if its operand has bound variables that nothing else binds."""
        if isinstance(tree, ast.Unary):
            return tree.operator in "+*"
        if not isinstance(tree, ast.Call) or not isinstance(tree.callee, ast.Name):
            return False
        name = tree.callee.name
        if self.body.scope.find(name):
            return False
        if name == "fold" or len(tree.arguments) != 1:
            return name == "fold"
        if name in self.program.functions:
            return any(f.is_reduction_operator for f in self.program.functions.get(name))
        return name in REDUCER_NAMES

    def assign_binders(self, tree: ast.AstNode, context: InferenceContext, parameters: list[str]) -> None:
        """Gives each unknown name to the innermost reduction that holds all its occurrences."""
        occurrences: dict[str, list[tuple[ast.Name, Reductions, bool]]] = {}
        for name, reductions, in_index in self.occurrences(tree, (), False, frozenset(parameters)):
            if not self.is_known(name.name):
                occurrences.setdefault(name.name, []).append((name, reductions, in_index))
        for text, uses in occurrences.items():
            first, common, _ = uses[0]
            for _, reductions, _ in uses[1:]:
                common = tuple(a for a, b in zip(common, reductions, strict=False) if a is b)
            if not any(in_index for _, _, in_index in uses) and self.body.scope.restriction(text) is None:
                self.fail_unknown(first)
            if not common:
                raise ProgramError(
                    "CS0302", first.span, f"the bound variable `{text}` is neither declared on the left nor reduced",
                    f"`var c({text}) = ...` keeps it, `+ (...)` around all its uses reduces it",
                )  # fmt: skip
            context.binders.setdefault(id(common[-1]), []).append(text)

    def occurrences(
        self, tree: ast.AstNode, reductions: Reductions, in_index: bool, hidden: frozenset[str]
    ) -> Iterator[tuple[ast.Name, Reductions, bool]]:
        """Names in a tree but `hidden` ones, the reductions around each, and whether it is in an index."""
        if isinstance(tree, ast.Name):
            if tree.name not in hidden:
                yield tree, reductions, in_index
            return
        if isinstance(tree, ast.Lambda):
            yield from self.occurrences(tree.body, reductions, in_index, hidden | {v.name for v in tree.parameters})
            return
        if isinstance(tree, ast.LetIn):
            yield from self.occurrences(tree.value, reductions, in_index, hidden)
            yield from self.occurrences(tree.body, reductions, in_index, hidden | {tree.name})
            return
        inside = reductions
        if isinstance(tree, (ast.Unary, ast.Call)) and self.is_reduction_call(tree):
            inside = (*reductions, tree)
            restricted = [r for r in tree.restrictions if self.body.scope.find(r.names[0][0]) is None]
            hidden |= {name for r in restricted for name, _ in r.names}
            for restriction in tree.restrictions:
                if restriction.domain is not None:
                    yield from self.occurrences(restriction.domain, reductions, in_index, hidden)
        if isinstance(tree, ast.Call):
            if not isinstance(tree.callee, ast.Name):
                yield from self.occurrences(tree.callee, inside, in_index, hidden)
            elif not self.is_known(tree.callee.name) and tree.callee.name not in hidden:
                self.fail_unknown(tree.callee)
            is_index, arguments = self.is_index_call(tree.callee), tree.arguments
            if isinstance(tree.callee, ast.Name) and tree.callee.name == "grad" and not self.is_redefined("grad"):
                arguments = arguments[:1]  # the second is the name of a parameter
            for argument in arguments:
                yield from self.occurrences(argument, inside, is_index or in_index, hidden)
            return
        for child in children(tree):
            if not isinstance(child, (ast.Restriction, ast.NamedType, ast.FunctionalType)):
                yield from self.occurrences(child, inside, in_index, hidden)

    def type_from_first_use(self, name: str, tree: ast.AstNode) -> Type | None:
        """The type of the parameter that a new bound variable is first the argument of."""
        for call in walk(tree):
            if not isinstance(call, ast.Call) or not isinstance(call.callee, ast.Name):
                continue
            for position, argument in enumerate(call.arguments):
                if isinstance(argument, ast.Name) and argument.name == name:
                    types = self._parameter_types(call.callee.name)
                    if position < len(types) and isinstance(types[position], Scalar):
                        return types[position]
        return None

    def _parameter_types(self, name: str) -> tuple[Type, ...]:
        variable = self.variable(name)
        if variable is not None:
            return variable.value.type.parameters if isinstance(variable.value, FunctionValue) else ()
        if overloads := self.program.functions.get(name):
            return overloads[0].parameter_types
        operation = OPERATIONS.get(name)
        return (FLOAT, FLOAT) if operation and operation.parameters[0] == "r" else ()
