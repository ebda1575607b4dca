"""Tables as text, CSV, JSON, Markdown, and what they share."""
