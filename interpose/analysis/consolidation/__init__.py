"""Like events combined into one record with a count, and merged over processes."""
