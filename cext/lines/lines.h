/* Line trace, as far as it knows nothing of Python: what was counted of functions and their lines, in mapped files, and
   for each thread the functions that it is in, with the line that its time is charged to.

   At each event (a line, a beginning, an end) the counter is read as the callback begins and as it ends: what passed from
   the end of one callback to the beginning of the next goes to the line that was current between them. What of it the
   interpreter took for the event is calibrated and taken off, never less than the whole of it: only sums say anything, so a
   line's sum may be below 0, and no single event is cut. One reading gives both clocks: as long as the clock's witness says
   that the thread stayed on its processor, its time was CPU time (core/clock.h). Where it does not say so, or not lately, the
   clock is asked how much of the time since it last was asked the thread was away.

   All of it runs with the interpreter's lock held. */
#pragma once

#include "core/recorder.h"
#include "core/ticks.h"

enum { LINES_DEPTH = 1024, LINES_DEEPEST = 65536, LINE_OWNERS = 64, ENTRY_SPOT = 0 };

/* The lines of a function as one owner ran it. An owner is a thread, or a task of it. */
struct line_table {
    struct line_table *next; /* of the same code, for another owner */
    uint32_t serial;         /* of the files that it lies in */
    uint32_t trace, owner;
    uint32_t active;         /* calls of it in progress */
    bool rehearsed;          /* lies in no file */
    uint32_t number, first;  /* of the function and of its first line, in the files */
    struct function *function;
    struct line *lines;
    struct loop *loops;
    uint32_t waiting[];      /* by line: calls made from it in progress */
};

/* What was charged until some time, on a thread's own clocks or to a line; and what was taken off that for events. */
struct line_sums {
    uint64_t ticks, off;
    int64_t events;
};

/* A function in progress. */
struct line_frame {
    const void *frame; /* the interpreter's, compared only */
    struct line_table *table;
    const void *plan;  /* how its code's instructions are lines */
    const void *code;  /* where these begin */
    struct line *line; /* that its time goes to, where it is not the innermost */
    struct line *lines; /* of the table */
    struct line_sums start;  /* of the thread, when it began or went on */
    struct line_sums caller; /* of the calling line, then */
    uint32_t owner;    /* of what it calls */
    uint32_t coroutine;
    uint32_t greenlet; /* the task of the greenlet that it runs in, or 0 */
};

/* Why an event takes more than the quick way. */
enum {
    APART_TOLD = 1,      /* recording is paused, or lines are events */
    APART_BEGUN = 2,     /* a function has begun by an event of its own: its first line comes */
    APART_BEYOND = 4,    /* calls are too deep */
    APART_UNCOUNTED = 8, /* ticks are not the processor's counter */
};

/* Of each thread; what each event needs comes first, in two cache lines. */
struct line_thread {
    struct line_frame *top; /* the innermost; the first of all stands for what is outside of all functions */
    struct line *line;      /* that its time goes to; the other functions' stand in their frames */
    uint64_t since;         /* the end of the last event */
    int64_t cost;           /* what the interpreter takes for that one from then on */
    uint64_t charged;       /* all ticks that lines were charged: a clock that stands still while recording takes its time */
    int64_t event_ticks;    /* taken off what was charged, for all events */
    uint64_t sure_until;    /* from then on the clock is asked again */
    volatile uint64_t *word; /* the clock's witness, and what it holds as long as the thread stays where it is */
    uint64_t mark;
    struct clock *clock;
    void *state;            /* the interpreter's, of this thread */
    uint32_t generation;    /* the clock's, when it was asked last */
    uint32_t apart;         /* a line takes more than to count it: recording is paused, or lines are events */
    uint32_t beyond;        /* calls in progress that are too deep to be recorded */
    uint32_t stretch;       /* in which it began */
    uint32_t paused;        /* nothing is counted or charged */
    uint32_t depth;         /* frames that there is room for */
    uint64_t off;           /* ticks that the thread was not on a processor */
    uint64_t charged_off;   /* of these what lines were charged */
    uint64_t own_off;       /* and what was while recording took its time */
    uint64_t counted;       /* until when its time is in what is said of it as a whole */
    uint64_t sync_ticks;    /* when the clock was asked last, what was charged then, and what it said */
    uint64_t sync_charged;
    uint64_t sync_wall_ns, sync_cpu_ns;
    uint64_t system_ns;     /* the thread's time in the kernel at the last event, where that is asked for */
    struct thread *thread;
    struct line_thread *next;
    struct line_table *outside;
    struct line_frame *frames;
};

/* What the interpreter takes for events, as calibrated (line_costs.c), in ticks. It is taken off the line that an event ends, but for
   what follows one that is no line's. */
#define LINE_COSTS(X) \
    X(line,      "the event of a line")                                                        \
    X(high_line, "the same where the line's number is an object that has to be made")          \
    X(far,       "of a line far behind its function's first, which is looked up, for so many instructions before it: FAR_STEP") \
    X(branch,    "what follows a line in which a jump may not be taken")                       \
    X(jump,      "a jump back within a line")                                                  \
    X(high_jump, "the same where the instructions' numbers are objects that have to be made")  \
    X(call,      "a function begins and ends, or goes on and is suspended")                    \
    X(resume,    "beside that, where it goes on")                                              \
    X(coroutine, "beside that, where one ends or is suspended that is a coroutine")            \
    X(exception, "an exception that is told")                                                  \
    X(stop,      "the exception that ends a coroutine which is waited for")

enum { FAR_STEP = 64 };

struct line_costs {
#define DECLARE_COST(name, meaning) int64_t name;
    LINE_COSTS(DECLARE_COST)
#undef DECLARE_COST
    int64_t end;             /* of a call's what is the callee's: its end */
    double instruction[256]; /* by opcode: of each in a line, or of the one that begins it */
};

struct lines {
    uint32_t on;
    uint32_t serial;  /* of the files; a forked child has files of its own */
    uint32_t stretch; /* of the times that it was switched on */
    uint32_t trace;   /* the stretch's number in traces */
    uint32_t depth;
    uint32_t system;  /* the time in the kernel is asked for at each line */
    struct line_costs costs;
    uint64_t sync_ticks;  /* after so many the clock is asked again */
    double ticks_in_ns;
    uint64_t speed_ticks, speed_ns; /* of the processor, as calibrated, and when it was looked at last (line_speed.c) */
};

VISIBLE extern struct lines lines;

/* What a function's record says of it, and how many lines and loops follow it. */
struct line_shape {
    uint32_t kind, file, function, module, first_line, own;
    uint32_t spots, loops;
};

/* While the costs of events are calibrated: note how fast the processor is then. The fastest counts. */
VISIBLE void speed_calibrate(void);

/* Choose the clock, and how deep calls are recorded. */
VISIBLE void lines_prepare(uint32_t depth, bool system);

/* Switch on; `target` is the number of a global's name, or 0. Switched on already, it stays so. 0 or the error's number. */
VISIBLE int lines_on(uint32_t target);

/* Switch off; what all threads are in is left. A `target` goes before that given when it was switched on. */
VISIBLE void lines_off(uint32_t target);

/* Uncount the last visit of the current line, and remove its time from all sums: the average time of a visit if the line had
   others. */
VISIBLE void lines_uncount(struct line_thread *thread);

/* The calling thread's part; NULL where nothing can be recorded of it. */
VISIBLE struct line_thread *lines_thread(void *state);

/* Are the lines of this table those of this owner now? */
static inline bool line_table_is_of(const struct line_table *table, uint32_t owner)
{
    return table->owner == owner && table->serial == lines.serial && table->trace == lines.trace;
}

/* A function's record with its lines and loops; NULL where there is no room, which is counted. */
VISIBLE struct line_table *lines_table(uint32_t owner, const struct line_shape *shape);
VISIBLE void lines_table_free(struct line_table *table);

/* The owner that a task of the thread is. */
VISIBLE uint32_t lines_owner(struct line_thread *thread, uint32_t task);

/* A call that is too deep inside others begins. */
VISIBLE void lines_count_beyond(struct line_thread *thread);

/* Ask the clock; charge what passed until `now` less the event's cost, unless recording is paused. */
VISIBLE void lines_settle(struct line_thread *thread, uint64_t now, int64_t cost);

/* Tables are made in ordinary memory meanwhile, for calibration. */
VISIBLE void lines_rehearse(bool on);

/* Did the thread stay on its processor until now, and nobody say anything? */
static inline bool line_clock_is_sure(const struct line_thread *thread, uint64_t now)
{
    return LIKELY(now < thread->sure_until && *thread->word == thread->mark &&
                  thread->clock->generation == thread->generation && said_from_outside() == recorder.heeded);
}

/* What passed until now since the last event goes to the current line, less what the interpreter took for that one and for this,
   which is noted too. */
static inline int64_t lines_add(struct line_thread *thread, uint64_t now, int64_t cost)
{
    int64_t taken = thread->cost + cost, passed = (int64_t)(now - thread->since) - taken;
    thread->line->ticks += passed;
    thread->line->event_ticks += taken;
    thread->charged += (uint64_t)passed;
    thread->event_ticks += taken;
    return passed;
}

/* An event begins, for which the interpreter took so much until now: charge the time. It must end with lines_end. */
static inline void lines_begin(struct line_thread *thread, uint64_t now, int64_t cost)
{
    if (UNLIKELY(!line_clock_is_sure(thread, now)))
        lines_settle(thread, now, cost);
    else
        lines_add(thread, now, cost);
}

/* An event begins, where ticks are known to be counted; false where the clock has to be asked, and nothing is charged. */
static inline bool lines_begin_plain(struct line_thread *thread, int64_t cost)
{
    uint64_t now = ticks_counter();
    bool is_sure = line_clock_is_sure(thread, now);
    if (LIKELY(is_sure))
        lines_add(thread, now, cost);
    return is_sure;
}

/* An event ends: what passed since it began is recording's own, and so is what the interpreter takes for it from now on. */
static inline void lines_end(struct line_thread *thread, int64_t cost)
{
    thread->since = ticks_now();
    thread->cost = cost;
}

/* The same where ticks are known to be counted. */
static inline void lines_end_plain(struct line_thread *thread, int64_t cost)
{
    thread->since = ticks_counter();
    thread->cost = cost;
}

/* From now on the thread's time goes to this line. */
static inline void lines_go_to(struct line_thread *thread, struct line *line)
{
    thread->line = line;
}

static inline bool lines_have_room(const struct line_thread *thread)
{
    return LIKELY(thread->top - thread->frames < (ptrdiff_t)thread->depth);
}

/* What the next function that begins is to be noted in, all but its times, before lines_push. */
static inline struct line_frame *lines_next(const struct line_thread *thread)
{
    return thread->top + 1;
}

static inline struct line_sums sums_of_thread(const struct line_thread *thread)
{
    return (struct line_sums){thread->charged, thread->charged_off, thread->event_ticks};
}

static inline struct line_sums sums_of_line(const struct line *line)
{
    return (struct line_sums){(uint64_t)line->ticks, (uint64_t)line->off_ticks, line->event_ticks};
}

static inline struct line_sums sums_since(struct line_sums now, struct line_sums before)
{
    return (struct line_sums){now.ticks - before.ticks, now.off - before.off, now.events - before.events};
}

/* A function begins or goes on, called from the current line. What passed is charged already. */
static inline void lines_push(struct line_thread *thread)
{
    struct line_frame *caller = thread->top, *callee = lines_next(thread);
    caller->line = thread->line;
    if (caller->table->waiting[caller->line - caller->lines]++ == 0)
        callee->caller = sums_of_line(caller->line);
    callee->table->active++;
    callee->start = sums_of_thread(thread);
    thread->top = callee;
    thread->line = callee->line;
}

/* Nothing that this line has called is in progress any more: what passed meanwhile was not its own. */
static inline void lines_add_inner(struct line *line, const struct line_frame *callee, struct line_sums passed)
{
    struct line_sums inner = sums_since(passed, sums_since(sums_of_line(line), callee->caller));
    line->inner_ticks += (int64_t)inner.ticks;
    line->inner_off_ticks += (int64_t)inner.off;
    line->inner_event_ticks += inner.events;
}

static inline void lines_add_inclusive(struct function *function, struct line_sums passed)
{
    function->ticks += (int64_t)passed.ticks;
    function->off_ticks += (int64_t)passed.off;
    function->event_ticks += passed.events;
}

/* The innermost function ends, or is suspended. What passed is charged already. */
static inline void lines_pop(struct line_thread *thread)
{
    struct line_frame *callee = thread->top, *caller = callee - 1;
    struct line_sums passed = sums_since(sums_of_thread(thread), callee->start);
    if (--callee->table->active == 0)
        lines_add_inclusive(callee->table->function, passed);
    if (--caller->table->waiting[caller->line - caller->lines] == 0)
        lines_add_inner(caller->line, callee, passed);
    thread->top = caller;
    thread->line = caller->line;
}
