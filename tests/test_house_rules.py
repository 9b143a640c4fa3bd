"""The rules of the house, as functions over the path and the text of a module; each is shown to catch what it forbids.

Paths are relative to the package. A rule returns what is wrong, one line for each finding.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from support.planted_violations import ALLOWED, CAUGHT

PACKAGE = Path(__file__).parents[1] / "sfm_stream"
MODULES = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
Rule = Callable[[str, str], list[str]]

LAYERS = [
    ["errors"],
    ["units"],
    ["types"],
    ["readable"],
    ["kernels"],
    ["clock"],
    ["sketch"],
    ["privacy"],
    ["estimation"],
    ["methods"],
    ["__init__", "public"],  # what the library offers without a stream: sketches, the flip and the estimate
    ["wire"],
    ["events"],
    ["windows"],
    ["pipeline"],
    ["planning"],  # what a configuration will be worth: it prices and judges spans, and nothing of a run imports it
    ["transport"],
    ["config.values"],
    ["config.tables"],
    ["config.credentials"],
    ["config.key_rule", "config.security", "config.setting_errors", "config.span_rules"],
    ["config.item_hash", "config.rules"],
    ["config.derived"],
    ["config"],
    ["answers"],
    ["workers"],
    ["observe"],
    ["composition"],
    ["client", "answers.__init__"],  # the same answers in Python, of a file, of topics or of a server
    ["serve"],
    ["cli"],
]
"""A module imports from its own layer and from the ones above it in this list, never from below."""
FRONTS = {entry for layer in LAYERS for entry in layer if entry.endswith(".__init__")}
"""What a package offers, where the layer of what it offers is another one than that of its modules."""

MAX_MODULE_LINES, MAX_FUNCTION_LINES = 300, 60

ENTROPY = {"privacy/coins.py": "the only importer of entropy"}
TIME = {"clock.py": "the one place that asks what time it is"}
NUMPY_RANDOM = {"events/page_views.py": "makes sample data; nothing that is released depends on it"}
ENVIRONMENT = {"config/credentials.py": "a password, where a configuration names the variable"}
DATABASE = {
    "transport/files/log_reader.py": "the output file, for readers",
    "transport/files/sqlite_log.py": "the output file, for its writer",
    "transport/files/log_schema.py": "its tables",
    "answers/scratch.py": "what a question holds while it is answered",
}
NETWORK = {
    "observe/listener.py": "the listeners for metrics and health",
    "transport/kafka/transport.py": "the name of this host, in the id of its transactions",
    "serve/http_server.py": "the listener for answers",
    "client/http_source.py": "asks a server for answers",
}
"""A broker's sockets are its client's, which transport/kafka/kafka_python/client.py makes."""
KAFKA_CLIENT = "transport/kafka/kafka_python/"
"""Below it the client library is imported, and nowhere else; its private names, in hooks/ below that."""
C_LIBRARY = {"cli/memory.py": "tells the heap of a worker how much to keep"}
COMPILED = {"kernels.py": "chooses between the kernels, and says what the compiled one offers"}
PROCESSES = {"composition/kept_stopped.py": "the worker that it runs and keeps stopped"}
KAFKA_CLIENT_OPENED = {"composition/kafka_cluster.py": "makes the cluster that all others are given"}
FILES = {
    "transport/files/stored_bytes.py": "the input, read in place",
    "transport/files/sqlite_log.py": "the output file, created with the right mode",
    "transport/files/topic_cache.py": "the copy of topics, created with the right mode",
    "transport/files/lockfile.py": "the lock beside the output file",
    "composition/kept_stopped.py": "the note that a worker stays stopped",
    "transport/files/released_borders.py": "what was released into it, beside the output file",
    "answers/table_file.py": "the table that an export writes",
    "serve/pages/static_files.py": "style sheet and scripts of the page, which are in the package",
    "config/toml_text.py": "the configuration, and the cases of a test",
    "config/item_hash.py": "the hash key file that it names",
    "config/credentials.py": "the password file that it names",
    "cli/streams.py": "the standard streams",
    "cli/init.py": "the configuration that it writes",
    "cli/inspect.py": "files that the user names, to be looked at",
    "cli/generate.py": "the sample that the user asks for",
}


# What a module does, from its syntax


@cache
def tree(source: str) -> ast.Module:
    return ast.parse(source)


def module_name(path: str) -> str:
    """Dotted name below the package; a package by its own name, the top and fronts as __init__."""
    dotted = path.removesuffix(".py").replace("/", ".")
    return dotted if dotted in FRONTS else dotted.removesuffix(".__init__")


def imports(source: str, path: str = "") -> Iterator[tuple[int, str]]:
    """(line, full dotted name) of everything imported, at any depth; relative imports are resolved."""
    package = ["sfm_stream", *path.split("/")[:-1]]
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{stem}.{alias.name}") for alias in node.names)


@cache
def chains(source: str) -> list[tuple[int, str]]:
    """(line, dotted text) of every name and attribute, as written: datetime.now, np.random.default_rng, open."""
    nodes = [node for node in ast.walk(tree(source)) if isinstance(node, ast.Attribute | ast.Name)]
    return [(node.lineno, ast.unparse(node)) for node in nodes]


def uses(path: str, source: str, modules: str) -> list[str]:
    """Findings for every import of one of these modules (a pattern), by any form of import, dynamic ones too."""
    pattern = re.compile(rf"({modules})(\.|\Z)")
    found = [f"{path}:{line}: imports {name}" for line, name in imports(source, path) if pattern.match(name)]
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "__import__",
            "import_module",
            "importlib.import_module",
        ):
            found.append(f"{path}:{node.lineno}: imports by name, which no rule can see through")
    return found


# The rules


def layer_of(name: str) -> int | None:
    """The layer of a module of the package: the most exact entry wins."""
    places = {entry: number for number, layer in enumerate(LAYERS) for entry in layer}
    for length in range(len(parts := name.split(".")), 0, -1):
        if (found := places.get(".".join(parts[:length]))) is not None:
            return found
    return None


def imports_point_upward(path: str, source: str) -> list[str]:
    mine = layer_of(module_name(path))
    if mine is None:
        return [f"{path}: belongs to no layer"]
    problems = []
    for line, name in imports(source, path):
        if name == "sfm_stream" or name.startswith("sfm_stream."):
            inner = name.removeprefix("sfm_stream").lstrip(".")
            target = layer_of(inner) if inner else layer_of("__init__")
            target = layer_of("__init__") if target is None else target  # a name that the package itself offers
            if target > mine:
                problems.append(f"{path}:{line}: imports {name} from below")
    return problems


def modules_are_short(path: str, source: str) -> list[str]:
    lines = len(source.splitlines())
    return [f"{path}: {lines} lines, at most {MAX_MODULE_LINES}"] if lines > MAX_MODULE_LINES else []


def functions_are_short(path: str, source: str) -> list[str]:
    return [
        f"{path}:{node.lineno}: {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}"
        for node in ast.walk(tree(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]


def only_the_clock_asks_the_time(path: str, source: str) -> list[str]:
    if path in TIME:
        return []
    # np.datetime64 knows "now" and "today".
    asking = re.compile(r"(.*\.)?(datetime|date)\.(now|utcnow|today)\Z|(.*\.)?datetime64\Z")
    found = [f"{path}:{line}: {text}" for line, text in chains(source) if asking.match(text)]
    return uses(path, source, "time|sched|timeit") + found


def only_coins_take_entropy(path: str, source: str) -> list[str]:
    if path in ENTROPY:
        return []
    drawing = re.compile(r"os\.(urandom|getrandom)\Z")
    found = [f"{path}:{line}: {text}" for line, text in chains(source) if drawing.match(text)]
    found += [
        f"{path}:{line}: a device of entropy" for line, text in texts(source) if re.search(r"/dev/u?random", text)
    ]
    return uses(path, source, r"ssl|secrets|random|uuid|os\.urandom|os\.getrandom|tempfile") + found


def no_generator_of_numpy(path: str, source: str) -> list[str]:
    if path in NUMPY_RANDOM:
        return []
    found = [f"{path}:{line}: {text}" for line, text in chains(source) if re.match(r"(np|numpy)\.random\b", text)]
    return uses(path, source, r"numpy\.random|scipy") + found


def only_one_home_reads_the_environment(path: str, source: str) -> list[str]:
    if path in ENVIRONMENT:
        return []
    reading = re.compile(r"os\.(environb?|getenvb?|putenv)\b")
    found = [f"{path}:{line}: {text}" for line, text in chains(source) if reading.match(text)]
    return uses(path, source, r"os\.(environb?|getenvb?|putenv)|dotenv") + found


def input_and_output_have_their_place(path: str, source: str) -> list[str]:
    problems = []
    if path not in DATABASE:
        problems += uses(path, source, "sqlite3|dbm|shelve")
    if path not in NETWORK:
        clients = "http|urllib\\.request|requests|httpx|aiohttp|asyncio|ftplib|smtplib"
        problems += uses(path, source, f"socket|socketserver|selectors|{clients}")
    problems += uses(path, source, "multiprocessing|pickle|marshal" + ("" if path in PROCESSES else "|subprocess"))
    if path not in C_LIBRARY:
        problems += uses(path, source, "ctypes")
    if path not in FILES:
        methods = {
            "read_text",
            "read_bytes",
            "write_text",
            "write_bytes",
            "fdopen",
            "memmap",
            "mkdir",
            "unlink",
            "touch",
        }
        problems += uses(path, source, "mmap|io|shutil|gzip|fcntl|bz2|lzma|zipfile|tarfile")
        for node in ast.walk(tree(source)):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                last = called.rsplit(".", 1)[-1]
                if (
                    (last == "open" and called != "self.open")
                    or ("." in called and last in methods)
                    or called in ("np.save", "np.load", "np.fromfile")
                ):
                    problems.append(f"{path}:{node.lineno}: {called}() outside the modules that may touch files")
    return problems


def asserts_only_narrow_types(path: str, source: str) -> list[str]:
    """`python -O` drops them: what has to hold is checked with an error of its own."""
    found = []
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Assert):
            said = ast.unparse(node.test)
            if node.msg or not re.fullmatch(r"[\w.]+ is not None|isinstance\([\w.]+, [\w. |]+\)", said):
                found.append(f"{path}:{node.lineno}: assert {said} is more than a type")
    return found


def only_one_folder_knows_the_kafka_client(path: str, source: str) -> list[str]:
    """All others speak to the protocols of transport/kafka/cluster.py."""
    if path.startswith(KAFKA_CLIENT):
        return []
    modules = "kafka" if path in KAFKA_CLIENT_OPENED else r"kafka|sfm_stream\.transport\.kafka\.kafka_python"
    return uses(path, source, modules)


def hooks_into_the_kafka_client_are_in_one_folder(path: str, source: str) -> list[str]:
    """Private names of other objects than self are reached for in hooks/ only."""
    if not path.startswith("transport/kafka/") or path.startswith(f"{KAFKA_CLIENT}hooks/"):
        return []
    return [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree(source))
        if isinstance(node, ast.Attribute)
        and re.match(r"_[a-z]", node.attr)
        and ast.unparse(node.value) not in ("self", "cls", "super()")
    ]


def only_kernels_knows_the_compiled_one(path: str, source: str) -> list[str]:
    """All others ask kernels.native(), and do without where it gives None."""
    return [] if path in COMPILED else uses(path, source, "sfm_stream_native")


def nothing_is_printed(path: str, source: str) -> list[str]:
    return [
        f"{path}:{node.lineno}: {ast.unparse(node.func)}()"
        for node in ast.walk(tree(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "builtins.print", "breakpoint", "pprint")
    ] + [
        f"{path}:{line}: {text}"
        for line, text in chains(source)
        if text in ("sys.stdout", "sys.stderr") and "cli/" not in path
    ]


def only_the_command_line_knows_its_libraries(path: str, source: str) -> list[str]:
    """Answers are given to servers and notebooks too: errors are of our own tree, and nobody else draws on a screen."""
    return [] if path.startswith("cli/") else uses(path, source, "click|rich")


def times_are_written_as_times(path: str, source: str) -> list[str]:
    """Nobody reads 1767225600000 ms: `instant` and `duration` of readable.py."""
    if path in ("readable.py", "privacy/statement.py"):
        return []
    bare = re.compile(r"\} ?ms\b|at %[ds] ms\b")
    return [f"{path}:{n}: {line.strip()}" for n, line in enumerate(source.splitlines(), 1) if bare.search(line)]


def no_open_ends(path: str, source: str) -> list[str]:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    return [f"{path}:{n}: {line.strip()}" for n, line in enumerate(source.splitlines(), 1) if marks.search(line)]


def names_say_something(path: str, source: str) -> list[str]:
    vague = re.compile(r"(^|_)(utils?|helpers?|managers?|misc|common|base_?utils|stuff)(_|$)", re.IGNORECASE)
    problems = [f"{path}: the name {part}" for part in path.removesuffix(".py").split("/") if vague.search(part)]
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.ClassDef) and re.search(r"(Manager|Helper|Util|Utils)$", node.name):
            problems.append(f"{path}:{node.lineno}: the name {node.name}")
    return problems


def nothing_runs_at_import(path: str, source: str) -> list[str]:
    """No loops, prints or opened things at the top of a module: statements there only define."""
    loops = ast.For | ast.While | ast.With | ast.Try | ast.AsyncFor | ast.Delete | ast.Global
    return [f"{path}:{node.lineno}: runs at import" for node in tree(source).body if isinstance(node, loops)]


def texts(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


RULES: dict[str, Rule] = {name: globals()[name] for name in CAUGHT}


def test_every_rule_is_shown_to_catch_something():
    """A rule takes a path and a source, and nothing else does."""
    taken = {
        name: list(inspect.signature(each).parameters) for name, each in globals().items() if inspect.isfunction(each)
    }
    assert [name for name, names in taken.items() if names == ["path", "source"]] == list(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_the_package_keeps_the_rule(rule):
    assert len(MODULES) > 40, "the package was not found"
    problems = [problem for path, source in MODULES.items() for problem in RULES[rule](path, source)]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    ("rule", "path", "source"),
    [pytest.param(rule, *planted, id=f"{rule}-{i}") for rule in RULES for i, planted in enumerate(CAUGHT[rule])],
)
def test_a_planted_violation_is_caught(rule, path, source):
    assert RULES[rule](path, source), "the rule does not see it"


@pytest.mark.parametrize(("rule", "path", "source"), ALLOWED)
def test_what_is_allowed_is_left_alone(rule, path, source):
    assert RULES[rule](path, source) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_planted_line_in_a_real_module_is_caught(rule):
    """Not only in a text made for it: the first planted source behind a module of the package."""
    path, planted = CAUGHT[rule][0]
    host = "sketch/tally.py" if path not in MODULES else path
    source = MODULES[host] + "\n\n" + planted + "\n"
    assert RULES[rule](path, source)


def test_every_module_has_one_layer_and_every_layer_has_modules():
    layers = {path: layer_of(module_name(path)) for path in MODULES}
    assert None not in layers.values()
    used = set(layers.values())
    assert used == set(range(len(LAYERS))), "a layer without a module"


def test_every_exception_is_still_needed():
    """An allowlist that outlives its reason hides the next violation."""
    checks: list[tuple[dict[str, str], str, Rule]] = [
        (ENTROPY, "ENTROPY", only_coins_take_entropy),
        (TIME, "TIME", only_the_clock_asks_the_time),
        (NUMPY_RANDOM, "NUMPY_RANDOM", no_generator_of_numpy),
        (DATABASE, "DATABASE", input_and_output_have_their_place),
        (C_LIBRARY, "C_LIBRARY", input_and_output_have_their_place),
        (FILES, "FILES", input_and_output_have_their_place),
        (PROCESSES, "PROCESSES", input_and_output_have_their_place),
        (COMPILED, "COMPILED", only_kernels_knows_the_compiled_one),
        (KAFKA_CLIENT_OPENED, "KAFKA_CLIENT_OPENED", only_one_folder_knows_the_kafka_client),
    ]
    for listed, name, rule in checks:
        for path in list(listed):
            with pytest.MonkeyPatch.context() as patch:
                patch.delitem(listed, path)
                assert path in MODULES, f"{name}: {path} is gone"
                assert rule(path, MODULES[path]), f"{name}: {path} needs no exception"
