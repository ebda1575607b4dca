"""Transactions: where they begin and end, and how long users thought and programs took to answer."""
