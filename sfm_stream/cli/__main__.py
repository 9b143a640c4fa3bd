"""`python -m sfm_stream.cli`: the command without an installed script."""

from sfm_stream.cli.main import main

main()
