"""What a process writes of itself at the beginning of log.xml, so that its experiment can be read anywhere."""

import os
import sys

OF_PROGRAMS = "import table"  # in what way calls of programs that are not Python are interposed
BY_KERNEL = "tracepoints"  # in what way system calls are recorded


def head(format_version, layout, *, version, settings, clock, cost, interposed, arguments, roots=(), redacted=str,
         interpreter=(), libraries=(), trace_parent=""):
    """The text of log.xml up to the process itself, which the recorder adds (a forked child has the same head).

    - `version`: that of interpose
    - `layout`: the text that interpose.timing.shims.layout returns
    - `clock`: kind, reason, cost of a reading in nanoseconds, and resolution in seconds
    - `cost`: what a recorded call costs, the part of that between its own clock readings, and from which duration on
      a wait for a lock is recorded, all in nanoseconds
    - `interposed`: how calls are interposed, and why
    - `arguments`: what is kept of the command line after the interpreter (None: the command is added later)
    - `roots`: the directories that the program imports from
    - `interpreter`: where a sampler finds what the threads run (interpose.timing.shims.interpreter_layout)
    - `libraries`: where code is that is not the program's own
    - `redacted`: returns the part of a text that may be written
    - `trace_parent`: the trace context in which the program was started, as text of version 00, or nothing
    """
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<experiment version="{format_version}">']
    python = ".".join(map(str, sys.version_info[:3]))
    made_by = {"version": version, "python": python, "implementation": sys.implementation.name}
    lines.append(element("collector", name="interpose", **made_by))
    lines.append(_system(redacted))
    lines.append(element("user", uid=os.getuid(), terminal=redacted(_terminal()), streams=_streams()))
    if trace_parent:
        lines.append(element("trace", parent=trace_parent))
    lines.append("  <settings>")
    lines += [f'    <setting name="{name}" value="{escape(redacted(value))}"/>' for name, value in settings.items()]
    lines.append("  </settings>")
    kind, why, read_ns, resolution_s = clock
    resolution_ns = max(1, round(resolution_s * 1e9))
    lines.append(element("clock", kind=kind, why=why, read_ns=read_ns, resolution_ns=resolution_ns))
    by, why = interposed
    lines.append(element("interposed", by=by, why=why))
    lines.append(element("cost", **cost))
    following = [] if arguments is None else [*_command(arguments, redacted)]
    following += [element("root", path=redacted(path)) for path in roots]
    if interpreter:
        following.append(element("interpreter", **interpreter))
        following += [element("library", path=redacted(path)) for path in libraries]
    # The layout is nine tenths of the text, and copied once.
    return "".join([*[f"{line}\n" for line in lines], layout, *[f"{line}\n" for line in following]])


def _system(redacted):
    system = os.uname()
    return element(
        "system",
        host=redacted(system.nodename),
        os=f"{system.sysname} {system.release}",
        arch=system.machine,
        page_bytes=os.sysconf("SC_PAGESIZE"),
        cpus=os.sysconf("SC_NPROCESSORS_ONLN"),
    )


def _terminal():
    """The terminal that one of the standard streams is; empty if none is."""
    for descriptor in (0, 1, 2):
        try:
            return os.ttyname(descriptor)
        except OSError:
            pass
    return ""


def _streams():
    """Which of the standard streams are terminals: numbers with spaces between them."""
    return " ".join([str(descriptor) for descriptor in (0, 1, 2) if os.isatty(descriptor)])


def _command(arguments, redacted):
    try:
        directory = os.getcwd()
    except OSError:
        directory = ""
    yield opening("command", executable=redacted(sys.executable or ""), cwd=redacted(directory))
    for argument in arguments:
        yield f"    <argument>{escape(redacted(argument))}</argument>"
    yield "  </command>"


def escape(text):
    """Text as it may stand in XML: markup escaped, what XML has no place for replaced."""
    plain = text.isalnum() or (text.isprintable() and not ("&" in text or "<" in text or ">" in text or '"' in text))
    if plain and text.isascii():
        return text
    text = text.encode("utf-8", "replace").decode("utf-8")
    for character, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, written)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in " \u3000" else "?" for c in text)


def _attributes(attributes):
    return "".join([f' {name}="{escape(str(value))}"' for name, value in attributes.items()])


def element(tag, depth=1, /, **attributes):
    return f"{'  ' * depth}<{tag}{_attributes(attributes)}/>"


def opening(tag, depth=1, /, **attributes):
    return f"{'  ' * depth}<{tag}{_attributes(attributes)}>"
