"""The tables of a program: types and functions by name, and the instances of generic functions.

TypeTable turns a type as it is written, `float[,]`, into an ir.types.Type. FunctionTable has the overloads of each
name. Of a generic function, such as `T[] scan<T>(T(T, T) f, T[] a)`, a call infers T from its arguments (infer_types);
instance() then makes a function with T replaced, once for each choice of types.
"""

from collections.abc import Sequence

from renderer.cdollar.checker.values import Argument, DataValue, FunctionValue
from renderer.cdollar.frontend import ast
from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.frontend.hints import WORDS, did_you_mean
from renderer.cdollar.ir import types as ty
from renderer.cdollar.ir.device_function import DeviceFunction
from renderer.records import dataclass, replace

MAX_RECORD_COMPONENTS = 64


@dataclass(eq=False)
class UserFunction:
    """A function of the program. `device_function` is set once it is lowered; `is_host_only` if it cannot be.

    `error` is set if the function is larger than the compiler takes: calls raise it.
    """

    declaration: ast.FunctionDeclaration
    name: str
    parameter_types: tuple[ty.Type, ...]
    result_type: ty.Type
    parameter_names: tuple[str, ...]
    device_function: DeviceFunction | None = None
    is_host_only: bool = False
    error: ProgramError | None = None
    is_instance: bool = False  # True for an instance of a generic function

    @property
    def signature(self) -> str:
        """`name(type, type)`, for messages."""
        return f"{self.name}({', '.join(map(str, self.parameter_types))})"

    @property
    def takes_data(self) -> bool:
        """True if no parameter is a function."""
        return all(isinstance(type_, ty.Data) for type_ in self.parameter_types)

    @property
    def is_reduction_operator(self) -> bool:
        """True if the function is T(T, T), which combines two elements."""
        return self.parameter_types == (self.result_type,) * 2 and isinstance(self.result_type, ty.Data)

    @property
    def is_expression(self) -> bool:
        """True if the body is one `return`: calls are then inlined."""
        body = self.declaration.body
        return len(body) == 1 and isinstance(body[0], ast.Return)


Overloads = list[UserFunction]  # the functions of one name


class TypeTable:
    """The built-in types, classes and type aliases by name."""

    def __init__(self) -> None:
        self.types: dict[str, ty.Type] = {name: ty.Scalar(name) for name in ast.PRIMITIVES}
        self.types["domain"] = ty.DomainType(1)
        self.types |= {name: ty.Vector(name[:-1], int(name[-1])) for name in ast.VECTORS}
        self.function_classes: dict[str, ast.ClassDeclaration] = {}  # classes derived from functional types
        self.mutable_classes: set[str] = set()
        self.declared_later: set[str] = set()  # classes and aliases of the program that is being loaded

    def resolve(self, tree: ast.AstNode) -> ty.Type:
        """The type that is written."""
        if isinstance(tree, ast.NamedType):
            if tree.name in self.types:
                return self.types[tree.name]
            later = "it is declared further down, or contains itself" if tree.name in self.declared_later else ""
            hint = later or WORDS.get(tree.name) or did_you_mean(tree.name, self.types)
            hint = hint or "types: " + ", ".join(sorted(self.types))
            raise ProgramError("CS0201", tree.span, f"unknown type `{tree.span.excerpt}`", hint)
        if isinstance(tree, ast.KnownType):
            assert isinstance(tree.type, ty.Data), "type parameters stand for data"
            return tree.type
        if isinstance(tree, ast.TupleType):
            if len(tree.types) < 2:
                raise ProgramError("CS0212", tree.span, "a tuple has two values or more", "`(float[], int[])`")
            return ty.tuple_type(tuple(zip(tree.names, map(self.resolve, tree.types), strict=True)))
        assert isinstance(tree, ast.FunctionalType)
        if tree.is_array and self.resolve(tree.result) == ty.DomainType(1):  # domain[,] is a domain of rank 2
            return ty.DomainType(len(tree.parameters))
        result, parameters = self.resolve(tree.result), tuple(self.resolve(p) for p in tree.parameters)
        if isinstance(result, ty.FunctionType) and result.is_array and tree.is_array:  # float[][] is float[,]
            indices = tuple(p for p in parameters if isinstance(p, ty.Data))
            return ty.FunctionType(result.result, result.parameters + indices, is_array=True)
        if isinstance(result, ty.FunctionType):
            written = ", ".join(map(str, parameters + result.parameters))
            message = "a function that yields a function is written with all its parameters"
            raise ProgramError("CS0212", tree.span, message, f"`{result.result}({written})`")
        if not isinstance(result, ty.Data):
            raise ProgramError("CS0212", tree.span, f"a function in a variable yields data, not a {result}")
        data = []
        for inner, parameter in zip(tree.parameters, parameters, strict=True):
            if not isinstance(parameter, ty.Data):
                raise ProgramError("CS0212", inner.span, f"a parameter of a functional type is data, not {parameter}")
            data.append(parameter)
        if not data:
            raise ProgramError("CS0212", tree.span, "a functional type needs a parameter")
        return ty.FunctionType(result, tuple(data), tree.is_array)

    def declare(self, item: ast.ClassDeclaration | ast.TypeAlias) -> None:
        """A record type, or `type name = type;`. Built-in vectors may be declared again with the same fields."""
        if isinstance(item, ast.TypeAlias):
            self.types[item.name] = self.resolve(item.type)
            return
        built_in = self.types.get(item.name)
        if built_in is not None and (item.base is not None or not isinstance(built_in, ty.Vector)):
            raise ProgramError("CS0109", item.name_span, f"the type {item.name} is declared twice")
        if item.base is not None:
            self._declare_function_class(item, item.base)
            return
        fields = [(name, self.resolve(written)) for name, written, _ in item.fields]
        if not fields:
            raise ProgramError("CS0210", item.name_span, f"the class {item.name} has no fields")
        record = ty.class_type(item.name, tuple(fields))  # a Tuple if a field is a function
        count = len(ty.component_types(record)) if isinstance(record, ty.Record) else len(fields)
        if count > MAX_RECORD_COMPONENTS:
            message = f"{item.name} has {count} components, more than {MAX_RECORD_COMPONENTS}"
            raise ProgramError("CS0210", item.name_span, message)
        if isinstance(built_in, ty.Vector):
            if fields != [("xyzw"[k], ty.Scalar(built_in.scalar_type)) for k in range(built_in.size)]:
                message = f"{item.name} is built in, with other fields"
                raise ProgramError("CS0211", item.name_span, message, "use another name")
            return
        self.types[item.name] = record
        self.mutable_classes |= {item.name} if item.is_mutable else set()

    def _declare_function_class(self, item: ast.ClassDeclaration, base: ast.AstNode) -> None:
        """A class whose values are functions: its name is an alias of the functional type."""
        type_ = self.resolve(base)
        if not isinstance(type_, ty.FunctionType) or type_.is_array:
            message = f"{item.name} is derived from {type_}: only functional types can be derived from"
            raise ProgramError("CS0115", base.span, message, "`final class Ramp : float(int) { ... }`")
        for _, written, _ in item.fields:
            self.resolve(written)
        self.types[item.name], self.function_classes[item.name] = type_, item


class FunctionTable:
    """The functions of the program and of the prelude by name: sets of overloads."""

    def __init__(self, types: TypeTable):
        self.types = types
        self.overloads: dict[str, Overloads] = {}
        self.prelude_functions: set[UserFunction] = set()  # a program may replace these
        self.derived: dict[str, Overloads] = {}  # functions that calls make of other functions, by the call: "grad(f)"
        self.generics: dict[str, list[ast.FunctionDeclaration]] = {}
        # Instances of generic functions, by declaration and types.
        self.instances: dict[tuple[object, ...], UserFunction] = {}
        self.method_names: set[str] = set()  # without the class: "method" of "Class.method"

    def __contains__(self, name: str) -> bool:
        return name in self.overloads or name in self.derived or name in self.generics

    def get(self, name: str) -> Overloads:
        """The overloads of a name, [] if there are none."""
        return self.overloads.get(name) or self.derived.get(name, [])

    def all(self) -> Overloads:
        """Every function."""
        return [function for overloads in self.overloads.values() for function in overloads]

    def declare(self, item: ast.FunctionDeclaration) -> UserFunction:
        """Adds a function; one of the prelude with the same parameters is replaced."""
        function = self.from_declaration(item)
        types = function.parameter_types
        overloads = self.overloads.setdefault(item.name, [])
        overloads[:] = [f for f in overloads if f not in self.prelude_functions or f.parameter_types != types]
        if any(other.parameter_types == types for other in overloads):
            raise ProgramError("CS0109", item.name_span, f"{function.signature} is declared twice")
        if item.name.startswith("operator"):
            check_operator(function)
        overloads.append(function)
        return function

    def declare_all(self, items: list[ast.FunctionDeclaration]) -> None:
        """Adds functions, generic ones and methods; raises CS0217 if type parameters cannot be inferred."""
        for item in items:
            if "." in item.name:
                self.method_names.add(item.name.split(".")[1])
            if item.type_parameters:
                check_generic(item)
                self.generics.setdefault(item.name, []).append(item)
            else:
                self.declare(item)

    def from_declaration(self, item: ast.FunctionDeclaration) -> UserFunction:
        """The function that is declared, not yet added; raises CS0213 for attributes that do not fit."""
        types = tuple(self.types.resolve(p.type) for p in item.parameters)
        names = tuple(p.name for p in item.parameters)
        function = UserFunction(item, item.name, types, self.types.resolve(item.result), names)
        if item.attributes and not (len(types) == 2 and types[0] == types[1] == function.result_type):
            name, span = next(iter(item.attributes.items()))
            actual = f"{function.result_type}({', '.join(map(str, types))})"
            raise ProgramError("CS0213", span, f"[{name}] needs a function T(T, T), but this is {actual}")
        return function

    def remove(self, function: UserFunction) -> None:
        """Removes a function that declare() added."""
        self.overloads[function.name].remove(function)
        if not self.overloads[function.name]:
            del self.overloads[function.name]


def class_functions(item: ast.ClassDeclaration) -> list[ast.FunctionDeclaration]:
    """The methods of a class as functions `Class.method(Class this, ...)`, and its operators, which are static."""
    names = {m.name for m in item.methods} | {name for name, _, _ in item.fields}
    return [m if m.name.startswith("operator") else _with_this(item, m, names) for m in item.methods]


def _with_this(item: ast.ClassDeclaration, method: ast.FunctionDeclaration, names: set[str]) -> ast.FunctionDeclaration:
    """The method as a function of `this`: a field or method that it names alone, `x`, becomes `this.x`.

    `names` are the fields and methods of the class. A name that the method declares hides the field everywhere in it.
    """
    visible = names - declared_names(method)

    def change(node: ast.AstNode) -> ast.AstNode | None:
        if isinstance(node, ast.Name) and node.name in visible:
            return ast.MemberAccess(node.span, ast.Name(node.span, "this"), node.name, node.span)
        return None

    new = ast.replaced(method, change)
    this = ast.Parameter(item.name_span, ast.NamedType(item.name_span, item.name), "this", item.name_span, None)
    return replace(new, name=f"{item.name}.{method.name}", parameters=[this, *new.parameters])


def declared_names(function: ast.FunctionDeclaration) -> set[str]:
    """The names that a function declares anywhere in it."""
    trees, named = list(ast.walk(function)), (ast.Parameter, ast.BoundParameter, ast.VariableDeclaration, ast.LetIn)
    restricted = {name for tree in trees if isinstance(tree, ast.Restriction) for name, _ in tree.names}
    return restricted | {tree.name for tree in trees if isinstance(tree, named)}


def check_generic(item: ast.FunctionDeclaration) -> None:
    """Raises CS0217 unless the type parameters of a generic function can be inferred from its parameters."""
    named = {t.name for p in item.parameters for t in ast.walk(p.type) if isinstance(t, ast.NamedType)}
    for name in item.type_parameters:
        if name not in named:
            message = f"the type `{name}` cannot be inferred from the parameters of {item.name}"
            raise ProgramError("CS0217", item.name_span, message, f"use it in a parameter: `{name} x`, `{name}[] a`")
    if item.name == "main" or item.name.startswith("operator"):
        raise ProgramError("CS0217", item.name_span, f"`{item.name.removeprefix('operator')}` cannot be generic")


def check_operator(function: UserFunction) -> None:
    """Raises CS0214 unless the operator has its number of operands, one of them of a class."""
    name, span = function.name.removeprefix("operator"), function.declaration.name_span
    allowed = {"!": (1,), "~": (1,), "+": (1, 2), "-": (1, 2)}.get(name, (2,))
    types = function.parameter_types
    if len(types) not in allowed:
        raise ProgramError("CS0214", span, f"the operator `{name}` takes {' or '.join(map(str, allowed))} operands")
    if not any(isinstance(t, ty.Record) for t in types):
        message = f"an operator is defined for a class of the program, not {', '.join(map(str, types))}"
        raise ProgramError("CS0214", span, message)


Types = dict[str, ty.Data]


def overloads_for_values(functions: FunctionTable, name: str, values: Sequence[Argument]) -> Overloads:
    """The functions of a name, and the instances of its generic functions that fit the values of a call."""
    types = [v.type if isinstance(v, (DataValue, FunctionValue)) else None for v in values]
    return functions.get(name) + instances_for_types(functions, name, types)


def instances_for_types(functions: FunctionTable, name: str, types: Sequence[ty.Type | None]) -> Overloads:
    """The instances for types of arguments; None is an argument of unknown type."""
    instances = []
    for declaration in functions.generics.get(name, ()):
        if len(types) <= len(declaration.parameters):
            bound = infer_types(declaration, types)
            if bound is not None:
                instances.append(instance(functions, declaration, bound))
    return instances


def instance(functions: FunctionTable, declaration: ast.FunctionDeclaration, bound: Types) -> UserFunction:
    """The instance of a generic function for these types, made once."""
    key = (id(declaration), *(bound[name] for name in declaration.type_parameters))
    if key not in functions.instances:

        def change(node: ast.AstNode) -> ast.AstNode | None:
            if isinstance(node, ast.NamedType) and node.name in bound:
                return ast.KnownType(node.span, bound[node.name])
            return None

        concrete = ast.replaced(declaration, change)
        concrete.type_parameters = []
        functions.instances[key] = functions.from_declaration(concrete)
        functions.instances[key].is_instance = True
    return functions.instances[key]


def infer_types(declaration: ast.FunctionDeclaration, types: Sequence[ty.Type | None]) -> Types | None:
    """The type parameters, inferred from arguments; None if one is unknown or has two answers."""
    bound: Types = {}
    for parameter, type_ in zip(declaration.parameters, types, strict=False):  # the last arguments may be missing
        if type_ is not None and not match_type(parameter.type, type_, declaration.type_parameters, bound):
            return None
    return bound if len(bound) == len(declaration.type_parameters) else None


def match_type(written: ast.AstNode, type_: ty.Type, names: list[str], bound: Types) -> bool:
    """False if a written type cannot be the type; binds the type parameters in it.

    A named type that is no type parameter is not compared: the choice of the overload tests it.
    """
    if isinstance(written, ast.NamedType):
        data = type_.result if isinstance(type_, ty.FunctionType) else type_  # a function given for T is promoted
        return written.name not in names or isinstance(data, ty.Data) and bind_type(bound, written.name, data)
    if not isinstance(written, ast.FunctionalType) or not isinstance(type_, ty.FunctionType):
        return False
    if len(type_.parameters) != len(written.parameters):
        return False
    pairs = ((written.result, type_.result), *zip(written.parameters, type_.parameters, strict=True))
    return all(match_type(inner, inner_type, names, bound) for inner, inner_type in pairs)


def bind_type(bound: Types, name: str, data: ty.Data) -> bool:
    """Binds a type parameter to the wider of its type so far and `data`; False if neither is wider."""
    known = bound.get(name, data)
    if ty.widening(known, data) is not None:
        bound[name] = data
    elif ty.widening(data, known) is None:
        return False
    return True
