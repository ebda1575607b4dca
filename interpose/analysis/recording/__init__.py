"""The recording itself: its processes, how they ended, what it lost, and what it reveals."""
