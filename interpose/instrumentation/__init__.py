"""What is interposed: libraries, their search order, and what an interpreter would get of them."""
