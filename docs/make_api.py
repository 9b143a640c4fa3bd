"""Writes docs/api.md from the docstrings of the public names.

make docs
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).with_name("api.md")
HEAD = """# API reference

Written by `make docs` from the docstrings. What stands here is public: a change that breaks it is named in the
changelog and raises the version as semantic versioning says. All else is internal, whatever its module.
"""
SECTIONS = {
    "Sketches": "sfm_stream.sketch",
    "The flip": "sfm_stream.privacy",
    "Estimates": "sfm_stream.estimation",
    "Errors": "sfm_stream.errors",
}
"""Titles, and the packages whose names of `sfm_stream` stand under them."""
MODULES = ("sfm_stream.wire", "sfm_stream.wire.presto", "sfm_stream.methods")
"""Public modules that `sfm_stream` itself does not offer."""


def text_of(thing: object) -> str:
    """A docstring as Markdown: drawings and code, which are indented there, as code."""
    said = inspect.getdoc(thing) or ""
    blocks = re.split(r"\n{2,}", re.sub(r"::$", ":", said, flags=re.M))
    return "\n\n".join(block if not _is_drawing(block) else f"```text\n{_dedented(block)}\n```" for block in blocks)


def _is_drawing(block: str) -> bool:
    lines = block.splitlines()
    return all(line.startswith("    ") or line[:1] in "├└│" for line in lines) and bool(block)


def _dedented(block: str) -> str:
    return inspect.cleandoc(block)


def signature_of(name: str, thing: object) -> str:
    """`name(arguments) -> result` as it is written in the source; only the name where nothing is called."""
    if not is_documented(thing) or getattr(thing, "_is_protocol", False):
        return name
    if isinstance(thing, type) and issubclass(thing, BaseException | enum.Enum):
        return name
    return f"{name}{call_of(thing).removesuffix(' -> None')}"


def is_documented(thing: object) -> bool:
    """A class or a function, whose docstring is its own; not an alias of a type, not an object."""
    return inspect.isroutine(thing) or isinstance(thing, type)


def call_of(function: Callable[..., object]) -> str:
    """`(arguments) -> result`; a default that cannot be written down as it is stands as dots."""
    signature = inspect.signature(function)
    parameters = [
        each.replace(default=...) if "<" in repr(each.default) and each.default is not each.empty else each
        for each in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters)).replace("'", "").replace("Ellipsis", "...")


def entry(name: str, thing: object) -> Iterator[str]:
    """One public name: what it is, then the public methods and properties that the package gives it."""
    yield f"### `{signature_of(name, thing)}`"
    if isinstance(thing, type) and issubclass(thing, BaseException) and thing.__base__ is not None:
        yield f"A kind of `{thing.__base__.__name__}`."
    if is_documented(thing):
        yield text_of(thing)
    elif type(thing).__module__.startswith("sfm_stream."):
        yield f"An object of `{type(thing).__name__}`."
    else:
        alias = re.sub(r"[a-z_.]+\.(?=[A-Z])", "", str(thing))
        yield f"The type `{alias}`."
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        yield "Members: " + ", ".join(f"`{member.name}`" for member in thing) + "."
    elif isinstance(thing, type):
        lines = [member(attribute, value) for attribute, value in members(thing)]
        yield "\n".join(line for line in lines if line)


def members(kind: type) -> Iterator[tuple[str, object]]:
    """Public methods and properties of a class, those of its bases in this package too, each once."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.startswith("sfm_stream."):
            for name, value in vars(base).items():
                if not name.startswith("_") and name not in seen:
                    seen.add(name)
                    yield name, value


def member(name: str, value: object) -> str:
    """One line of a list; nothing for a field, which stands in the signature of its class."""
    if isinstance(value, property):
        returned = str(inspect.signature(value.fget).return_annotation) if value.fget else ""
        return f"- `{name}: {returned}` {_flat(value)}"
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if not inspect.isfunction(function):
        return ""
    signature = call_of(function)
    signature = re.sub(r"^\((?:self|cls)(?:, )?", "(", signature) if not isinstance(value, staticmethod) else signature
    return f"- `{name}{signature}` {_flat(function)}"


def _flat(thing: object) -> str:
    return re.sub(r"\s+", " ", inspect.getdoc(thing) or "").strip()


def section_of(thing: object) -> str:
    home = thing.__module__ if hasattr(thing, "__module__") else type(thing).__module__
    for title, package in SECTIONS.items():
        if home == package or home.startswith(f"{package}."):
            return title
    raise ValueError(f"{thing!r} is of {home}: no section has it")


def page() -> str:
    """The whole page."""
    package = import_module("sfm_stream")
    offered = {name: getattr(package, name) for name in package.__all__}
    parts = [HEAD]
    for title in SECTIONS:
        parts.append(f"## {title}: `from sfm_stream import ...`")
        for name, thing in offered.items():
            if section_of(thing) == title:
                parts += entry(name, thing)
    for dotted in MODULES:
        module = import_module(dotted)
        parts += [f"## `{dotted}`", text_of(module)]
        for name in module.__all__:
            parts += entry(name, getattr(module, name))
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
