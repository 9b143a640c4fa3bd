"""Open windows of one partition: SECRET, in memory only."""
