"""The pytest plug-in: tests as transactions, limits of their calls."""
