"""What the shims use of C: slots and stubs, what every shim does, how one is put in place (cext/hooks)."""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset, strcmp, strncmp, strncpy
from posix.unistd cimport access, close as close_descriptor

from interpose.timing.clock cimport *
from interpose.timing.recorder cimport *

cdef extern from "<string.h>":
    size_t strnlen(const char *, size_t)

cdef extern from "core/detail_levels.h":
    ctypedef int c_kind "enum kind"
    c_kind KIND_logic
    uint32_t argument_intern(c_kind, const char *, size_t)
    ctypedef int how_much "enum how_much"
    void arguments_choose(c_kind, how_much)
    void arguments_cost(uint32_t)

cdef extern from "core/redact.h":
    const char *redact_choose(const char *)
    char *redact(const char *, size_t *)
cdef extern from "core/filter.h":
    struct c_filter "filter":
        bint by_transaction
    c_filter filter_state "filter"
    void filter_know(uint32_t, const char *, const char *)

cdef extern from "core/transaction_sampling.h":
    struct c_chosen "chosen":
        uint32_t one_in
    c_chosen chosen_state "chosen"
    ctypedef int fate "enum fate"
    enum:
        FATE_none
        FATE_kept
        FATE_passed_over
    void chosen_begin(uint64_t, uint32_t, const char *, fate)
    void chosen_know(uint32_t, uint32_t)

cdef extern from "core/shared_files.h" nogil:
    int shared_files_open(int)
    int shared_files_next(int, uint64_t *, char *, size_t)

cdef extern from "core/follow.h":
    const char *follow_choose(const char *, const char *)
    bint follow_matches(const char *)

cdef extern from "core/program.h":
    ctypedef int reason "enum reason"
    reason program_reason(const char *)
    const char *reason_words(reason)

cdef extern from "core/preload.h":
    const char *preload_library()
    void preload_choose_programs(bint)
    bint preload_follows(reason)
    bint preload_is_needed(const char *, const char *const *, bint)

cdef extern from "core/child_variables.h":
    int variables_keep(const char *, size_t)

cdef extern from "<time.h>":
    int CLOCK_MONOTONIC

cdef extern from "Python.h":
    struct thread_state "_ts":
        pass

cdef extern from "hooks/unmarked.h":
    void unmarked_add(const char *)

cdef extern from "hooks/stubs.h":
    enum:
        KIND_COUNT
        SUBJECT_OWNER
        SUBJECT_RESULT
        LOCK_semaphore
        WAITS_not
        WAITS_wall
        WAITS_off_cpu
        WAITS_rows
    ctypedef int c_signature "enum signature"
    enum:
        SIGNATURE_pair
        SIGNATURE_triple
        SIGNATURE_fast
        SIGNATURE_fast_keywords
        SIGNATURE_method
        SIGNATURE_vector
        SIGNATURE_unary
        SIGNATURE_initialise
        SIGNATURE_COUNT
    const char *const kind_words[]
    const char *const detail_words[]
    const char *const moves_words[]
    const char *const choice_words[]
    const char *const effect_words[]
    enum:
        EFFECT_fork
        EFFECT_serve
        EFFECT_span
        EFFECT_continue
    const char *const lock_words[]
    const char *const passes_words[]
    const char *const level_words[]
    enum:
        LEVEL_time
        LEVEL_off
    void transactions_forget()
    void transaction_add(uint32_t)
    void told_by_program(uint32_t)
    enum:
        CALLER_NOT
        REQUEST_named
        REQUEST_traced
    bint slot_lower(slot *, uint32_t, level)
    bint slots_lower(uint32_t, level)
    struct slot:
        void *body
        void *real
        void *ask
        PyObject *link
        PyObject *keyword
        PyObject *attributes
        PyObject *headers
        PyObject *route
        uint32_t intrinsic
        uint8_t numbers
        uint8_t *kinds
        uint8_t detail
        uint8_t subject
        uint8_t late
        uint8_t caller
        uint8_t request
        uint8_t moves
        uint8_t choice
        uint8_t effect
        uint8_t lock
        uint8_t passes
        uint8_t waits
        uint8_t traffic
        uint8_t asks
        uint8_t shape
        uint8_t *levels
        uint8_t lowered
        uint8_t through
        uint8_t watched
        uint8_t sampled
        uint8_t taken
    slot *slot_take(c_signature, const void *)
    slot *slot_take_further(PyObject *)
    void slot_give_back(slot *)
    void slot_is_fit(slot *)
    void slot_is_unfit(slot *)
    void *slot_stub(c_signature, const slot *)
    bint is_stub(const void *)
    bint is_traffic(const slot *)

ctypedef PyObject *(*pair_function)(PyObject *, PyObject *) noexcept
ctypedef PyObject *(*triple_function)(PyObject *, PyObject *, PyObject *) noexcept
ctypedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t) noexcept
ctypedef PyObject *(*fast_keywords_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *) noexcept
ctypedef PyObject *(*method_function)(
    PyObject *, PyTypeObject *, PyObject *const *, size_t, PyObject *) noexcept
ctypedef PyObject *(*vector_function)(PyObject *, PyObject *const *, size_t, PyObject *) noexcept
ctypedef PyObject *(*vector_function_of_wrapper "vectorcallfunc")(
    PyObject *, PyObject *const *, size_t, PyObject *) noexcept
ctypedef PyObject *(*unary_function)(PyObject *) noexcept
ctypedef void (*finish_function)(PyObject *) noexcept
ctypedef int (*initialise_function)(PyObject *, PyObject *, PyObject *) noexcept

# The same as stubs' bodies, which are given their slot.
ctypedef PyObject *(*pair_body)(slot *, PyObject *, PyObject *) noexcept
ctypedef PyObject *(*triple_body)(slot *, PyObject *, PyObject *, PyObject *) noexcept
ctypedef PyObject *(*fast_body)(slot *, PyObject *, PyObject *const *, Py_ssize_t) noexcept
ctypedef PyObject *(*fast_keywords_body)(slot *, PyObject *, PyObject *const *, Py_ssize_t, PyObject *) noexcept
ctypedef PyObject *(*method_body)(
    slot *, PyObject *, PyTypeObject *, PyObject *const *, size_t, PyObject *) noexcept
ctypedef PyObject *(*vector_body)(slot *, PyObject *, PyObject *const *, size_t, PyObject *) noexcept
ctypedef PyObject *(*unary_body)(slot *, PyObject *) noexcept
ctypedef int (*initialise_body)(slot *, PyObject *, PyObject *, PyObject *) noexcept

cdef extern from "hooks/call.h":
    struct c_call "call":
        PyObject *names
    enum:
        SHAPE_ONE
        DETAIL_path
        SHAPE_TUPLE
        SHAPE_METHOD

cdef extern from "hooks/child_waits.h":
    bint child_waits_end()

cdef extern from "hooks/forked_exec.h":
    bint forked_exec_end()

cdef extern from "hooks/gil_waits.h":
    const char *gil_waits_begin(const slot *)
    bint gil_waits_end()

cdef extern from "hooks/loop_waits.h":
    slot *loop_waits_slot()
    const char *loop_waits_begin(slot *, const void *)
    bint loop_waits_end()

cdef extern from "native/native_wrappers.h":
    ctypedef struct c_native_row "struct native_row":
        const char *library
        const char *name
        const char *kinds
        const char *choice
        const char *detail
        const char *moves
        const char *effect
    enum:
        NATIVE_COUNT
        FIRST_STREAM
        DATABASE_COUNT
    bint native_is_tls(unsigned)
    const c_native_row native_rows[]
    const c_native_row database_rows[]

cdef extern from "native/native_call.h":
    ctypedef struct c_native "struct native":
        slot slot
        void *real
    c_native natives[]
    bint native_lower(uint32_t, level)

cdef extern from "native/native_objects.h":
    void native_prepare()
    void native_look()
    int native_end_all()
    bint native_is_on()

cdef extern from "hooks/hot_path.h":
    bint begin_tuple(c_call *, const slot *, PyObject *, PyObject *, PyObject *)

cdef extern from "hooks/bodies.h":
    void *const bodies[]
    void *const takers[]
    void *const passers[]
    void *const runners[]
    PyObject *time_awaited(slot *, PyObject *, PyObject *const *, size_t, PyObject *) noexcept
    PyObject *time_wrapped(PyObject *, PyObject *const *, size_t, PyObject *) noexcept

cdef extern from "hooks/shim.h":
    void shims_begin()
    PyObject *do_nothing(PyObject *, PyObject *)
    object given(PyObject *)

cdef extern from "hooks/filtering.h":
    void slot_watch(slot *)

cdef extern from "hooks/passed_environment.h":
    struct c_passed "passed":
        pass
    PyObject *pass_tuple(c_passed *, const slot *, PyObject *)
    void pass_end(c_passed *, const slot *)

cdef extern from "hooks/locks.h":
    bint plain_lock_is_known(object)
    bint recursive_lock_is_known(object)

cdef extern from "hooks/lock_holders.h":
    void forget_holders()
    void release_sites(void *)

cdef extern from "hooks/open_calls.h":
    void number_is_of(uint32_t, int)
    void forget_number_kinds()

cdef extern from "hooks/descriptors.h":
    void forget_descriptors()
    void descriptors_inherited()

cdef extern from "hooks/object_descriptor.h":
    void descriptor_owner_add(unsigned, PyTypeObject *, void *)

cdef extern from "hooks/attribute_names.h":
    int details_begin()
    int plain_begin()

cdef extern from "hooks/active_spans.h":
    int active_spans_begin()
    void expect_active_spans()

cdef extern from "hooks/trace_headers.h":
    int trace_headers_begin()

cdef extern from "cpython/thread_names.h":
    void see_asking_thread(thread_state *)

cdef extern from "cpython/version.h":
    const char *UNSUPPORTED
    const bint THREADS_HAVE_CONTEXTS

cdef extern from "cpython/side_lock.h":
    const bint IS_FREE_THREADED
    int side_locks_prepare()
    void write_last(uint32_t *, uint32_t)
    uint32_t read_first(const uint32_t *)

cdef extern from "cpython/sites.h":
    thread_state *recorded_state()
    int sites_begin(void (*)(void *))

cdef extern from "cpython/sampled_layout.h":
    struct interpreter_places "interpreter_layout":
        pass
    const char *const interpreter_layout_names[]
    interpreter_places sampled_layout()

cdef extern from "cpython/ownership.h":
    uint32_t is_own(PyObject *)
    void forget_library_prefixes()
    bint add_library_prefix(const char *)

cdef extern from "cpython/code_origins.h":
    void forget_roots()
    bint add_known_root(const char *)

cdef extern from "interpose_collector.h":
    enum:
        INTERPOSE_COLLECTOR_VERSION
        INTERPOSE_PER_EVENT
        INTERPOSE_PER_TRANSACTION
        INTERPOSE_PER_SITE
        INTERPOSE_FORCED_SIZE
        INTERPOSE_SCRATCH_BYTES
        INTERPOSE_SECTIONS
        INTERPOSE_NAME_BYTES
        EYE_CATCHER_BYTES "INTERPOSE_EYE_CATCHER_BYTES"
    const char *INTERPOSE_COLLECTOR_EYE_CATCHER
    const char *INTERPOSE_COLLECTOR_SYMBOL
    struct interpose_area:
        uint32_t version
        uint32_t thread
        uint32_t task
        const void *code
        const char *file
        const char *function
        uint64_t line
        uint64_t address
        uint64_t wall_ns
        uint64_t cpu_ns
        const char *module
        uint64_t base
        uint64_t size
        const char *section
        uint64_t statement
        const char *transaction
        char *identifier
        char *scratch
    struct interpose_section:
        const char *name
        const char *prefix
    struct interpose_collector:
        const char *eye_catcher
        uint32_t version
        uint32_t area_bytes
        uint32_t per
        const char *name
        void (*collect)(interpose_area *) noexcept
        const char *const *programs
        const interpose_section *sections

cdef extern from "<dlfcn.h>":
    int RTLD_NOW, RTLD_LOCAL
    void *dlopen(const char *, int)
    void *dlsym(void *, const char *)
    const char *dlerror()

cdef extern from "core/levels.h":
    enum:
        COUNTED_NUMBERS

cdef extern from "collectors/identification.h":
    struct c_identified "identified":
        PyObject **texts
    int identified_begin()
    void identified_forget()

cdef extern from "collectors/collector_trial.h":
    enum: TRIAL_WELL, TRIAL_LEFT, TRIAL_HANGS
    int try_collector(const char *)

cdef extern from "collectors/collector_calls.h":
    struct c_told "told":
        const c_identified *place

cdef extern from "collectors/collectors.h":
    enum:
        COLLECTOR_SAMPLED
        BOUNDARY_IS
        BOUNDARY_OTHER
        BOUNDARY_READS
    struct c_collector "collector":
        void (*collect)(interpose_area *) noexcept
        PyObject *function
        void *work
        uint32_t place
        uint32_t name
        uint32_t per
        uint64_t identifier
    struct c_collectors "collectors":
        c_collector *all
        uint32_t count
        uint32_t on
        uint32_t *per
        uint32_t in_python
        uint32_t running
        uint32_t named
        uint32_t turn
        uint32_t sampled
        uint8_t *boundaries
        bint (*call)(c_collector *, interpose_area *, PyObject **, int64_t *) noexcept
        void (*release)(PyObject *) noexcept
        void (*note)(const c_collector *, const char *, bint) noexcept
        void (*identify)(const c_collector *, const char *) noexcept
    c_collectors collectors

cdef extern from "collectors/pseudo_sections.h":
    enum:
        COLLECTORS_AT_MOST
        SECTION_BYTES
        PREFIX_OF_MODULES
    struct c_pseudo_section "pseudo_section":
        uint32_t collector
        char *name
        char *prefix
    struct c_pseudo_sections "pseudo_sections":
        c_pseudo_section *all
        uint32_t count
    c_pseudo_sections pseudo_sections

cdef extern from "hooks/call_detail.h":
    bint is_detail_late(const slot *)

cdef extern from "hooks/serving.h":
    uint32_t marking

cdef extern from "hooks/transaction_marks.h":
    PyObject *mark_enter(const slot *, uint32_t)
    void mark_event(const slot *, uint32_t)
    void mark_exit(const slot *, uint32_t, bint)

cdef extern from "hooks/statement_events.h":
    void tell_lines_as(const slot *)
    uint64_t time_told_lines(c_thread *, unsigned)

cdef extern from "hooks/awaits.h":
    int awaits_begin(object, object) except -1
    void see_steps(PyObject *)
    void shim_end_or_await(c_call *, PyObject *)

cdef extern from "hooks/await_table.h":
    void awaits_forget()

cdef extern from "cpython/tasks.h":
    void loop_runs(const PyObject *)
    void loop_hooks_are_set()

cdef extern from "hooks/greenlets.h":
    struct c_aside "aside":
        pass
    void lay_aside(c_aside *, PyObject *)
    void take_up(c_aside *)
    bint greenlets_begin(object)
    void greenlets_end()

cdef extern from "hooks/install.h":
    struct PyMethodDef:
        const char *ml_name
        void *ml_meth
    PyMethodDef *definition_of(object)
    c_signature signature_of(const PyMethodDef *)
    bint takes_one_argument(const PyMethodDef *)
    bint takes_arguments(const PyMethodDef *)
    void exchange_in_definition(PyMethodDef *, void *)
    bint is_writable(const void *)
    void **type_slot(PyTypeObject *, const char *, c_signature *)
    bint exchange_in_types(PyTypeObject *, const char *, void *, void *) except False
    bint installing_begin()
    void installing_end()

cdef extern from "hooks/python_functions.h":
    bint is_python_function(object)
    bint is_gone_round(object)
    PyObject *function_globals(object)
    PyObject *function_file(object)
    void *function_vectorcall(object)
    int function_put(object, void *, bint) except -1

cdef extern from "cpython/gc_objects.h":
    void visit_tracked(int (*)(PyObject *, void *) noexcept, void *)
    bint has_other_than_texts(PyObject *)

cdef extern from "hooks/wrapper.h":
    int wrapper_begin(object) except -1
    object wrapper_made_type()
    bint is_wrapper(object)
    void wrapper_fit(object, vector_function_of_wrapper, const slot *)

cdef extern from "Python.h":
    thread_state *PyThreadState_Get()
    void PyThreadState_EnterTracing(thread_state *)
    void PyThreadState_LeaveTracing(thread_state *)
    const char *PyUnicode_AsUTF8(object) except NULL
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL
    PyObject *PyObject_CallOneArg_or_null "PyObject_CallOneArg"(PyObject *, PyObject *)
    int Py_AddPendingCall(int (*)(void *) noexcept, void *)
    void Py_INCREF(object)
    unsigned long PyThread_get_thread_ident()
    int PyThreadState_SetAsyncExc(unsigned long, PyObject *)
    long PyLong_AsLong(object) except? -1
    bint PyModule_Check(object)
    PyObject *PyModule_GetDict_borrowed "PyModule_GetDict"(object)
    PyObject *PyErr_Occurred()
    void PyErr_SetObject(object, object)
    void Py_DECREF(object)
    PyObject *PyObject_Call(object, object, object)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    void PyType_Modified(PyTypeObject *)
    object PyCMethod_New(PyMethodDef *, PyObject *, PyObject *, PyTypeObject *)
    bint PyContext_CheckExact(object)
    bint PyMethod_Check(object)
    object PyContextVar_New(const char *, PyObject *)
    int PyContextVar_Get(object, PyObject *, PyObject **)
    object PyContextVar_Set(object, object)
    int PyContextVar_Reset(object, object)
    void *PyEval_GetGlobals()
    void PyErr_Clear()
    void PyErr_SetNone(object)
    void PyErr_Fetch(PyObject **, PyObject **, PyObject **)
    void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **)
    void PyErr_Restore(PyObject *, PyObject *, PyObject *)
    void Py_INCREF(object)
    ctypedef void *PyThread_type_lock
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock)
    int PyThread_acquire_lock(PyThread_type_lock, int)
    void PyThread_release_lock(PyThread_type_lock)

cdef extern from "cpython/tasks.h":
    void tasks_forget()
