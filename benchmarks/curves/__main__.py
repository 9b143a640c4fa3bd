"""`python -m benchmarks.curves`."""

from benchmarks.curves.cli import main

if __name__ == "__main__":
    main()
