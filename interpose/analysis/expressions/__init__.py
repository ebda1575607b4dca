"""Expressions over the fields of an event: `KIND == 'db' && WALL > 5ms && FNAME('orders.py') SOME IN STACK`."""
