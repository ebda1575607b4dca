"""`interpose display`: commands in the manner of er_print."""
