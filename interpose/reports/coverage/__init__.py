"""What coverage is told as: tables, annotated sources, pages, and the formats that other tools read."""
