"""The switch of line trace: the only Python code of a start that the program may call later (`trace_lines`)."""

import os


def switch_lines(wanted):
    """The switch, a function; its imports are made when it is first called."""
    from interpose.timing import shims

    unrecorded = shims.unrecorded
    choices = [(os.fsencode(module), os.fsencode(function)) for module, function in wanted.lines]
    how = (wanted.lines_depth, wanted.lines_system)

    def switch(on, to):
        with unrecorded():  # an import of ours, and calibration
            from interpose.timing import lines

            if on and not lines.is_prepared():
                lines.begin(choices, *how)
        return lines.trace(on, os.fsencode(to))

    return switch
