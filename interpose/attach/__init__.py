"""Reaching into a Python program that runs already: what it is, where it may be interrupted, how code runs in it."""
