"""The forms of coverage: tables, annotated sources, pages, and the formats of other tools."""
