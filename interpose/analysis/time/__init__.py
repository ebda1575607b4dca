"""An experiment along time: slices, usage samples, lifetimes, what ran at once."""
