"""Every name of the client that a hook relies on and that it does not promise: there, and as it was."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from importlib.metadata import version
from types import ModuleType

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.consumer import ConsumerCoordinator

from sfm_stream.transport.kafka.kafka_python import hooks
from sfm_stream.transport.kafka.kafka_python.hooks.private_names import TESTED_WITH

MODULES = [
    importlib.import_module(f"{hooks.__name__}.{each.name}")
    for each in pkgutil.iter_modules(hooks.__path__)
    if each.name != "private_names"
]
DECLARED = [
    pytest.param(owner, name, check, id=f"{module.__name__.rpartition('.')[2]}-{owner.partition(':')[2]}.{name}")
    for module in MODULES
    for owner, names in module.RELIES_ON.items()
    for name, check in names.items()
]


def what_is_wrong(owner: str, name: str, check: str) -> str:
    """About one name, in words for whoever takes up another version of the client; "" where it is as it was."""
    where, bare, _ = owner.replace(":", "."), *name.partition("(")[:2]
    told = f"kafka-python {version('kafka-python')}: {{}} (hooks tested with {TESTED_WITH}). Check: {check}"
    module_name, _, path = owner.partition(":")
    try:
        kind = importlib.import_module(module_name)
        for part in path.split("."):
            kind = getattr(kind, part)
    except (ImportError, AttributeError):
        return told.format(f"{where} is gone")
    if bare not in attributes(kind):
        return told.format(f"{where}.{bare} is gone")
    if "(" in name:
        declared = f"{bare}{inspect.signature(getattr(kind, bare))}"
        fits = declared.startswith(name.removesuffix(" ...)")) if name.endswith(" ...)") else declared == name
        if not fits:
            return told.format(f"{where}.{declared} was {name}")
    return ""


def attributes(kind: type) -> set[str]:
    """Names that a class has, or that one of its methods sets on self."""
    names = set(dir(kind))
    for base in [each for each in inspect.getmro(kind) if each.__module__ != "builtins"]:
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and ast.unparse(node.value) == "self"
            ):
                names.add(node.attr)
    return names


def test_the_client_is_one_whose_insides_are_known():
    found, known = version("kafka-python"), TESTED_WITH.rpartition(".")[0]
    assert found.startswith(f"{known}."), (
        f"kafka-python {found}: the modules in transport/kafka/kafka_python/hooks reach into the insides of {known}; "
        "go through them, and through the tests here, before another version is allowed"
    )


@pytest.mark.parametrize(("owner", "name", "check"), DECLARED)
def test_a_name_is_as_it_was(owner, name, check):
    wrong = what_is_wrong(owner, name, check)
    assert not wrong, wrong


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        ("kafka.consumer.group:KafkaConsumer", "_fetchers", "kafka.consumer.group.KafkaConsumer._fetchers is gone"),
        ("kafka.consumer.group:Consumer", "_fetcher", "kafka.consumer.group.Consumer is gone"),
        ("kafka.consumers:KafkaConsumer", "_fetcher", "kafka.consumers.KafkaConsumer is gone"),
        (
            "kafka.net.manager:KafkaConnectionManager",
            "send(self, request, node=None)",
            "KafkaConnectionManager.send(self, request, node_id=None, request_timeout_ms=None) was send(self, request, "
            "node=None)",
        ),
        ("kafka.net.manager:KafkaConnectionManager", "send(self, node_id, ...)", "was send(self, node_id, ...)"),
    ],
)
def test_a_name_that_is_gone_or_another_one_is_told_with_what_to_look_at(owner, name, said):
    wrong = what_is_wrong(owner, name, "what the hook does with it")
    assert said in wrong
    assert f"kafka-python {version('kafka-python')}: " in wrong
    assert f"tested with {TESTED_WITH}" in wrong
    assert wrong.endswith("Check: what the hook does with it")


def test_a_client_without_the_name_is_told(monkeypatch):
    """As if the next version had renamed a method, and set an attribute no more."""
    owner, name = "kafka.coordinator.consumer:ConsumerCoordinator", "_do_join_and_sync_async(self)"
    assert what_is_wrong(owner, name, "joins") == ""
    for base in inspect.getmro(ConsumerCoordinator):
        if "_do_join_and_sync_async" in vars(base):
            monkeypatch.delattr(base, "_do_join_and_sync_async")
    assert "ConsumerCoordinator._do_join_and_sync_async is gone" in what_is_wrong(owner, name, "joins")
    without = type("KafkaConsumer", (), {})
    monkeypatch.setattr("kafka.consumer.group.KafkaConsumer", without)
    monkeypatch.setattr(inspect, "getsource", lambda kind: f"class {kind.__name__}: ...")
    assert "KafkaConsumer._fetcher is gone" in what_is_wrong("kafka.consumer.group:KafkaConsumer", "_fetcher", "poll")
    assert KafkaConsumer is not without


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_hook_relies_on_nothing_that_it_does_not_say(module):
    declared = {name.partition("(")[0] for names in module.RELIES_ON.values() for name in names}
    assert undeclared(module, inspect.getsource(module), declared) == set()


def test_a_private_name_that_is_not_declared_is_found():
    module = next(module for module in MODULES if module.__name__.endswith("whole_batches"))
    source = inspect.getsource(module)
    declared = {name.partition("(")[0] for names in module.RELIES_ON.values() for name in names}
    assert undeclared(module, source + "\n\nx = consumer._client\n", declared) == {"_client"}
    assert undeclared(module, source, declared - {"_unpack_records"}) == {"_unpack_records"}
    assert undeclared(module, source, declared - {"_buffer"}) == {"_buffer"}


def undeclared(module: ModuleType, source: str, declared: set[str]) -> set[str]:
    """Private names that the source reaches for, and methods of the client that its classes replace."""
    tree = ast.parse(source)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    own = {node.target.id for each in classes for node in each.body if isinstance(node, ast.AnnAssign)}
    replaced = set()
    for each in classes:
        client = [base for base in inspect.getmro(getattr(module, each.name)) if base.__module__.startswith("kafka.")]
        methods = {node.name for node in each.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        theirs = {name for name in methods if any(name in vars(base) for base in client)} - {"__init__"}
        replaced |= theirs
        own |= methods - theirs
    stored = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    reached = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    }
    return (replaced | (reached - own - stored)) - declared
