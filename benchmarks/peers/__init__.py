"""sfm-stream beside what one would take instead, on one broker: `python -m benchmarks.peers` (docs/performance.md)."""

import sys
from pathlib import Path

# The broker is started as the tests start theirs, by the modules below tests/support.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
