"""OpenTelemetry as a service has it, with an exporter that discards everything."""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult


class Nowhere(SpanExporter):
    def export(self, spans):
        return SpanExportResult.SUCCESS


def trace_to_nowhere() -> None:
    trace.set_tracer_provider(TracerProvider())
    trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(Nowhere()))
