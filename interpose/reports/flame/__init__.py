"""Flame graphs: a drawing, a page to look at it closely, and folded stacks for other tools."""
