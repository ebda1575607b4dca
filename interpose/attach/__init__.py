"""Reaching into a running Python program: what it is, where it can be interrupted, how to run code in it."""
