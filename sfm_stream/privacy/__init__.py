"""Everything that makes a release private: coins, the flip, key selection, the budget."""
