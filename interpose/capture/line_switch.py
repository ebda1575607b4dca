"""The switch of line trace: the only Python code of a start that the program may call later (`trace_lines`)."""

import os


class Lines:
    """The switch of line trace; its imports are made when it is first switched on."""

    def __init__(self, wanted):
        from interpose.timing import shims

        self._unrecorded = shims.unrecorded
        self._choices = [(os.fsencode(module), os.fsencode(function)) for module, function in wanted.lines]
        self._how = (wanted.lines_depth, wanted.lines_system)

    def __call__(self, on, to):
        with self._unrecorded():  # an import of ours, and calibration
            from interpose.timing import lines

            if on and not lines.is_prepared():
                lines.begin(self._choices, *self._how)
        return lines.trace(on, os.fsencode(to))
