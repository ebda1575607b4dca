"""What `interpose run` does while its program runs."""
