"""What line trace counted and timed."""
