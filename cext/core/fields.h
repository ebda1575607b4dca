/* The records of an experiment, field by field, with their meanings.

   These lists are the only description of a record. The structures below, the description in each experiment's
   log.xml, and through it both readers, are made from them. A new field is one line here and the next
   FORMAT_VERSION. The order of fields leaves no holes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"

#define FORMAT_VERSION 4

/* One call of an intrinsic; appended when the call has ended. */
#define EVENT_FIELDS(X) \
    X(uint64_t, start_ns,      "monotonic time when the call began") \
    X(uint64_t, start_cpu_ns,  "CPU time of the calling thread when the call began") \
    X(uint64_t, wall_ns,       "wall time from beginning to end; the sum for combined fetches") \
    X(uint64_t, cpu_ns,        "CPU time of the calling thread in that time") \
    X(uint64_t, inner_wall_ns, "wall time of the recorded calls inside this one, and of interpose's work by itself; " \
                               "for an await also its suspension") \
    X(uint64_t, inner_cpu_ns,  "CPU time of the recorded calls inside this one") \
    X(uint64_t, bytes,         "bytes moved, or rows if map.xml says so; 0 if unknown") \
    X(uint32_t, thread,        "calling thread, a number in threads") \
    X(uint32_t, call,          "number of the call within its thread, from 1") \
    X(uint32_t, parent,        "number of the call around this one, or 0") \
    X(uint32_t, intrinsic,     "intrinsic, a number in map.xml") \
    X(uint32_t, stack,         "call stack, a number in stacks, or 0") \
    X(uint32_t, detail,        "normalised statement, path or address, a number in strings, or 0") \
    X(uint32_t, error,         "error that the call raised, a number in strings, or 0") \
    X(uint32_t, task,          "asynchronous task, or 0")

/* The head of a block of events. A block has one writer at a time. */
#define BLOCK_FIELDS(X) \
    X(uint32_t, magic,    "0x4b4c4249, the letters IBLK; anything else is not a block") \
    X(uint32_t, state,    "1 being written, 2 full, 3 left by a thread that ended") \
    X(uint32_t, used,     "whole events in the block") \
    X(uint32_t, thread,   "thread that writes or wrote last") \
    X(uint64_t, sequence, "order in which blocks were begun, from 1; each is in the file once, or is being copied") \
    X(uint64_t, first_ns, "earliest beginning of an event in the block") \
    X(uint64_t, last_ns,  "latest end of an event in the block") \
    X(uint64_t, dropped,  "events that its thread had dropped when it began the block") \
    X(uint64_t, recorded, "events that its thread had recorded then") \
    X(uint64_t, before_wall_ns, "wall time of its thread until then, without the calls then in progress") \
    X(uint64_t, before_cpu_ns,  "CPU time in the same way") \
    X(uint64_t, own_wall_ns,    "wall time that recording had cost until then") \
    X(uint64_t, own_cpu_ns,     "CPU time in the same way") \
    X(uint64_t, spare_1,  "0") \
    X(uint64_t, spare_2,  "0") \
    X(uint64_t, spare_3,  "0") \
    X(uint64_t, spare_4,  "0") \
    X(uint64_t, spare_5,  "0") \
    X(uint64_t, spare_6,  "0") \
    X(uint64_t, spare_7,  "0") \
    X(uint64_t, spare_8,  "0")

/* The head of a compressed block; a frame of zstandard follows it, and zeros up to the next multiple of eight. */
#define COMPRESSED_FIELDS(X) \
    X(uint32_t, magic,         "0x4b425a49, the letters IZBK") \
    X(uint32_t, transform,     "how the frame holds the events: 0 unchanged, 1 by columns and planes") \
    X(uint32_t, stored_bytes,  "length of the frame") \
    X(uint32_t, raw_bytes,     "length of the events") \
    X(uint32_t, used,          "whole events in the block") \
    X(uint32_t, thread,        "thread that wrote last into the block") \
    X(uint64_t, sequence,      "the block's sequence in events; each is there once") \
    X(uint64_t, first_ns,      "earliest beginning of an event in the block") \
    X(uint64_t, last_ns,       "latest end of an event in the block") \
    X(uint64_t, dropped,       "events that its thread had dropped when the block was begun") \
    X(uint32_t, checksum,      "CRC-32 of the frame") \
    X(uint32_t, head_checksum, "CRC-32 of the fields above")

/* The head of every other file of data. */
#define HEAD_FIELDS(X) \
    X(uint64_t, magic,        "0x45534f5052544e49, the letters INTRPOSE") \
    X(uint32_t, version,      "version of the format") \
    X(uint32_t, head_bytes,   "where the first record begins") \
    X(uint32_t, record_bytes, "size of a record; 0 if each has its own length") \
    X(uint32_t, first,        "number of the first record; lower numbers are those of the process that forked") \
    X(uint32_t, window_bytes, "no record crosses a multiple of this many bytes") \
    X(uint32_t, forks,        "forked processes so far (in threads)") \
    X(uint64_t, lost,         "calls of threads without a record (in threads); pieces without room (in dialogue); " \
                              "details that became (other) (in strings); samples with an unreadable stack (in samples)") \
    X(uint64_t, unrecorded,   "forked processes without a subexperiment, because none could be made (in threads); " \
                              "the error number if the process could not be sampled (in samples)") \
    X(uint64_t, overwritten,  "events that newer ones have replaced in the ring (in threads)") \
    X(uint64_t, taken_bytes,  "full blocks of events for which the process took room in the pool (in threads)")

/* The control page, after the head of `threads`: what a process and others exchange. The founder's serves the whole
   experiment, and every process of it maps it. Each field has one writer: the recorders (which add), or the outside (a
   monitor, `interpose run`, a command). */
#define CONTROL_FIELDS(X) \
    X(uint64_t, pool_bytes,         "disk space for events at a time; 0 without limit") \
    X(uint64_t, limit_bytes,        "events to record in total, by size before compression; 0 without limit") \
    X(uint64_t, taken_bytes,        "room that all processes took for blocks of events so far; added before one is appended") \
    X(uint64_t, drained_bytes,      "the part that the monitor gave back after compressing; added after the space is free") \
    X(uint64_t, full_waits,         "steps of waiting because the pool was full") \
    X(uint64_t, full_wait_ns,       "time waited for that") \
    X(uint64_t, full_drops,         "events dropped because the pool, or the limit, was full") \
    X(uint64_t, emptied_after_full, "how often the monitor emptied a full pool") \
    X(uint64_t, monitor_ns,         "monotonic time of the monitor's last sign of life; written by it") \
    X(uint32_t, paused,             "1 during a pause; written from outside, and by the program") \
    X(uint32_t, samples_wanted,     "samples of the overview requested so far; written from outside") \
    X(uint64_t, trigger_ns,         "monotonic time when a trigger fired last") \
    X(uint32_t, triggers,           "times a trigger fired") \
    X(uint32_t, trigger_process,    "process in which it fired last") \
    X(uint32_t, monitor,            "the monitor's process, or 0; written by it") \
    X(uint32_t, filter_changes,     "how often the file `filter` was written; counted from outside, and by the founder") \
    X(uint64_t, most_bytes,         "peak of the pool: taken and not given back") \
    X(uint64_t, filter_passed,      "calls that a filter with `skip` or `keep` has counted so far") \
    X(uint64_t, reserve_bytes,      "disk space to leave free; 0: none") \
    X(uint64_t, other_bytes,        "size of files other than events, beyond the first 64 KiB of each") \
    X(uint64_t, trace_high,         "first half of the identity of the experiment's trace (W3C Trace Context)") \
    X(uint64_t, trace_low,          "the other half")

/* A place in the program's code. */
#define SITE_FIELDS(X) \
    X(uint32_t, file,        "file name of the code object, a number in strings") \
    X(uint32_t, function,    "qualified name of the function, a number in strings") \
    X(uint32_t, line,        "line number, 0 if unknown") \
    X(uint32_t, instruction, "offset of the instruction in its code, in bytes") \
    X(uint32_t, first_line,  "line where the function's code begins") \
    X(uint32_t, own,         "1 the program's own code, 0 standard library or an installed package") \
    X(uint32_t, collector,   "the data collector that named it, a number in strings, or 0; if not 0, `file` is the " \
                             "module, `function` the section, `line` the statement") \
    X(uint32_t, interpreter, "number of the interpreter that ran the code; 0 the main one")

/* A site and the stack that it was called from: a tree, shared from the outside in. */
#define STACK_FIELDS(X) \
    X(uint32_t, site,  "innermost site, a number in sites") \
    X(uint32_t, outer, "stack of its caller, a lower number in stacks, or 0 at the end") \
    X(uint32_t, cut,   "1 if callers were left out") \
    X(uint32_t, spare, "0")

/* A call in progress. */
#define OPEN_FIELDS(X) \
    X(uint64_t, start_ns,      "monotonic time when the call began") \
    X(uint64_t, start_cpu_ns,  "the thread's CPU time when it began") \
    X(uint64_t, inner_wall_ns, "wall time of the recorded calls made inside it so far") \
    X(uint64_t, inner_cpu_ns,  "CPU time of the recorded calls made inside it so far") \
    X(uint32_t, call,          "number of the call within its thread; 0 when it has ended") \
    X(uint32_t, intrinsic,     "what was called, a number in map.xml") \
    X(uint32_t, stack,         "where from, a number in stacks, or 0") \
    X(uint32_t, detail,        "normalised statement, path or address, a number in strings, or 0")

/* A thread. Its table of calls in progress follows these fields. */
#define THREAD_FIELDS(X) \
    X(uint64_t, start_ns,     "monotonic time when the thread was first seen; 0 in an unused record") \
    X(uint64_t, end_ns,       "monotonic time when it ended; 0 while it runs, or when the process was killed") \
    X(uint64_t, start_cpu_ns, "its CPU time when first seen") \
    X(uint64_t, end_cpu_ns,   "its CPU time when it ended; until then at its last synchronisation") \
    X(uint64_t, seen_ns,      "monotonic time of the last synchronisation of its clock") \
    X(uint64_t, made,         "calls begun") \
    X(uint64_t, recorded,     "events in blocks") \
    X(uint64_t, dropped,      "events for which there was no room") \
    X(uint64_t, own_wall_ns,  "wall time of recording: measured, and calibrated for details, besides the calibrated cost of calls") \
    X(uint64_t, own_cpu_ns,   "CPU time in the same way") \
    X(uint64_t, syncs,        "synchronisations of the clock with the kernel's") \
    X(uint64_t, behind_ns,    "sum of the amounts by which synchronisations were behind the previous reading") \
    X(uint64_t, ident,        "the thread's identity, as from threading.get_ident") \
    X(uint32_t, tid,          "the kernel's number of the thread") \
    X(uint32_t, main,         "1 for the thread that began the process") \
    X(uint32_t, depth,        "calls in progress") \
    X(uint32_t, clock,        "clock that it used last: 1 rseq, 2 perf, 3 syscall, 4 tsc") \
    X(uint64_t, passed,       "calls of sync intrinsics that did not wait, or waited below the threshold: " \
                              "counted, not recorded") \
    X(uint64_t, run_delay_ns, "time it was runnable and waited for a processor since start_ns, when last read; 0 " \
                              "if the kernel does not say") \
    X(uint64_t, gathered,     "fetches of rows that were added to an earlier event, and calls that were not sampled: " \
                              "not recorded") \
    X(uint64_t, inside_wall_ns, "the part of own_wall_ns that is in the self times of surrounding calls") \
    X(uint64_t, inside_cpu_ns,  "the part of own_cpu_ns that is in the self times of surrounding calls") \
    X(uint32_t, name,         "its name in threading, a number in strings, or 0") \
    X(uint32_t, greenlet,     "task of the running greenlet, or 0") \
    X(uint32_t, lock_wait,    "number of the recorded wait for the interpreter lock that the thread is in, or 0") \
    X(uint32_t, spare,        "0")

/* A sample of what the process has used (getrusage(2)): at its beginning, at its end, and in between with the first
   event that ends after each second, or as INTERPOSE_SAMPLE says. */
#define OVERVIEW_FIELDS(X) \
    X(uint64_t, time_ns,              "monotonic time of the sample; 0 in an unused record") \
    X(uint64_t, cpu_ns,               "CPU time of the whole process") \
    X(uint64_t, user_ns,              "the part in user mode, as the kernel divides it") \
    X(uint64_t, system_ns,            "the part in the kernel") \
    X(uint64_t, max_rss_bytes,        "largest resident size so far") \
    X(uint64_t, minor_faults,         "page faults without input") \
    X(uint64_t, major_faults,         "page faults with input") \
    X(uint64_t, in_blocks,            "blocks of 512 bytes read from devices") \
    X(uint64_t, out_blocks,           "blocks of 512 bytes written to devices") \
    X(uint64_t, voluntary_switches,   "how often a thread gave up the processor") \
    X(uint64_t, involuntary_switches, "how often it was taken from a thread") \
    X(uint32_t, kind,                 "1 beginning, 2 in between, 3 end, 4 recording stopped") \
    X(int32_t,  status,               "at the end: exit status; when recording stopped: the error number") \
    X(uint64_t, run_delay_ns,         "time its recorded threads were runnable and waited for a processor, when " \
                                      "last read for each") \
    X(uint64_t, every_ns,             "interval to the next one; 0 if there was none, or if unknown") \
    X(uint64_t, spare_3,              "0") \
    X(uint64_t, spare_4,              "0")

#define COUNT_FIELDS(X) \
    X(uint64_t, counted, "untimed calls of the intrinsic with the record's number")

/* A task that had a name when it was numbered; of many, the newest. */
#define TASK_FIELDS(X) \
    X(uint32_t, number, "the task's number; 0 in an unused record") \
    X(uint32_t, name,   "its name, from the program or else its coroutine, a number in strings") \
    X(uint32_t, thread, "thread that ran it when it got its number, a number in threads") \
    X(uint32_t, spare,  "0")

/* The trace context that a request came with (W3C Trace Context), or the span that another tracer had active in it. */
#define CONTEXT_FIELDS(X) \
    X(uint64_t, trace_high, "first half of the identity of its trace; the first hexadecimal digit is the highest") \
    X(uint64_t, trace_low,  "the other half") \
    X(uint64_t, parent,     "identity of the span that made the request, or of the other tracer's span") \
    X(uint64_t, time_ns,    "monotonic time when the call that served it ended") \
    X(uint32_t, thread,     "thread that served it, a number in threads") \
    X(uint32_t, call,       "call that served it; 0 in an unused record") \
    X(uint32_t, flags,      "flags of the context: 1 the request is sampled; 256 a span of OpenTelemetry, 512 of ddtrace") \
    X(uint32_t, spare_1,    "0") \
    X(uint64_t, spare_2,    "0") \
    X(uint64_t, spare_3,    "0")

/* An attempt to start a process. */
#define CHILD_FIELDS(X) \
    X(uint64_t, start_ns, "monotonic time when the call that started it began; 0 in an unused record") \
    X(uint64_t, end_ns,   "monotonic time when a wait for it saw its end; 0 if none did") \
    X(uint32_t, pid,      "process number; for an exec its own; 0 if unknown or if there is none") \
    X(uint32_t, how,      "1 fork, 2 exec, 3 spawn (fork and exec in one), 4 by the C library (os.system)") \
    X(int32_t,  status,   "once its end was seen: its status, as from waitpid(2)") \
    X(uint32_t, error,    "error number of a failed attempt (22 without a system call); else 0") \
    X(uint32_t, command,  "path of the program, a number in strings; 0 for a fork, or if unknown") \
    X(uint32_t, why,      "why it cannot be followed, a number in strings; 0: it can") \
    X(uint32_t, thread,   "thread that started it, a number in threads") \
    X(uint32_t, number,   "for a fork its number in the lineage (3 for _f3); else 0") \
    X(uint64_t, cpu_ns,   "once its end was seen: CPU time, including children that it waited for") \
    X(uint32_t, stack,    "stack from which it was started, a number in stacks; 0 if unknown") \
    X(uint32_t, memory_kib, "its peak of resident memory; with usage 2 only if no earlier child had as much, else 0") \
    X(uint64_t, system_ns, "the part of cpu_ns in the kernel") \
    X(uint64_t, minor_faults, "page faults without a disk") \
    X(uint64_t, major_faults, "page faults that read from a disk") \
    X(uint64_t, in_blocks, "blocks of 512 bytes read from a disk") \
    X(uint64_t, out_blocks, "blocks of 512 bytes written to a disk") \
    X(uint64_t, voluntary_switches, "thread switches because it waited") \
    X(uint64_t, involuntary_switches, "thread switches while it could have run on") \
    X(uint32_t, usage, "meaning of cpu_ns and similar fields: 1 the kernel's figures for this child; 2 the growth of its " \
                       "figures for all children during the wait for this one; 0 unknown") \
    X(uint32_t, starter_memory_kib, "its starter's peak of resident memory, which the kernel counts as the child's until that " \
                                    "runs its program: memory_kib is exact if it is more, else an upper limit")

/* A period of line trace, or several with the same target: what applies to all of it. Times of lines are in ticks,
   with the length that this record gives. */
#define TRACE_FIELDS(X) \
    X(uint64_t, start_ns,           "monotonic time when it was first switched on; 0 in an unused record") \
    X(uint64_t, end_ns,             "monotonic time when it was last switched off; 0 while it is on") \
    X(uint64_t, start_ticks,        "ticks at start_ns") \
    X(uint64_t, last_ns,            "monotonic time when the ticks were last read") \
    X(uint64_t, last_ticks,         "ticks at last_ns") \
    X(uint64_t, on_ns,              "wall time while it was on, for periods that have ended") \
    X(uint64_t, user_ns,            "CPU time of the process in user mode in that time") \
    X(uint64_t, system_ns,          "CPU time of the process in the kernel in that time") \
    X(uint64_t, children_user_ns,   "user time of children waited for in that time") \
    X(uint64_t, children_system_ns, "time in the kernel of children waited for in that time") \
    X(uint64_t, beyond,             "calls that were nested too deep to be recorded") \
    X(uint64_t, left_out,           "functions without room") \
    X(uint64_t, speeds_ticks,       "total time of a fixed computation, repeated while lines were traced") \
    X(uint32_t, speeds,             "how often the fixed computation was repeated") \
    X(uint32_t, speed_ticks,        "its time when the costs of events were calibrated") \
    X(uint32_t, target,             "the requested global to store it in, a number in strings, or 0") \
    X(uint32_t, depth,              "greatest depth of recorded calls") \
    X(uint32_t, stretches,          "how often it was switched on") \
    X(uint32_t, system,             "1 if the time in the kernel was requested for each line")

/* A function as one thread, or one asynchronous task of it, ran it; its lines follow one another in `lines`. */
#define FUNCTION_FIELDS(X) \
    X(uint64_t, calls,      "how often it began while it was traced") \
    X(int64_t,  ticks,      "time between beginning and end, with called functions; recursion counts once. " \
                            "Outside of functions: the thread's whole time") \
    X(int64_t,  off_ticks,  "the part without a processor") \
    X(int64_t,  own_ticks,  "outside of functions: the part of the thread's whole time that recording took") \
    X(uint32_t, kind,       "1 a function, 2 everything outside of traced functions; 0 in an unused record") \
    X(uint32_t, trace,      "the period of line trace, a number in traces") \
    X(uint32_t, thread,     "thread, a number in threads; 0: threads without a record of their own") \
    X(uint32_t, task,       "asynchronous task, or 0") \
    X(uint32_t, file,       "file name of the code object, a number in strings") \
    X(uint32_t, function,   "its qualified name, a number in strings") \
    X(uint32_t, module,     "the module of its globals, a number in strings, or 0") \
    X(uint32_t, first_line, "line where its code begins") \
    X(uint32_t, own,        "1 the program's own code, 0 standard library or an installed package") \
    X(uint32_t, first_spot, "its first record in lines: the time before its first line") \
    X(uint32_t, spots,      "how many there are") \
    X(uint32_t, spare_1,    "0") \
    X(int64_t,  event_ticks, "calibrated cost of events, subtracted from ticks; outside of functions: added to own_ticks") \
    X(uint64_t, spare_3,    "0") \
    X(uint64_t, spare_4,    "0") \
    X(uint64_t, spare_5,    "0") \
    X(uint64_t, spare_6,    "0") \
    X(uint64_t, spare_7,    "0")

/* A line of a function, or one of several positions in it. */
#define LINE_FIELDS(X) \
    X(uint64_t, executed,        "how often the interpreter reached it (line events, and jumps back to the line itself)") \
    X(int64_t,  ticks,           "time in it without traced functions called from it, less the calibrated cost of recording: " \
                                 "may be negative for a very short line") \
    X(uint64_t, back,            "the part of executed by a loop's jump back, or without leaving the line") \
    X(int64_t,  off_ticks,       "the part of ticks without a processor") \
    X(int64_t,  event_ticks,     "calibrated cost of events, subtracted from ticks") \
    X(uint32_t, function,        "function, a number in functions; 0 in an unused record") \
    X(uint32_t, line,            "line number, 0 if unknown") \
    X(uint64_t, system_ns,       "CPU time in the kernel, if requested") \
    X(uint64_t, spare_1,         "0") \
    X(int64_t,  inner_ticks,     "time of traced functions called from it, without this line's own time in them") \
    X(int64_t,  inner_off_ticks, "the part without a processor") \
    X(int64_t,  inner_event_ticks, "calibrated cost of events, subtracted from inner_ticks") \
    X(uint64_t, spare_2,         "0") \
    X(uint64_t, spare_3,         "0") \
    X(uint64_t, spare_4,         "0") \
    X(uint64_t, spare_5,         "0") \
    X(uint64_t, spare_6,         "0")

/* A loop of a function. */
#define LOOP_FIELDS(X) \
    X(uint64_t, passes,   "entries into its body that no line counts") \
    X(uint32_t, function, "function, a number in functions; 0 in an unused record") \
    X(uint32_t, line,     "line of the loop") \
    X(uint32_t, level,    "1 for the outermost loop of its code on that line, 2 for one inside of it") \
    X(uint32_t, spot,     "the line that also counts entries into its body, a number in lines, or 0") \
    X(uint32_t, by_back,  "1 if that line's back counts them, 0 if executed less back does") \
    X(uint32_t, spare,    "0")

/* A code object under statement coverage, in one context; its places and branches follow one another in their files. */
#define COVERED_FIELDS(X) \
    X(uint32_t, kind,         "1 a code object, 2 the number of code objects without room (in `places`); 0 in an unused record") \
    X(uint32_t, file,         "file name of the code object, a number in strings") \
    X(uint32_t, function,     "its qualified name, a number in strings") \
    X(uint32_t, module,       "the module of its globals, a number in strings, or 0") \
    X(uint32_t, first_line,   "line where its code begins") \
    X(uint32_t, own,          "1 the program's own code, 0 standard library or an installed package") \
    X(uint32_t, context,      "context (a transaction, a test), a number in strings, or 0") \
    X(uint32_t, first_place,  "the first of its places, a number in places") \
    X(uint32_t, places,       "how many there are") \
    X(uint32_t, first_branch, "the first of its branches, a number in branches, or 0") \
    X(uint32_t, branches,     "how many there are") \
    X(uint32_t, has_columns,  "0 if the code was compiled without columns (-X no_debug_ranges)") \
    X(uint64_t, start_ns,     "monotonic time when it first ran") \
    X(uint64_t, spare,        "0")

/* A place of a code object: a run of instructions of one line, or a part of it that may be run without the rest. */
#define PLACE_FIELDS(X) \
    X(uint32_t, code,     "code object, a number in covered; 0 in an unused record") \
    X(uint32_t, line,     "line number") \
    X(uint32_t, column,   "where it begins in the line, in bytes of UTF-8, from 1; 0 if unknown") \
    X(uint32_t, executed, "1 once it was reached")

/* A conditional jump from one place to two others. */
#define BRANCH_FIELDS(X) \
    X(uint32_t, code,       "code object, a number in covered; 0 in an unused record") \
    X(uint32_t, origin,     "the place that contains it, a number in places") \
    X(uint32_t, next,       "the place that follows, a number in places; 0 where the code ends instead") \
    X(uint32_t, other,      "the target of the jump, a number in places; 0 where the code ends instead") \
    X(uint32_t, went_next,  "1 once it continued to the following place") \
    X(uint32_t, went_other, "1 once it jumped") \
    X(uint32_t, spare_1,    "0") \
    X(uint32_t, spare_2,    "0")

/* One or more samples of a thread. The program takes no part: the monitor reads them from outside. Times are sums
   since the thread began, as counted by the kernel. */
#define SAMPLE_FIELDS(X) \
    X(uint64_t, time_ns,      "monotonic time of the sample; 0 in an unused record") \
    X(uint64_t, last_ns,      "monotonic time of the last of several equal samples in a row") \
    X(uint64_t, cpu_ns,       "CPU time of the thread at last_ns") \
    X(uint64_t, run_delay_ns, "time until last_ns during which it was runnable and waited for a processor") \
    X(uint32_t, tid,          "the kernel's number of the thread") \
    X(uint32_t, thread,       "a number in threads, or 0 if it had not recorded anything yet") \
    X(uint32_t, samples,      "number of samples") \
    X(uint32_t, state,        "1 it ran; 2 it waited; 3 it was ready to run, without a processor; 4 it did not wait: the recorder began a call") \
    X(uint32_t, call,         "number of the innermost recorded call in progress, or 0") \
    X(uint32_t, intrinsic,    "its intrinsic, a number in map.xml, or 0") \
    X(uint32_t, stack,        "its Python code, a number in sampled_stacks; 0 if it ran none, 4294967295 if it could not be " \
                              "read, because it changed meanwhile") \
    X(uint32_t, task,         "name of the running asynchronous task or greenlet, a number in sampled_strings, or 0")

/* The process's memory, seen from outside: when its size had changed by a megabyte and by a sixty-fourth. */
#define MEMORY_FIELDS(X) \
    X(uint64_t, time_ns,        "monotonic time; 0 in an unused record") \
    X(uint64_t, resident_bytes, "resident memory") \
    X(uint64_t, limit_bytes,    "its limit, from its control group or the machine's memory; 0 if unknown") \
    X(uint32_t, thread,         "the thread that used the most CPU time since the previous record, a number in threads; 0: none") \
    X(uint32_t, stack,          "its Python code, a number in sampled_stacks; 0 if it ran none, 4294967295 if it could not be read")

/* What was counted of a thread besides its time (INTERPOSE_COUNTERS), from outside: up to a sample, since the one before. */
#define SAMPLED_COUNT_FIELDS(X) \
    X(uint64_t, counted, "how much was counted; if `kind` is 3, the error number") \
    X(uint32_t, kind,    "1 counted; 2 counted in user mode only; 3 not counted; 0 in an unused record") \
    X(uint32_t, counter, "the counter's place in INTERPOSE_COUNTERS, from 0") \
    X(uint32_t, sample,  "the sample up to which it was counted, a number in samples; 0: after the thread's last one") \
    X(uint32_t, tid,     "the kernel's number of the thread") \
    X(uint32_t, thread,  "a number in threads, or 0 if it had not recorded anything yet") \
    X(uint32_t, spare,   "0")

/* The allocations of the process as a whole. Figures are estimated from samples, unless every_bytes is 0. */
#define HEAP_FIELDS(X) \
    X(uint64_t, start_ns,    "monotonic time when recording of the heap began; 0 in an unused record") \
    X(uint64_t, end_ns,      "monotonic time when it ended; 0 before") \
    X(uint64_t, every_bytes, "bytes allocated, on average, for each recorded allocation; 0: all are recorded") \
    X(uint64_t, live_bytes,  "memory allocated since start_ns and not freed") \
    X(uint64_t, peak_bytes,  "peak of live_bytes") \
    X(uint64_t, peak_ns,     "monotonic time of the peak, to a tick of the kernel's clock") \
    X(uint64_t, peaks,       "how often there was a new peak") \
    X(uint32_t, samples,     "recorded allocations") \
    X(uint32_t, left_out,    "allocations not recorded for lack of room")

/* The allocations from one stack. In use at the peak was peak_bytes; or, if `peaks` is not the process's, what is
   in use now, because it has not changed since. The one with HEAP_SITE_MORE has what is not kept by stack: allocations from
   stacks that there is no room for, and from stacks that gave way to others once all that they had allocated was freed.
   Allocations that are not followed (left_out) are among it as if they had been freed at once. */
#define HEAP_SITE_FIELDS(X) \
    X(uint64_t, bytes,       "memory allocated") \
    X(uint64_t, freed_bytes, "the part that was freed") \
    X(uint64_t, allocations, "number of allocations") \
    X(uint64_t, frees,       "how many of them were freed") \
    X(uint64_t, peak_bytes,  "in use at the peak with the number in peaks") \
    X(uint64_t, peaks,       "number of the process's last peak at the last allocation or free") \
    X(uint64_t, last_ns,     "monotonic time of the last sample, to a tick of the kernel's clock") \
    X(uint32_t, stack,       "stack that allocated it, a number in stacks; 0 if unknown") \
    X(uint32_t, used,        "0 in an unused record; 1; 2: all stacks that have none of their own")

#define DECLARE_FIELD(type, name, meaning) type name;

struct event         { EVENT_FIELDS(DECLARE_FIELD) };
struct block_head    { BLOCK_FIELDS(DECLARE_FIELD) };
struct compressed    { COMPRESSED_FIELDS(DECLARE_FIELD) };
struct file_head     { HEAD_FIELDS(DECLARE_FIELD) };
struct control       { CONTROL_FIELDS(DECLARE_FIELD) };
struct site          { SITE_FIELDS(DECLARE_FIELD) };
struct stack         { STACK_FIELDS(DECLARE_FIELD) };
struct open_call     { OPEN_FIELDS(DECLARE_FIELD) };
struct thread_fields { THREAD_FIELDS(DECLARE_FIELD) };
struct overview      { OVERVIEW_FIELDS(DECLARE_FIELD) };
struct child         { CHILD_FIELDS(DECLARE_FIELD) };
struct named_task    { TASK_FIELDS(DECLARE_FIELD) };
struct kept_context  { CONTEXT_FIELDS(DECLARE_FIELD) };
struct count         { COUNT_FIELDS(DECLARE_FIELD) };
struct line_trace    { TRACE_FIELDS(DECLARE_FIELD) };
struct function      { FUNCTION_FIELDS(DECLARE_FIELD) };
struct line          { LINE_FIELDS(DECLARE_FIELD) };
struct loop          { LOOP_FIELDS(DECLARE_FIELD) };
struct covered        { COVERED_FIELDS(DECLARE_FIELD) };
struct covered_place  { PLACE_FIELDS(DECLARE_FIELD) };
struct covered_branch { BRANCH_FIELDS(DECLARE_FIELD) };
struct sample         { SAMPLE_FIELDS(DECLARE_FIELD) };
struct memory         { MEMORY_FIELDS(DECLARE_FIELD) };
struct sampled_count  { SAMPLED_COUNT_FIELDS(DECLARE_FIELD) };
struct heap_total     { HEAP_FIELDS(DECLARE_FIELD) };
struct heap_site      { HEAP_SITE_FIELDS(DECLARE_FIELD) };

#define BLOCK_MAGIC 0x4b4c4249u
#define FILE_MAGIC 0x45534f5052544e49ull

enum {
    BLOCK_BYTES = 64 * 1024,
    WINDOW_BYTES = 64 * 1024,
    THREADS_BYTES = 1024 * 1024, /* a window of threads, whose records stay mapped: 511 threads a mapping */
    BLOCK_EVENTS = (BLOCK_BYTES - sizeof(struct block_head)) / sizeof(struct event),
    THREAD_BYTES = 2048,
    TASKS_BYTES = 256 * 1024, /* all tasks that are kept are in one window */
    CONTEXTS_BYTES = 1024 * 1024, /* a window of trace contexts: as many as a ring keeps */
    LINES_BYTES = 2048 * 1024, /* a window of lines: a function's are all in one */
    HEAP_SITES_BYTES = 1024 * 1024, /* a window of the heap's sites, which all stay mapped */
    PLACES_BYTES = 1024 * 1024, /* a window of places, or of branches: all of a code object's are in one */
    OPEN_CALLS = (THREAD_BYTES - sizeof(struct thread_fields)) / sizeof(struct open_call),
    STRING_BYTES = 16 * 1024, /* a longer string is cut; the cut is shown by three dots */
};

enum child_how { CHILD_FORK = 1, CHILD_EXEC, CHILD_SPAWN, CHILD_SHELL };
enum usage_source { USAGE_UNKNOWN, USAGE_OF_CHILD, USAGE_DIFFERENCE };
enum block_state { BLOCK_WRITING = 1, BLOCK_FULL, BLOCK_LEFT };
enum heap_site_use { HEAP_SITE_USED = 1, HEAP_SITE_MORE };
enum function_kind { FUNCTION_CODE = 1, FUNCTION_OUTSIDE };
enum covered_kind { COVERED_CODE = 1, COVERED_LEFT_OUT };
/* Why recording stopped, if not because of a system error, which has a lower number. */
enum { RESERVE_REACHED = 4096 };
enum sample_state { SAMPLE_RUNS = 1, SAMPLE_WAITS, SAMPLE_READY, SAMPLE_RECORDS };
#define STACK_NOT_READ UINT32_MAX
enum count_kind { COUNT_WHOLE = 1, COUNT_IN_USER_MODE, COUNT_FAILED };
enum overview_kind { OVERVIEW_BEGIN = 1, OVERVIEW_SAMPLE, OVERVIEW_END, OVERVIEW_STOPPED };

struct thread_record {
    struct thread_fields fields;
    struct open_call open[OPEN_CALLS];
};

_Static_assert(sizeof(struct compressed) == 64, "a compressed block's head is a cache line");
_Static_assert(sizeof(struct block_head) + BLOCK_EVENTS * sizeof(struct event) == BLOCK_BYTES, "a block has no rest");
_Static_assert(sizeof(struct file_head) == 64, "a file's head is a cache line");
_Static_assert(sizeof(struct file_head) + sizeof(struct control) <= THREAD_BYTES, "the head of threads has room for it");
_Static_assert(sizeof(struct event) == 88, "an event has no holes");
_Static_assert(offsetof(struct control, paused) % 8 == 0 &&
                   offsetof(struct control, samples_wanted) == offsetof(struct control, paused) + 4,
               "the shims read both at once");
_Static_assert(sizeof(struct overview) == 128, "records of a power of two never cross a window");
_Static_assert(sizeof(struct named_task) == 16, "records of a power of two never cross a window");
_Static_assert(sizeof(struct kept_context) == 64, "records of a power of two never cross a window");
_Static_assert(sizeof(struct child) == 128, "records of a power of two never cross a window");
_Static_assert(sizeof(struct line_trace) == 128 && sizeof(struct function) == 128 && sizeof(struct line) == 128 &&
                   sizeof(struct loop) == 32 && sizeof(struct covered) == 64 && sizeof(struct covered_place) == 16 &&
                   sizeof(struct covered_branch) == 32 && sizeof(struct sample) == 64 && sizeof(struct memory) == 32 &&
                   sizeof(struct sampled_count) == 32 &&
                   sizeof(struct heap_total) == 64 && sizeof(struct heap_site) == 64,
               "records of a power of two never cross a window");
_Static_assert(sizeof(struct thread_record) <= THREAD_BYTES, "a thread's record holds its table");

/* A piece of the dialogue: in front of its text, behind the length of both. */
struct piece {
    uint64_t time_ns;    /* monotonic time when the call had ended; of a prompt, when it began */
    uint32_t thread;     /* a number in threads */
    uint16_t descriptor; /* of the terminal */
    uint8_t what, flags; /* enum piece_what, enum piece_flags */
};
enum piece_what {
    PIECE_SHOWN = 1,
    PIECE_TYPED,
    PIECE_UNSEEN, /* something was typed while the terminal's echo was off; nothing of it is kept */
    PIECE_SIZE,   /* the terminal's size: rows and columns, of 16 bits each */
};
enum piece_flags {
    PIECE_ENDS_LINES = 1, /* the terminal begins a new line at the left (ONLCR) */
    PIECE_REDACTED = 2,
};

/* How a record is packed, for the experiment's own description of itself. */
struct field {
    const char *name;
    const char *type; /* u32, u64, i32, i64 */
    unsigned offset;
    const char *title;
};

/* A type of data: the file's name, and how it is packed. */
struct data_type {
    const char *name;
    const struct field *fields;
    unsigned record_bytes; /* 0: each record has its own length */
    unsigned head_bytes;   /* of the file; none in front of events, compressed or not */
    unsigned block_bytes;  /* no record crosses a multiple of it */
};

enum data_number {
    DATA_EVENTS,
    DATA_STRINGS,
    DATA_SITES,
    DATA_STACKS,
    DATA_THREADS,
    DATA_OVERVIEW,
    DATA_CHILDREN,
    DATA_COMPRESSED,
    DATA_COUNTS,
    DATA_TASKS,
    DATA_CONTEXTS,
    DATA_TRACES,
    DATA_FUNCTIONS,
    DATA_LINES,
    DATA_LOOPS,
    DATA_COVERED,
    DATA_PLACES,
    DATA_BRANCHES,
    DATA_DIALOGUE,
    DATA_SAMPLES,
    DATA_SAMPLED_SITES,
    DATA_SAMPLED_STACKS,
    DATA_SAMPLED_STRINGS,
    DATA_SAMPLED_MEMORY,
    DATA_SAMPLED_COUNTS,
    DATA_HEAP,
    DATA_HEAP_SITES,
    DATA_TYPES
};

VISIBLE extern const struct data_type data_types[]; /* ends with one without a name */
/* Each ends with one without a name. */
extern const struct field block_head_fields[], compressed_fields[], file_head_fields[], control_fields[],
    open_call_fields[];
