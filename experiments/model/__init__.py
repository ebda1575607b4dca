"""An experiment as a whole: processes, sources, files."""
