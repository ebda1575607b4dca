"""How the files of an experiment are packed, and how they are read."""
