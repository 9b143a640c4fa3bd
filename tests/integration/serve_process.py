"""`sfm-stream serve` in small steps, dying by SIGKILL in one of them: python serve_process.py CONFIG STEP

A step is a transaction of the copy, of some records. STEP: how many are committed before it dies, in the next one.
"""

from __future__ import annotations

import os
import signal
import sys

from sfm_stream.cli.main import main
from sfm_stream.serve import topic_copy
from sfm_stream.transport.files.topic_cache import TopicCache


def run(config: str, left: int) -> None:
    topic_copy._STEP_RECORDS = 7
    writing = TopicCache._writing

    def dying(cache: TopicCache):
        nonlocal left
        left -= 1
        return killed(writing(cache)) if left < 0 else writing(cache)

    TopicCache._writing = dying
    sys.argv = ["sfm-stream", "serve", config, "--listen", "127.0.0.1:0"]
    main()


class killed:
    """Dies when its rows are written and not committed."""

    def __init__(self, inner) -> None:
        self.inner = inner

    def __enter__(self):
        return self.inner.__enter__()

    def __exit__(self, *error):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]))
