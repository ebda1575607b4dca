"""The report as one HTML file that needs nothing else: no network, no server, no other file."""
