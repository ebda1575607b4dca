"""The library in plain C that holds a process's recording state, and its headers."""
