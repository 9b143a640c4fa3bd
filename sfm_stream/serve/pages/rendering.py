"""Templates to HTML: everything that is put into one is escaped."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from sfm_stream.serve.pages.key_display import address
from sfm_stream.serve.pages.static_files import static_files


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("sfm_stream.serve.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["address"] = address
    return made


def render(template: str, root: str, **values: object) -> str:
    """A page. root: the path below which the application is served; "" for the root of a host."""
    return _environment().get_template(template).render(root=root, static=_static(root), **values)


def _static(root: str) -> Callable[[str], str]:
    """The address of a static file, which changes with its content."""
    return lambda name: f"{root}{address('static', name, v=static_files()[name].version)}"
