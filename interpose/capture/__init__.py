"""What runs in the traced program: the beginning and the end of a recording."""
