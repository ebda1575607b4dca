"""Looks, and leaves."""

import interpose


@interpose.collector
def collect(area):
    pass
