"""Experiments in the formats of other tools."""
