"""Statement coverage: which statements of a program ran, by what was recorded and by its sources."""
