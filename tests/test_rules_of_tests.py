"""What no test may do, as functions over its text; each is shown to catch what it forbids.

The suite runs on machines that are slow, or do other work besides: how long something took says nothing about the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
MODULES = {path.relative_to(TESTS).as_posix(): path.read_text("utf-8") for path in sorted(TESTS.rglob("*.py"))}
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time"}
LEAST_LIMIT_S = 180
"""So long at least an event is waited for, where it says how long: support/patience.py waits longer."""
LIMITS = {"timeout", "timeout_s", "patience_s"}
MAX_LINES = 500
WAITS = {"wait", "communicate", "run", "result", "get", "HTTPConnection", "urlopen", "check_output", "check_call"}
"""Calls that wait for a process, a thread or an answer, and fail where it takes longer."""


def is_clock(node: ast.AST) -> bool:
    """A call that asks what time it is: time.monotonic(), perf_counter_ns()."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return ast.unparse(node.func.value) == "time" and node.func.attr.removesuffix("_ns") in CLOCKS
    return isinstance(node.func, ast.Name) and node.func.id.removesuffix("_ns") in CLOCKS


def names_in(node: ast.AST) -> set[str]:
    """Names and attributes; an attribute by its own name, whatever it is one of."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(name or attribute, what it is bound to); of several in one statement each with its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                for one, value in pairs:
                    if isinstance(one, ast.Name | ast.Attribute):
                        yield one.id if isinstance(one, ast.Name) else one.attr, value


def bound_to(tree: ast.AST, kind: set[str] | None) -> set[str]:
    """Names of readings of a clock; with those as `kind`, names of differences between readings."""
    found: set[str] = set()
    for _ in range(3):  # a name may stand for another one
        for name, value in assigned(tree):
            if is_clock(value) if kind is None else has_elapsed(value, kind, found):
                found.add(name)
    return found


def has_elapsed(node: ast.AST, readings: set[str], elapsed: set[str]) -> bool:
    """Whether there is a difference of two readings of a clock in an expression, or the name of one."""

    def reading(side: ast.expr) -> bool:
        return any(is_clock(each) for each in ast.walk(side)) or bool(names_in(side) & readings)

    def difference(each: ast.AST) -> bool:
        return (
            isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub) and reading(each.left) and reading(each.right)
        )

    return bool(names_in(node) & elapsed) or any(map(difference, ast.walk(node)))


def no_duration_is_asserted(path: str, source: str) -> list[str]:
    """Neither a difference of clock values, nor that a time is not over yet but in the loop that waits for an event."""
    if not re.search(r"\b(import time|from time|time\.|perf_counter|monotonic)", source):
        return []
    tree = ast.parse(source)
    readings = bound_to(tree, None)
    elapsed = bound_to(tree, readings)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.While | ast.For)]
    waiting = {id(each) for loop in loops for each in ast.walk(loop) if isinstance(each, ast.Assert)}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert):
            continue
        steady = any(is_clock(each) and "time.time" not in ast.unparse(each) for each in ast.walk(node.test))
        if has_elapsed(node.test, readings, elapsed) or (steady and id(node) not in waiting):
            found.append(f"{path}:{node.lineno}: asserts how long something took: {ast.unparse(node.test)[:80]}")
    return found


def no_wait_is_short(path: str, source: str) -> list[str]:
    """Whoever waits for an event gives it minutes."""
    found = []
    for node in ast.walk(ast.parse(source)):
        limits: list[ast.expr] = []
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            if name in WAITS:
                limits = [word.value for word in node.keywords if word.arg in LIMITS]
                # A thread's pause has no other argument either, but nothing fails where it is over.
                limits += node.args[:1] if name == "wait" and "process" in ast.unparse(node.func).lower() else []
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and is_clock(node.left):
            limits = [node.right] if "monotonic" in ast.unparse(node.left) else []
        found += [
            f"{path}:{node.lineno}: waits no longer than {limit.value} s"
            for limit in limits
            if isinstance(limit, ast.Constant)
            and isinstance(limit.value, int | float)
            and 0 < limit.value < LEAST_LIMIT_S
        ]
    return found


def no_deadline_is_set(path: str, source: str) -> list[str]:
    """Of a property: conftest.py takes it away from all of them."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        f"{path}:{call.lineno}: a deadline of {ast.unparse(word.value)}"
        for call in calls
        if ast.unparse(call.func).rpartition(".")[2] in ("settings", "register_profile")
        for word in call.keywords
        if word.arg == "deadline" and ast.unparse(word.value) != "None"
    ]


def no_file_is_long(path: str, source: str) -> list[str]:
    """A long file holds several subjects: split it by them."""
    lines = len(source.splitlines())
    return [f"{path}: {lines} lines, at most {MAX_LINES}"] if lines > MAX_LINES else []


def no_exception_is_silent(path: str, source: str) -> list[str]:
    """Whoever passes over a rule of lint says why, on the same line."""
    silent = re.compile(r"#\s*noqa(?!: [A-Z0-9, ]+ -- \w)")
    return [f"{path}:{number}: no reason" for number, line in enumerate(source.splitlines(), 1) if silent.search(line)]


def units_mirror_the_package(tests: set[str], packages: set[str]) -> list[str]:
    """Folders below tests/unit that no package has, and packages without one."""
    found = [f"tests/unit/{folder}: there is no sfm_stream/{folder}" for folder in sorted(tests - packages)]
    return found + [f"sfm_stream/{folder}: there is no tests/unit/{folder}" for folder in sorted(packages - tests)]


def folders_with_code(root: Path) -> set[str]:
    """Folders below a root with Python files somewhere in them, relative to it; not the root itself."""
    return {folder.as_posix() for path in root.rglob("*.py") for folder in path.relative_to(root).parents} - {"."}


CAUGHT = {
    no_duration_is_asserted: [
        "began = time.monotonic()\nassert time.monotonic() - began < 5",
        "from time import perf_counter\nbegan = perf_counter()\nassert perf_counter() - began < 5",
        "began = time.time()\nx()\ntook_s = time.time() - began\nassert took_s < 5, 'slow'",
        "began, x = time.monotonic(), 1\nself.code, self.took_s = 0, time.monotonic() - began\nassert self.took_s < 25",
        "began = time.monotonic_ns()\nassert (found.code, (time.monotonic_ns() - began) / 1e9 < 5) == (7, True)",
        "began = time.monotonic()\nended = time.monotonic()\nassert ended - began < 5",
        "began = time.monotonic()\ntook = time.monotonic() - began\nslow = took\nassert not slow > 5",
        "deadline = time.monotonic() + 300\nx()\nassert time.monotonic() < deadline",
        "assert 0 <= (took := time.monotonic() - began) < 5\nbegan = time.monotonic()",
    ],
    no_wait_is_short: [
        "subprocess.run(call, timeout=30)",
        "process.communicate(timeout=5)",
        "assert worker.process.wait(20) == 0",
        "process.wait(timeout=1.5)",
        "deadline = time.monotonic() + 60",
        "future.result(timeout=10)",
        "urllib.request.urlopen(address, timeout=5)",
    ],
    no_deadline_is_set: [
        "@settings(max_examples=5, deadline=400)\ndef x(): ...",
        "hypothesis.settings(deadline=timedelta(seconds=1))",
        "settings.register_profile('slow', deadline=5_000)",
    ],
    no_exception_is_silent: [
        "x = 1  # no" + "qa",
        "x = 1  # no" + "qa: S101",
        "x = 1  # no" + "qa: S101, PT017  # why",
    ],
    no_file_is_long: ["x = 1\n" * (MAX_LINES + 1)],
}
ALLOWED = [
    "@settings(max_examples=5, deadline=None)\ndef x(): ...",
    "x = eval(text)  # no" + "qa: S307 -- digits",
    "deadline = time.monotonic() + 300\nwhile not done():\n    assert time.monotonic() < deadline, 'not done'",
    "while True:\n    time.sleep(max(0.0, until - time.monotonic()))",
    "now = time.time()\nassert written_s <= time.time()",
    "start_ms = int(time.time()) // 3600 * 3_600_000\nassert end_ms - start_ms == 60_000",
    "assert found.end_ms - found.start_ms == 60_000",
    "subprocess.run(call, timeout=PATIENCE_S)\nprocess.wait()\nEvent().wait(0.1)\nfuture.get(timeout=0)",
]
RULES = list(CAUGHT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tests_keep_the_rule(rule):
    assert len(MODULES) > 100, "the tests were not found"
    problems = [problem for path, source in MODULES.items() for problem in rule(path, source)]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(("rule", "planted"), [(rule, planted) for rule in RULES for planted in CAUGHT[rule]])
def test_a_planted_violation_is_caught(rule, planted):
    assert rule("test_x.py", planted), "the rule does not see it"
    inside = "def test_x():\n" + "\n".join(f"    {line}" for line in planted.splitlines())
    assert rule("test_x.py", MODULES["integration/test_kafka_cli.py"] + "\n\n" + inside)


@pytest.mark.parametrize("source", ALLOWED)
def test_what_is_allowed_is_left_alone(source):
    assert [problem for rule in RULES for problem in rule("test_x.py", source)] == []


def test_no_property_has_a_deadline():
    """Neither what Hypothesis sets by itself, nor its verdict that data are made too slowly."""
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_the_unit_tests_mirror_the_package():
    tests, packages = folders_with_code(TESTS / "unit"), folders_with_code(TESTS.parent / "sfm_stream")
    assert units_mirror_the_package(tests, packages) == []
    assert {"privacy", "transport/kafka"} <= tests


def test_a_folder_out_of_place_is_found():
    assert units_mirror_the_package({"privacy", "pipeline/tests"}, {"privacy"}) == [
        "tests/unit/pipeline/tests: there is no sfm_stream/pipeline/tests"
    ]
    assert units_mirror_the_package(set(), {"privacy"}) == ["sfm_stream/privacy: there is no tests/unit/privacy"]
