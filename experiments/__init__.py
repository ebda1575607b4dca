"""What lies in an experiment directory, and how it is read."""
