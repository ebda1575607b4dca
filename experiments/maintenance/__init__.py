"""What changes experiments: copying, packing, repairing, draining."""
