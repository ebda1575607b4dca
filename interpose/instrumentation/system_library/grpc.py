"""gRPC: the RPCs that a server answers, by their names, those that a client makes, and how their threads wait."""

from interpose.library import Intrinsic, alike

CORE = "grpc._cython.cygrpc:"
# The tag has the name of a registered method; for other methods, the call itself has it.
RPC = {"detail": "word", "transaction": "is", "route": "call_details.method tag"}
OF_CALLABLE = {"detail": "url", "argument": None, "attribute": "_method"}
OF_CALL = {"detail": "url", "argument": None, "attribute": "_state.method"}
STREAM = ("grpc.Call.", "grpc._channel:_MultiThreadedRendezvous.")


def stepped(wrapped, instance, arguments, keywords):
    """A coroutine in Python around one of Cython's, whose steps cannot be seen."""
    return steps_of(wrapped(*arguments, **keywords))


async def steps_of(coroutine):
    return await coroutine


SERVER = [
    Intrinsic("grpc.Server.unary", "grpc._server:_unary_response_in_pool", "logic", **RPC),
    Intrinsic("grpc.Server.stream", "grpc._server:_stream_response_in_pool", "logic", **RPC),
    Intrinsic("grpc.Server.send", "grpc._server:_send_response", "net"),
    Intrinsic("grpc.Server.receive", "grpc._server:_RequestIterator._next", "idle"),
    Intrinsic("grpc.Server.wait_for_termination", "grpc._server:_Server.wait_for_termination", "idle"),
    Intrinsic("grpc.CompletionQueue.poll", f"{CORE}CompletionQueue.poll", "idle"),
]

CLIENT = [
    Intrinsic("grpc.UnaryUnary", "grpc._channel:_UnaryUnaryMultiCallable._blocking", "net", **OF_CALLABLE),
    Intrinsic("grpc.StreamUnary", "grpc._channel:_StreamUnaryMultiCallable._blocking", "net", **OF_CALLABLE),
    *alike(*STREAM, "_next result exception", "net", **OF_CALL),
    *alike(*STREAM, "code details initial_metadata trailing_metadata", "net", waits=True, **OF_CALL),
    Intrinsic("grpc.SingleThreadedCall.next", "grpc._channel:_SingleThreadedRendezvous._next", "net", **OF_CALL),
    Intrinsic("grpc.ChannelReady.result", "grpc._utilities:_ChannelReadyFuture.result", "net"),
    *alike("grpc.Channel.", f"{CORE}Channel.", "next_call_event watch_connectivity_state", "idle"),
]

ASYNCHRONOUS = [
    Intrinsic(
        "grpc.aio.Server", f"{CORE}_handle_rpc", "logic", detail="url", transaction="is", wrapper=stepped, raises=True
    ),
    Intrinsic("grpc.aio.CompletionQueue.poll", f"{CORE}PollerCompletionQueue._poll_wrapper", "idle"),
    Intrinsic("grpc.aio.UnaryUnary", "grpc.aio._call:UnaryUnaryCall._invoke", "net"),
    Intrinsic("grpc.aio.StreamUnary", "grpc.aio._call:StreamUnaryCall._conduct_rpc", "net"),
    Intrinsic("grpc.aio.Call.read", "grpc.aio._call:_StreamResponseMixin._read", "net"),
    *alike("grpc.aio.Call.", "grpc.aio._call:_StreamRequestMixin.", "_write _done_writing", "net"),
]

INTRINSICS = [*SERVER, *CLIENT, *ASYNCHRONOUS]
