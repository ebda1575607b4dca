"""Statement coverage: which statements of a program ran, from the recording and the sources."""
