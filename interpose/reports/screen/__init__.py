"""Views for people at a terminal."""
