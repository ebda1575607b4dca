"""Names the programs that examples/loader/loader.py loads: which of them each call was made from, and whose turn it is.

To Python a library is one file. The loader knows where in it each program begins and how many lines it has; that is
what is claimed, and interpose verifies that the line of the call is among them.
"""

import sys

import interpose


@interpose.collector(programs=["loader*"], sections={"LOADER": ["__main__", "argparse"]})
def name_program(area):
    loader = sys.modules["__main__"]
    area.identifier = "batch library"
    if area.file != getattr(loader, "library", ""):
        return
    for program in loader.loaded.values():
        if program.first <= area.line < program.first + program.lines:
            area.module, area.base, area.size = program.name, program.first, program.lines
            area.statement = area.line - program.first
            area.transaction = program.name
            return
