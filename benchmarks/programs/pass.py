"""Does nothing: what it takes is the start and the end."""
