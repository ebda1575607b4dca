"""The clocks and the shims' bodies, as Python sees them."""
