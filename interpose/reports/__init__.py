"""Reports: rows and columns to text, one module a format. Nothing here prints."""
