"""The tabs of the view, one module for each."""
