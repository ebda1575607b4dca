"""The vocabularies of older systems: the Natural Profiler, GT.M's line trace, MASHZONE."""
