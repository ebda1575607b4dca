"""Two sets of runs beside each other: what of the difference is more than chance."""
