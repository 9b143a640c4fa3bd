"""Composition roots: the only modules that choose a transport, a clock and coins, and give them to the workers.

Every other module takes what it needs as arguments. A command of `cli/` calls one of these roots and nothing deeper.

    files               both workers of `run`, over one input file and one output file
    run_to_end          drives them until the input has ended
    kafka               the workers of `ingest`, `publish`, `rollup` and `repartition` on a cluster
    kafka_first_start   the first positions of an epoch on a cluster
    published           a reader of what was published, in a file or on a cluster
    sample              what extraction makes of some records, for `check`

The others hold what a root has to check before it composes: file_epochs and epochs (no release is drawn twice),
kafka_topics and kafka_first_offsets. stop_signal is how a signal ends a worker.
"""
