"""Reading as a reduction: a partial result for each experiment, and merging them in any order."""
