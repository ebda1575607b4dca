"""Tables: one module a subject."""
