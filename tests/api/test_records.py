"""renderer.records against its witness, the dataclasses of the standard library: the same classes by both."""

import copy
import dataclasses
import inspect
import pickle

import pytest

from renderer import records


def classes(decorator, field):
    """Classes of every feature that the program uses, by one of the two decorators."""

    @decorator(frozen=True)
    class Point:
        "A point."

        x: float
        y: float = 0.5
        tags: list = field(default_factory=list)
        note: str = field(default="none", compare=False)

    @decorator(frozen=True)
    class Named(Point):
        "A point with a name, which comes last."

        name: str = "p"
        unit: str = field(default="m", kw_only=True)

        def __post_init__(self):
            if not self.name:
                raise ValueError("no name")

    @decorator
    class Counter:
        "Counts."

        value: int = 0
        twice: int = field(init=False, default=7)
        seen: dict = field(init=False, default_factory=dict)

    @decorator(eq=False)
    class Node:
        "A node, equal to itself alone."

        child: object = None

    @decorator(frozen=True, repr=False, kw_only=True)
    class Plain:
        "A class with a text and an equality of its own."

        a: int
        b: int = 2

        def __str__(self):
            return "plain"

        def __eq__(self, other):
            return True

    return Point, Named, Counter, Node, Plain


OURS, THEIRS = classes(records.dataclass, records.field), classes(dataclasses.dataclass, dataclasses.field)
CALLS = [
    (0, (1,), {}), (0, (1, 2, ["a"], "n"), {}), (0, (), {"x": 1, "note": "m"}), (0, (), {}), (0, (1, 2, 3, 4, 5), {}),
    (0, (1,), {"z": 1}), (1, (1,), {"name": "q", "unit": "cm"}), (1, (1, 2, [], "n", "q", "cm"), {}),
    (1, (1,), {"name": ""}), (2, (), {}), (2, (3,), {}), (2, (), {"seen": {}}), (3, (), {}), (3, (4,), {}),
    (4, (1,), {}), (4, (), {"a": 1}), (4, (), {"b": 1}),
]  # fmt: skip


def result(number, family, arguments, keywords):
    """The object's values and text, or the error."""
    try:
        made = family[number](*arguments, **keywords)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return vars(made), dataclasses.asdict(made), repr(made) if number != 4 else str(made)


@pytest.mark.parametrize(("number", "arguments", "keywords"), CALLS)
def test_objects_are_made_and_shown_as_by_the_standard_library(number, arguments, keywords):
    assert result(number, OURS, arguments, keywords) == result(number, THEIRS, arguments, keywords)


@pytest.mark.parametrize("number", range(5))
def test_signatures_and_fields_are_the_standard_librarys(number):
    ours, theirs = OURS[number], THEIRS[number]
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__ and ours.__doc__ == theirs.__doc__
    names = [(f.name, f.type, f.init, f.compare, f.kw_only) for f in dataclasses.fields(ours)]
    assert names == [(f.name, f.type, f.init, f.compare, f.kw_only) for f in dataclasses.fields(theirs)]


def facts(family):
    """Equality, hashing, copies and refusals, by kind of class."""
    point, named, counter, node, plain = family
    values = [point(1, 2, ()), point(1, 2, (), "other"), point(1, 3, ()), named(1, 2, ()), named(1, 2, (), unit="cm"),
              counter(1), counter(1), counter(2), node(), node(), plain(a=1), plain(a=2)]  # fmt: skip
    equal = [[a == b for b in values] for a in values]
    hashes = []
    for value in values:
        try:
            hashes.append([hash(value) == hash(copy.copy(value)), value in {value}])
        except TypeError as error:
            hashes.append(str(error).partition(":")[0])
    refused = []
    for value, name in [(values[0], "x"), (values[0], "new"), (values[3], "name"), (values[5], "value")]:
        for change in (lambda value, name: setattr(value, name, 1), delattr):
            try:
                refused.append(change(value, name))
            except AttributeError as error:
                refused.append(type(error).__name__)
    return equal, hashes, refused, [vars(dataclasses.replace(value, **{"x": 9})) for value in values[:5]]


def test_equality_hashes_and_refused_changes_are_the_standard_librarys():
    assert facts(OURS) == facts(THEIRS)


def test_a_class_compiles_nothing_until_it_is_used(monkeypatch):
    texts = []
    monkeypatch.setattr(records, "exec", lambda text, scope: (texts.append(text), exec(text, scope)), raising=False)

    @records.dataclass(frozen=True)
    class Late:
        "Is used late."

        a: int = 1

    assert not texts
    assert Late() == Late() and Late(2).a == 2
    assert len(texts) == 1


@records.dataclass(frozen=True)
class Kept:
    """Is pickled, so it is a global name."""

    a: int
    child: object = None


def test_pickles_and_objects_that_contain_themselves():
    value = Kept(3, Kept(4))
    assert pickle.loads(pickle.dumps(value)) == value
    vars(value)["child"] = value
    assert repr(value) == "Kept(a=3, child=...)"


def test_a_class_with_more_fields_keeps_the_fields_of_its_base():
    more = records.extended("More", Kept, [("gain", float, 2.0), ("names", list, records.field(default_factory=list))])
    made = more(1, gain=3.0)
    assert (made.a, made.child, made.gain, made.names, more.__name__) == (1, None, 3.0, [], "More")
    with pytest.raises(dataclasses.FrozenInstanceError, match="gain"):
        made.gain = 1.0
