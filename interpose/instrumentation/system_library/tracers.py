"""Other tracers in the program: where a span of theirs begins, so that a transaction knows which ones are its own.

None of this is a call: the active span is read afterwards.
"""

from interpose.library import Intrinsic

INTRINSICS = [
    Intrinsic(
        "opentelemetry.context.ContextVarsRuntimeContext.attach",
        "opentelemetry.context.contextvars_context:ContextVarsRuntimeContext.attach",
        "logic",
        effect="span",
    ),
    Intrinsic(
        "ddtrace.trace.Tracer.start_span",
        "ddtrace._trace.tracer:Tracer.start_span",
        "logic",
        effect="span",
    ),
]
