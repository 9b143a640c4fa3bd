"""`sfm-stream serve`: a JSON API and a page of what pipelines have published."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import click

from sfm_stream.composition.stop_signal import Stop
from sfm_stream.config.config import load_config
from sfm_stream.errors import SfmStreamError, UsageError
from sfm_stream.observe.logs import configure

_EXTRA = ("fastapi", "jinja2", "starlette", "uvicorn")
_LOOK_S = 0.1


@click.command()
@click.argument("configs", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--listen", metavar="ADDRESS", help="Where its page and JSON API are, in place of serve.listen.")
def serve(configs: tuple[Path, ...], listen: str | None) -> None:
    """Answer questions about what the pipelines of CONFIGS have published: a page, and a JSON API.

    [serve] of the first one applies. Reads what is public only. Runs until it is stopped.
    """
    loaded = [load_config(path) for path in configs]
    configure(loaded[0].logs.format, loaded[0].logs.level)
    try:
        from sfm_stream.serve.server import serving
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise UsageError(
            f"serve needs {error.name}, which is not installed: pip install 'sfm-stream[serve]' brings what it needs"
        ) from None
    with Stop().listening() as stopping, serving(loaded, listen) as server:
        while not stopping():
            if not server.runs:
                raise SfmStreamError("the server has stopped by itself; its log says why")
            Event().wait(_LOOK_S)
