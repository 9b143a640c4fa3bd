"""A caller's decimal context (precision, rounding, range, traps, print) changes no threshold, budget or text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_UP,
    Clamped,
    Context,
    Decimal,
    DivisionByZero,
    FloatOperation,
    Inexact,
    InvalidOperation,
    Overflow,
    Rounded,
    Subnormal,
    Underflow,
    localcontext,
)
from fractions import Fraction
from pathlib import Path

import pytest

from sfm_stream.config.config import parse_config
from sfm_stream.errors import SfmStreamError
from sfm_stream.methods.mechanisms import pagh_stausholm, xor
from sfm_stream.privacy.budget import Budget, require_within
from sfm_stream.privacy.epsilon import MIN_EPSILON, epsilon_of, flip_threshold_of, parse_epsilon, plain, shared
from sfm_stream.privacy.released_span import ReleasedSpan
from sfm_stream.privacy.selection import MIN_DELTA, parse_delta, selection_table
from sfm_stream.privacy.statement import statement
from sfm_stream.sketch.shape import SketchShape

EVERY_TRAP = [Clamped, DivisionByZero, FloatOperation, Inexact, InvalidOperation, Overflow, Rounded, Subnormal]
HOSTILE = {
    "coarse": Context(prec=3),
    "coarsest, up": Context(prec=1, rounding=ROUND_UP),
    "ceiling": Context(prec=5, rounding=ROUND_CEILING),
    "floor": Context(prec=5, rounding=ROUND_FLOOR),
    "down": Context(prec=28, rounding=ROUND_DOWN),
    "every trap": Context(prec=4, traps=[*EVERY_TRAP, Underflow]),
    "no trap": Context(prec=4, traps=[]),
    "no range": Context(prec=3, Emin=-1, Emax=1, clamp=1),
    "small letters": Context(prec=28, capitals=0),
}
LONG = Decimal("0.1234567890123456789012345678901234567890123")
CONFIG = """
[pipeline]
id = "p"
[input]
path = "in.jsonl"
[event]
key = "page"
item = "user"
time = "at"
[window]
size = "1m"
grace = "5m"
[sketch]
buckets = 1024
levels = 24
[privacy]
epsilon = 0.12345678901234567890123456789
keys = "selected"
epsilon_selection = 1.0000000000000000000000000001
delta_selection = 1.23456789012345678901234567890123456789e-13
max_epsilon_per_item_day = {limit}
[output]
path = "out.sqlite"
"""


def configured(limit: str) -> object:
    try:
        config = parse_config(CONFIG.format(limit=limit), Path("/nowhere"))
    except SfmStreamError as error:
        return type(error), str(error)
    words = statement("p", config.unit, config.keys, config.budget, 5_000)
    keys = config.keys
    return (
        config.fingerprint(1),
        config.budget.spans[0].flip_threshold,
        words,
        keys.table.tolist(),
        keys.epsilon.as_tuple(),
        keys.delta.as_tuple(),
    )


def refusal(work: Callable[[], object]) -> object:
    try:
        return work()
    except SfmStreamError as error:
        return type(error), str(error)


BUDGET = Budget(
    (ReleasedSpan("1ms", 1, LONG, 1, Decimal(0), SketchShape(16, 2)),), Decimal("1e-3"), Decimal("8.9E-16"), 1500, 1
)
RESULTS: dict[str, Callable[[], object]] = {
    "flip_threshold_of": lambda: [flip_threshold_of(value) for value in (1, 0.1, LONG, 16, MIN_EPSILON)],
    "epsilon_of": lambda: [epsilon_of(k) for k in (1, 12345678901234567, (1 << 63) - 1)],
    "shared": lambda: shared(LONG, 7).as_tuple(),
    "mechanisms": lambda: [family(e) for family in (xor, pagh_stausholm) for e in (LONG, 3)],
    "selection": lambda: selection_table(LONG, Decimal("1.234567890123456789012345678901234567890e-3")).tolist(),
    "parse": lambda: [
        refusal(lambda v=value, p=parse: p(v).as_tuple())
        for parse in (parse_epsilon, parse_delta)
        for value in (LONG, 0.1, 1e-7, 0, -1, True, "1", float("nan"), float("inf"), Decimal("sNaN"), 10**30, 1e-300)
    ],
    "budget": lambda: [
        number.as_tuple()
        for number in (BUDGET.epsilon_per_window(BUDGET.spans[0]), BUDGET.epsilon_per_day, BUDGET.delta_per_day)
    ],
    "limit": lambda: [refusal(lambda v=v: require_within(BUDGET, Decimal(v))) for v in (186, 187, "186.6851")],
    "configuration": lambda: configured("1700"),
    "configuration over its limit": lambda: configured("1E+1"),
    "plain": lambda: [plain(number) for number in (LONG, Decimal("1E-9"), Decimal("1e+20"))],
}


@pytest.fixture(scope="module")
def wanted() -> dict[str, object]:
    return {name: work() for name, work in RESULTS.items()}


@pytest.mark.parametrize("context", HOSTILE)
@pytest.mark.parametrize("name", RESULTS)
def test_no_context_changes_a_result(wanted, name, context):
    with localcontext(HOSTILE[context]):
        found = RESULTS[name]()
    assert found == wanted[name]


def test_the_results_themselves_are_exact(wanted):
    """So that the comparison above is not one of equal errors: against fractions, which know no context."""
    a_day = Fraction(LONG) * 1500 + Fraction(3, 2)
    assert Fraction(BUDGET.epsilon_per_day) == a_day
    assert Fraction(BUDGET.delta_per_day) == Fraction(89, 10**17) * 1500
    assert Fraction(MIN_EPSILON) == Fraction(1, 1 << 10)
    assert Fraction(MIN_DELTA) == Fraction(1, 1 << 50)
    assert wanted["configuration"][0]
    assert "E-" in wanted["configuration"][2]
    assert [type(each) for each in wanted["limit"]] == [tuple, type(None), tuple]


def test_a_delta_of_many_digits_is_never_exceeded():
    """delta * 2^64 lies a hair below an integer, nearer than the digits that a decimal has by default can tell."""
    with localcontext(Context(prec=90, rounding=ROUND_FLOOR)):
        delta = (Decimal(12_345_678_901_234_568) - Decimal("1e-20")) / (1 << 64)
    assert Fraction(delta) * (1 << 64) < 12_345_678_901_234_568
    assert selection_table(1, delta).tolist()[1] == 12_345_678_901_234_567


def test_not_a_number_is_no_limit():
    for context in (Context(traps=[]), Context(traps=[InvalidOperation])):
        with localcontext(context), pytest.raises(SfmStreamError, match="NaN"):
            require_within(BUDGET, Decimal("nan"))


def test_the_context_of_whoever_imports_the_package_does_not_matter():
    code = (
        "import decimal; decimal.setcontext(decimal.Context(prec=1, rounding=decimal.ROUND_UP, Emin=-1, Emax=1)); "
        "decimal.DefaultContext.prec = 1; decimal.DefaultContext.traps[decimal.Inexact] = True; "
        "from sfm_stream.privacy.epsilon import MIN_EPSILON, flip_threshold_of; "
        "from sfm_stream.privacy.selection import MIN_DELTA; "
        "print(MIN_EPSILON.as_tuple() == (0, (9, 7, 6, 5, 6, 2, 5), -10), MIN_DELTA.as_tuple().exponent, "
        "flip_threshold_of(1))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == f"True -50 {flip_threshold_of(1)}\n", done.stderr
