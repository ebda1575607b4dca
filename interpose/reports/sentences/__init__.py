"""Findings in sentences."""
