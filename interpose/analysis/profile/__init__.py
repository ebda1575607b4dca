"""The sampled profile: which functions and lines used the time between recorded calls."""
