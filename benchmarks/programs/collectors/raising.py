"""Raises an error at every call."""

import interpose


@interpose.collector
def collect(area):
    raise KeyError
