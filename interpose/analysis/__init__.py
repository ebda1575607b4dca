"""Functions over what was recorded: events to sums, sums to rows."""
