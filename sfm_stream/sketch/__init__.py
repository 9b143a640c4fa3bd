"""Sketches as arrays: no I/O, clock, entropy or configuration below this package."""
