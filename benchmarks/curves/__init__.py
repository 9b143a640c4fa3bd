"""How cost and memory grow: `python -m benchmarks.curves` (docs/performance.md)."""
