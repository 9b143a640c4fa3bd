"""A pipeline on a cluster as it is served, where neither the cluster nor the disk does what it should."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest
from support.kafka_model import CONFIGURATION
from support.patience import until

from sfm_stream.errors import StorageError
from sfm_stream.serve import topic_source
from sfm_stream.serve.topic_source import served_topics
from sfm_stream.serve.turns import Turns


def test_what_is_wrong_with_a_copy_is_told_without_its_path_and_logged_with_it(tmp_path, monkeypatch, caplog):
    config = replace(CONFIGURATION, folder=tmp_path)

    @contextmanager
    def full(config):
        path = next(tmp_path.rglob("*.topics.sqlite"))
        raise StorageError(f"{path}: cannot write: database or disk is full")
        yield

    monkeypatch.setattr(topic_source, "topic_log", full)
    with served_topics(config, Turns(1, 1000)) as served:
        until(lambda: "is full" in served.progress().problem)
        name = config.pipeline.id
        assert served.progress().problem == f"the file of {name}: cannot write: database or disk is full"
        with pytest.raises(topic_source.NotNow) as told, served.reader():
            pass
    assert str(tmp_path) not in str(told.value)
    assert any(str(tmp_path) in line for line in caplog.messages)
