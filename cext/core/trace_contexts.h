/* The trace contexts that requests came with, and the spans that other tracers had active, by the call that serves the
   request: those in progress in memory, and each in the file `trace_contexts` once its call has ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/trace_context.h"
#include "core/visible.h"

struct thread;
struct carried;

/* Another recording begins, or that of a child: none has been read. */
void trace_contexts_begin(void);

/* The trace in which the program was started, as its environment has it, with its trace state; NULL: none. Without a
   state, not even an empty one, no request's is kept. Before the log is written. */
VISIBLE void trace_context_choose_outer(const struct trace_context *outer, const char *state);

/* Are trace states kept, to be passed on? */
VISIBLE bool trace_states_are_kept(void);

/* The log is written, so identities are known from here on: the founder tells its descendants the trace of all. */
void trace_contexts_identify(void);

/* The calling thread's call, in progress at `index` in its table, serves a request with that context and, unless it is
   NULL, trace state. One that a call around it has already is not kept twice. */
VISIBLE void trace_context_begin(struct thread *thread, uint32_t index, uint32_t call,
                                 const struct trace_context *context, const char *state);

/* Another tracer in the program, as the flags say, has this span active on the calling thread: it belongs to the
   outermost transaction in progress, unless that has one of that tracer. */
VISIBLE void trace_context_note_span(struct thread *thread, const struct trace_context *span);

/* A thread begins to record: it has none. */
void trace_contexts_forget(struct thread *thread);

/* What a request that the thread makes now is sent with: the trace that its transaction is in, or that of the
   experiment; as parent the innermost call in progress, but not one that only sends (trace_context_lasts); and the
   state that this trace came with, or NULL. False if the transaction is not sampled and came with nothing. */
VISIBLE bool trace_context_here(const struct thread *thread, struct trace_context *context, const char **state);

/* Calls of the intrinsic `sending` only send a request. Inside a call of `lasting`, which lasts until the answer, that
   call is the request's parent. */
VISIBLE void trace_context_lasts(uint32_t sending, uint32_t lasting);

/* The call ends, under that number: what it came with, and spans of other tracers, go into the file. */
VISIBLE void trace_context_end(struct thread *thread, uint32_t call, uint32_t number);
