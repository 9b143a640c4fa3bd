"""The `sfm-stream` command in a process that has loaded all commands before it is told which one (support/forks.py)."""

from __future__ import annotations

import sys

from support.forks import arguments_of_this_fork

from sfm_stream.cli.commands import COMMANDS, imported
from sfm_stream.cli.main import main

if __name__ == "__main__":
    for name in COMMANDS:
        imported(name)
    sys.argv = ["sfm-stream", *arguments_of_this_fork()]
    main()
