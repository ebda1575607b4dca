/* How each record is packed, made from the lists of fields; an experiment carries it in its log.xml. */
#include "core/fields.h"

#define TYPE_OF(member) _Generic((member), uint32_t: "u32", int32_t: "i32", uint64_t: "u64", \
                                  int64_t: "i64")
#define DESCRIBE_FIELD(type, name, meaning) \
    {#name, TYPE_OF(((struct DESCRIBED *)0)->name), offsetof(struct DESCRIBED, name), meaning},

#define DESCRIBED event
static const struct field event_fields[] = {EVENT_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED block_head
const struct field block_head_fields[] = {BLOCK_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED compressed
const struct field compressed_fields[] = {COMPRESSED_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED file_head
const struct field file_head_fields[] = {HEAD_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED control
const struct field control_fields[] = {CONTROL_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED site
static const struct field site_fields[] = {SITE_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED stack
static const struct field stack_fields[] = {STACK_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED open_call
const struct field open_call_fields[] = {OPEN_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED thread_fields
static const struct field thread_fields[] = {THREAD_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED overview
static const struct field overview_fields[] = {OVERVIEW_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED child
static const struct field child_fields[] = {CHILD_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED named_task
static const struct field task_fields[] = {TASK_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED kept_context
static const struct field context_fields[] = {CONTEXT_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED count
static const struct field count_fields[] = {COUNT_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED line_trace
static const struct field trace_fields[] = {TRACE_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED function
static const struct field function_fields[] = {FUNCTION_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED line
static const struct field line_fields[] = {LINE_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED loop
static const struct field loop_fields[] = {LOOP_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED covered
static const struct field covered_fields[] = {COVERED_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED covered_place
static const struct field place_fields[] = {PLACE_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED covered_branch
static const struct field branch_fields[] = {BRANCH_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED sample
static const struct field sample_fields[] = {SAMPLE_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED sampled_count
static const struct field sampled_count_fields[] = {SAMPLED_COUNT_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED memory
static const struct field memory_fields[] = {MEMORY_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED heap_total
static const struct field heap_fields[] = {HEAP_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

#define DESCRIBED heap_site
static const struct field heap_site_fields[] = {HEAP_SITE_FIELDS(DESCRIBE_FIELD){0}};
#undef DESCRIBED

const struct data_type data_types[DATA_TYPES + 1] = {
    [DATA_EVENTS] = {"events", event_fields, sizeof(struct event), 0, BLOCK_BYTES},
    [DATA_STRINGS] = {"strings", NULL, 0, sizeof(struct file_head), WINDOW_BYTES},
    [DATA_SITES] = {"sites", site_fields, sizeof(struct site), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_STACKS] = {"stacks", stack_fields, sizeof(struct stack), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_THREADS] = {"threads", thread_fields, THREAD_BYTES, THREAD_BYTES, THREADS_BYTES},
    [DATA_OVERVIEW] = {"overview", overview_fields, sizeof(struct overview), sizeof(struct overview), WINDOW_BYTES},
    [DATA_COMPRESSED] = {"events.zst", NULL, 0, 0, BLOCK_BYTES},
    [DATA_CHILDREN] = {"children", child_fields, sizeof(struct child), sizeof(struct child), WINDOW_BYTES},
    [DATA_COUNTS] = {"counts", count_fields, sizeof(struct count), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_TASKS] = {"tasks", task_fields, sizeof(struct named_task), sizeof(struct file_head), TASKS_BYTES},
    [DATA_CONTEXTS] = {"trace_contexts", context_fields, sizeof(struct kept_context), sizeof(struct file_head), CONTEXTS_BYTES},
    [DATA_TRACES] = {"traces", trace_fields, sizeof(struct line_trace), sizeof(struct line_trace), WINDOW_BYTES},
    [DATA_FUNCTIONS] = {"functions", function_fields, sizeof(struct function), sizeof(struct function), WINDOW_BYTES},
    [DATA_LINES] = {"lines", line_fields, sizeof(struct line), sizeof(struct line), LINES_BYTES},
    [DATA_LOOPS] = {"loops", loop_fields, sizeof(struct loop), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_COVERED] = {"covered", covered_fields, sizeof(struct covered), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_PLACES] = {"places", place_fields, sizeof(struct covered_place), sizeof(struct file_head), PLACES_BYTES},
    [DATA_DIALOGUE] = {"dialogue", NULL, 0, sizeof(struct file_head), WINDOW_BYTES},
    [DATA_BRANCHES] = {"branches", branch_fields, sizeof(struct covered_branch), sizeof(struct file_head), PLACES_BYTES},
    [DATA_SAMPLES] = {"samples", sample_fields, sizeof(struct sample), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_SAMPLED_SITES] = {"sampled_sites", site_fields, sizeof(struct site), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_SAMPLED_STACKS] = {"sampled_stacks", stack_fields, sizeof(struct stack), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_SAMPLED_STRINGS] = {"sampled_strings", NULL, 0, sizeof(struct file_head), WINDOW_BYTES},
    [DATA_SAMPLED_MEMORY] = {"sampled_memory", memory_fields, sizeof(struct memory), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_SAMPLED_COUNTS] = {"sampled_counts", sampled_count_fields, sizeof(struct sampled_count), sizeof(struct file_head),
                             WINDOW_BYTES},
    [DATA_HEAP] = {"heap", heap_fields, sizeof(struct heap_total), sizeof(struct file_head), WINDOW_BYTES},
    [DATA_HEAP_SITES] = {"heap_sites", heap_site_fields, sizeof(struct heap_site), sizeof(struct file_head),
                         HEAP_SITES_BYTES},
};
