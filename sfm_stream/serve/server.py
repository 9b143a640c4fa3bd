"""The server of one or several pipelines, put together: their sources, the application, its listener."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from sfm_stream import kernels
from sfm_stream.config.config import Config
from sfm_stream.config.tables import ServeTable
from sfm_stream.errors import ConfigError
from sfm_stream.serve.app import make_app
from sfm_stream.serve.file_source import served_file
from sfm_stream.serve.http_server import HttpServer
from sfm_stream.serve.served import ServedPipeline
from sfm_stream.serve.turns import Turns

_log = logging.getLogger(__name__)


@contextmanager
def serving(configs: Sequence[Config], listen: str | None = None) -> Iterator[HttpServer]:
    """A server of these pipelines, for this block. [serve] of the first one applies.

    listen: in place of serve.listen. Raises ConfigError where the configurations do not go together or the server
    cannot listen; StateError or StorageError where a copy of topics cannot be written.
    """
    settings = _settings(configs)
    if listen is not None:
        settings = settings.model_copy(update={"listen": listen})
    if not settings.listen:
        raise ConfigError('serve.listen: "" is no address to listen at, such as "127.0.0.1:8464"')
    kernels.choose(configs[0].worker.kernel)
    turns = Turns(settings.max_questions, settings.max_time)
    with ExitStack() as open_now:
        pipelines = {each.pipeline.id: open_now.enter_context(_served(each, turns)) for each in configs}
        server = HttpServer(make_app(pipelines, settings), "serve.listen", settings.listen)
        open_now.callback(server.close)
        shown = f"[{server.host}]" if ":" in server.host else server.host
        _log.info("answers at http://%s:%d/", shown, server.port, extra={"pipelines": len(pipelines)})
        yield server


def _served(config: Config, turns: Turns) -> AbstractContextManager[ServedPipeline]:
    if not config.on_cluster:
        return served_file(config, turns)
    # Where no cluster is used its client is not loaded either.
    from sfm_stream.serve.topic_source import served_topics

    return served_topics(config, turns)


def _settings(configs: Sequence[Config]) -> ServeTable:
    """The settings of the server. Raises ConfigError where two pipelines have one id, or others say something else."""
    first, problems, ids = configs[0].settings.serve, list[str](), set[str]()
    for config in configs:
        name, own = config.pipeline.id, config.settings.serve
        if name in ids:
            problems.append(f"pipeline.id: two of the configurations are of {name}; a server has each pipeline once")
        ids.add(name)
        other = own.model_copy(update={"cache": first.cache})
        if other not in (first, ServeTable(cache=first.cache)):
            problems.append(
                f"serve: the configuration of {name} has other settings than the first one, which alone says how this "
                "server listens and what it allows: leave [serve] out of it, or only serve.cache in"
            )
    if problems:
        raise ConfigError(*problems)
    return first
