"""Functions over recorded data: from events to sums, from sums to rows."""
