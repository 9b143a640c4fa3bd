"""Windows of one partition: which of them a record belongs to, and what open ones hold (SECRET, in memory only)."""
