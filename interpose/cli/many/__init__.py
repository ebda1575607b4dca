"""Many experiments: read by several processes, from remote places, and from results that are kept."""
