"""What an experiment says of itself, and what its users say of it: documents."""
