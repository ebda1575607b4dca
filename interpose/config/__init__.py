"""What the user sets: the entries, what their texts mean, which of them are in force, and how they are documented."""
