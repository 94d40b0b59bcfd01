"""A sweep of band systems against exact fractions: is the error of a solution ever above the bound that comes with it?

    python -m tests.numerics.bound_sweep [SYSTEMS] [SEED] [MODE...]

Each system is drawn from one of FAMILIES and solved in every one of MODES; its exact solution comes from elimination in
Python's integers. Prints a table of systems, exceptions, and digits by family; the exit code is 1 for any exception.
"""

import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from fractions import Fraction

import numpy as np

from renderer.errors import IncompleteError, UserError
from renderer.formats.matrices import Band
from renderer.numerics.band_lu.accuracy import certified
from renderer.numerics.band_lu.accuracy.refinement import relative_bounds
from renderer.numerics.band_lu.block_columns import SingularMatrix, SolutionOverflows
from renderer.numerics.band_lu.complex_systems import real_form
from renderer.numerics.band_lu.systems import system as systems
from renderer.numerics.band_lu.systems.system import System


def band_of(a):
    """(ab, kl, ku) of a dense matrix."""
    n = len(a)
    rows, columns = np.nonzero(a)
    kl, ku = max(0, int((rows - columns).max(initial=0))), max(0, int((columns - rows).max(initial=0)))
    ab = np.zeros((kl + ku + 1, n), a.dtype)
    ab[ku + rows - columns, columns] = a[rows, columns]
    return ab, kl, ku


def random_dense(rng, n, kl, ku):
    return np.triu(np.tril(rng.standard_normal((n, n)), ku), -kl)


def widths(rng):
    return int(rng.integers(0, 4)), int(rng.integers(0, 4))


def graded(rng):
    """Rows, columns or both graded by up to 150 decades each way."""
    n, decades = int(rng.integers(2, 11)), float(rng.choice([5, 40, 150]))
    a = random_dense(rng, n, *widths(rng)) + np.eye(n)
    rows, columns = (10.0 ** rng.uniform(-decades, decades, n) if rng.integers(3) else np.ones(n) for _ in range(2))
    with np.errstate(over="ignore", under="ignore"):
        a = rows[:, None] * a * columns
    return np.where(np.isfinite(a), a, 1.0)


def graded_entries(rng):
    """Every entry of another size."""
    n = int(rng.integers(2, 8))
    a = random_dense(rng, n, *widths(rng)) + np.eye(n)
    decades = float(rng.choice([3, 20, 140]))
    return a * 10.0 ** rng.uniform(-decades, decades, (n, n))


def kahan(rng):
    n, theta = int(rng.integers(2, 16)), rng.uniform(0.3, 1.4)
    a = (np.eye(n) - np.cos(theta) * np.triu(np.ones((n, n)), 1)) * (np.sin(theta) ** np.arange(n))[:, None]
    return np.tril(a, int(rng.integers(1, n)))


def hilbert(rng):
    n, width = int(rng.integers(2, 13)), int(rng.integers(1, 12))
    return np.tril(np.triu(1 / (1.0 + np.add.outer(np.arange(n), np.arange(n))), -width), width)


def toeplitz(rng):
    n = int(rng.integers(2, 13))
    kl, ku = widths(rng)
    a = sum(np.diag(np.full(n - abs(k), rng.choice([rng.standard_normal(), rng.integers(-3, 4)])), k)
            for k in range(-min(kl, n - 1), min(ku, n - 1) + 1))  # fmt: skip
    return np.array(a, "f8") + (rng.integers(2) * 4) * np.eye(n)


def poisson(rng):
    """In one and in two dimensions, with variable coefficients at times."""
    line = lambda n: 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)  # noqa: E731
    if rng.integers(2):
        n = int(rng.integers(2, 20))
        a = line(n)
    else:
        side, lines = (int(v) for v in rng.integers(2, 5, 2))
        a = np.kron(np.eye(lines), line(side)) + np.kron(line(lines), np.eye(side))
    return a * 10.0 ** rng.uniform(-3, 3, (len(a), 1)) if rng.integers(2) else a


def near_singular(rng):
    n = int(rng.integers(2, 11))
    a = random_dense(rng, n, *(max(1, w) for w in widths(rng)))
    j = int(rng.integers(n - 1))
    shared = (a[:, j] != 0) & (a[:, j + 1] != 0)
    if shared.sum() > 1:
        a[:, j + 1] = np.where(shared, a[:, j] * (1 + 10.0 ** -rng.uniform(1, 16) * rng.standard_normal(n)), 0)
    return a


def subnormal(rng):
    """Matrices with elements below the smallest normal number."""
    n = int(rng.integers(2, 9))
    a = random_dense(rng, n, *widths(rng)) + np.eye(n)
    return a * 2.0 ** -float(rng.integers(1015, 1060)) if rng.integers(2) else a * 2.0 ** -rng.integers(0, 1060, (n, n))


def huge(rng):
    n = int(rng.integers(2, 9))
    return (random_dense(rng, n, *widths(rng)) + np.eye(n)) * 2.0 ** float(rng.integers(900, 1020))


def integers(rng):
    n, size = int(rng.integers(1, 12)), int(rng.choice([3, 1 << 20, 1 << 53]))
    kl, ku = widths(rng)
    return np.triu(np.tril(rng.integers(-size, size + 1, (n, n)), ku), -kl).astype("f8")


def wilkinson(rng, n=None):
    n = n or int(rng.integers(2, 70 if rng.integers(8) == 0 else 20))
    a = np.tril(-np.ones((n, n)), -1) + np.eye(n)
    a[:, -1] = 1
    return a


def singles(rng):
    """float32 matrices, some of them graded."""
    n = int(rng.integers(2, 11))
    a = random_dense(rng, n, *widths(rng)) + np.eye(n)
    return (a * 10.0 ** rng.uniform(-12, 12, n) if rng.integers(2) else a).astype("f4")


def complexes(rng):
    n = int(rng.integers(2, 7))
    kl, ku = widths(rng)
    a = random_dense(rng, n, kl, ku) + 1j * random_dense(rng, n, kl, ku) + np.eye(n)
    return a * 10.0 ** rng.uniform(-60, 60, n) if rng.integers(2) else a


FAMILIES = (
    graded, graded_entries, kahan, hilbert, toeplitz, poisson, near_singular, subnormal, huge, integers, wilkinson,
    singles, complexes,
)  # fmt: skip
PROOFS = Counter()  # of the mode "certified"
MODES = ("proven", "estimated", "extended", "certified", "certified extended")


@contextmanager
def mode(name):
    """In "estimated" and "certified" small systems are treated as large ones are; the other proof fails at first."""
    before = systems.SMALL_ORDER, certified.ROWS, systems.enclose
    if name in ("estimated", "certified"):
        systems.SMALL_ORDER, certified.ROWS = 0, 1
    if name == "certified extended":
        systems.enclose = refuse
    try:
        yield
    finally:
        systems.SMALL_ORDER, certified.ROWS, systems.enclose = before


def refuse(*_arguments, **_options):
    raise IncompleteError("no enclosure in float64")


def right_hand_sides(rng, a):
    """(n, m): random numbers, A times small integers, unit vectors, zeros, of any size."""
    n, m = len(a), int(rng.integers(1, 4))
    b = rng.standard_normal((n, m))
    kind = int(rng.integers(6))
    if kind == 0:
        b = np.rint(4 * b)
    elif kind == 1:
        with np.errstate(over="ignore", invalid="ignore"):
            b = np.nan_to_num((a.real @ rng.integers(-4, 5, (n, m))).astype("f8"), posinf=1, neginf=1)
    elif kind == 2:
        b = np.eye(n, m)
    elif kind == 3:
        b *= 10.0 ** rng.uniform(-300, 300, (n, 1 if rng.integers(2) else m))
    elif kind == 4:
        b[:, 0] = 0
        b *= 2.0 ** -float(rng.integers(1000, 1070))
    return np.clip(b, -1e38, 1e38).astype("f4") if a.dtype == np.float32 else b


def exact_solution(a, b):
    """The solution (n, m) as fractions by Bareiss' elimination in integers (1968); None if a is singular."""
    rows = [[Fraction(v) for v in (*left, *right)] for left, right in zip(a.tolist(), b.tolist(), strict=True)]
    n, integer = len(rows), []
    for row in rows:
        common = max(v.denominator for v in row)  # powers of two
        integer.append([int(v * common) for v in row])
    previous = 1
    for j in range(n):
        pivot = next((i for i in range(j, n) if integer[i][j]), None)
        if pivot is None:
            return None
        integer[j], integer[pivot] = integer[pivot], integer[j]
        top = integer[j]
        for i in range(j + 1, n):
            row = integer[i]
            factor = row[j]
            integer[i] = [0] * (j + 1) + [
                (v * top[j] - factor * w) // previous for v, w in zip(row[j + 1 :], top[j + 1 :], strict=True)
            ]
        previous = top[j]
    x = [[Fraction(0)] * b.shape[1] for _ in range(n)]
    for k in range(b.shape[1]):
        for i in reversed(range(n)):
            rest = integer[i][n + k] - sum(integer[i][j] * x[j][k] for j in range(i + 1, n) if integer[i][j])
            x[i][k] = Fraction(rest) / integer[i][i]
    return x


def solved(a, b, name):
    """x and its error as the command reports them, by one of MODES; the exception of a user if there is one."""
    ab, kl, ku = band_of(a)
    band = Band(ab, kl, ku, (kl, ku))
    form = real_form(band, b, False)
    with mode(name):
        in_double = name.startswith(("extended", "certified"))
        system = System(form.band if form else band, in_double=in_double, is_complex_form=form is not None)
        sides = form.right_hand_side(b) if form else b
        x, refined = system.solve(sides, name.endswith("extended"))
        error = refined.error
        if name.startswith("certified"):
            try:
                error, proof = system.certify(sides, refined)
                PROOFS[proof.proof] += 1
            except IncompleteError:
                error = np.full(x.shape, np.inf)
                PROOFS["none"] += 1
    return form.solution(x, error) if form else (x, error)


def exceptions(x, error, exact):
    """True where a component or a bound is below the true error; `exact` holds fractions, in pairs for complex x."""
    parts = [np.asarray(x).real, np.asarray(x).imag] if np.iscomplexobj(x) else [np.asarray(x)]
    wrong = False
    bounds = relative_bounds(x, error)
    for k in range(x.shape[1]):
        squares = [
            sum((Fraction(float(part[i, k])) - exact[i][p][k]) ** 2 for p, part in enumerate(parts))
            for i in range(len(x))
        ]
        sizes = [sum(Fraction(float(part[i, k])) ** 2 for part in parts) for i in range(len(x))]
        radii = [float(v) for v in np.broadcast_to(error, x.shape)[:, k]]
        wrong |= any(np.isfinite(r) and s > Fraction(r) ** 2 for s, r in zip(squares, radii, strict=True))
        if np.isfinite(bounds[k]):
            wrong |= max(squares) > Fraction(float(bounds[k])) ** 2 * max(sizes)
    return wrong


def exact_parts(a, b):
    """exact[i][part][k], with one part for real systems and two for complex ones; None for a singular matrix."""
    if not np.iscomplexobj(a):
        x = exact_solution(a, b)
        return x and [[row] for row in x]
    n = len(a)
    real = np.block([[a.real, -a.imag], [a.imag, a.real]])
    x = exact_solution(real, np.vstack([b.real, b.imag]))
    return x and [[x[i], x[n + i]] for i in range(n)]


def sweep(count, seed, modes=MODES, families=FAMILIES):
    """Rows by (mode, family): systems, exceptions, overflows, systems without a bound, and the mean of the digits."""
    rng, rows, failures = np.random.default_rng(seed), defaultdict(lambda: [0, 0, 0, 0, 0.0]), []
    for index in range(count):
        family = families[index % len(families)]
        a = family(rng)
        b = right_hand_sides(rng, a)
        exact = exact_parts(a, b)
        for name in modes:
            row = rows[name, family.__name__]
            row[0] += 1
            try:
                with np.errstate(all="ignore"):
                    x, error = solved(a, b, name)
            except (SingularMatrix, SolutionOverflows):
                row[2] += 1
                continue
            except Exception as fault:
                kind = "UserError" if isinstance(fault, UserError) else type(fault).__name__
                failures.append((name, family.__name__, f"{kind}: {fault}", a, b))
                row[1] += 1
                continue
            bounds = relative_bounds(x, error)
            if exact is None and np.isfinite(bounds).all() or exact is not None and exceptions(x, error, exact):
                failures.append((name, family.__name__, "a bound is below the error", a, b))
                row[1] += 1
            row[3] += int(not np.isfinite(bounds).all())
            row[4] += float(np.clip(-np.log10(np.maximum(bounds, 1e-17)), 0, 17).min())
    return rows, failures


def main():
    count, seed = (int(v) for v in (*sys.argv[1:3], *("2000", "1")[len(sys.argv) - 1 :]))
    began = time.process_time()
    rows, failures = sweep(count, seed, tuple(sys.argv[3:]) or MODES)
    print(f"{'mode':20} {'family':15} systems exceptions refused unbounded digits")
    for (name, family), (systems_, wrong, refused, unbounded, digits) in sorted(rows.items()):
        mean = digits / max(1, systems_ - wrong - refused)
        print(f"{name:20} {family:15} {systems_:7} {wrong:10} {refused:7} {unbounded:9} {mean:6.1f}")
    print(f"{count} systems, seed {seed}: {len(failures)} exceptions, {time.process_time() - began:.0f} CPU seconds")
    print("proofs:", dict(PROOFS))
    for name, family, words, a, b in failures[:5]:
        print(
            name,
            family,
            words,
            *(", ".join(map(float.hex, v.ravel().astype("c16").view("f8"))) for v in (a, b)),
            sep="\n",
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
