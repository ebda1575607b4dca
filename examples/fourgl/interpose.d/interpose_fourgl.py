"""Names what examples/fourgl/fourgl.py was running at each call: program, paragraph and statement of the language.

The interpreter tells in its list `running`, which this reads. What it does while no program runs is its own: that is in
the pseudo-section .FOURGL, so that the reports account for it.
"""

import sys

import interpose


@interpose.collector(programs=["fourgl*"], sections={"FOURGL": ["__main__"]})
def name_statement(area):
    running = getattr(sys.modules["__main__"], "running", None)
    area.identifier = "4GL 1.0"
    if not running:
        area.transaction = ".FOURGL"
        if area.module == "__main__":
            area.force("FOURGL")
        return
    here = running[-1]
    area.module = here.program
    area.section = here.paragraph or here.program
    area.statement = here.statement
    area.transaction = here.program
