"""Composition roots: the only modules that choose a transport, a clock and coins, and give them to the workers.

Every other module takes what it needs as arguments. A command of `cli/` calls one of these roots and nothing deeper.

    files               both workers of `run`, over one input file and one output file
    run_to_end          drives them until the input has ended
    kafka               the workers of `ingest`, `publish`, `rollup` and `repartition` on a cluster
    kafka_first_start   the first positions of an epoch on a cluster
    published           a reader of what was published, in a file or on a cluster
    sample              what extraction makes of some records, for `check`; kafka_sample takes them from a topic

The others are parts of a root. What it checks before it composes: epochs with file_epochs and kafka_epochs (nothing is
released twice), kafka_topics, kafka_first_checks and kafka_first_offsets. What it opens: kafka_cluster (the client),
kafka_service (a worker with its transport). kafka_names has the names of topics and groups, stop_signal is how a signal
ends a worker.
"""
