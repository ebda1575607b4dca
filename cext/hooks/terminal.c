#include "hooks/terminal.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/dialogue.h"
#include "core/fields.h"
#include "kinds.h"
#include "core/recorder.h"
#include "hooks/call_result.h"
#include "hooks/curses_screen.h"
#include "hooks/object_descriptor.h"
#include "hooks/object_texts.h"
#include "hooks/slot.h"

enum { TERMINAL_there = 1, TERMINAL_echoes = 2, TERMINAL_ends_lines = 4 };

static bool was_unseen; /* since nothing lay there to be read the echo was seen off */

/* Of the terminal that a descriptor refers to; 0 if it is not a terminal. */
static uint8_t terminal_state(int descriptor)
{
    struct termios found;
    unsigned number;
    int saved = errno;
    uint8_t state = 0;
    if (descriptor >= 0 && tcgetattr(descriptor, &found) == 0 && ioctl(descriptor, TIOCGPTN, &number) != 0) {
        state = TERMINAL_there;
        state |= found.c_lflag & ECHO ? TERMINAL_echoes : 0;
        state |= found.c_oflag & OPOST && found.c_oflag & ONLCR ? TERMINAL_ends_lines : 0;
        was_unseen |= !(found.c_lflag & ECHO);
    }
    errno = saved;
    return state;
}

/* The same before a read: without echo if waiting input may have been typed without it. */
static uint8_t terminal_before_reading(int descriptor)
{
    uint8_t state = terminal_state(descriptor);
    int saved = errno, bytes = 0;
    if (was_unseen && state & TERMINAL_echoes) {
        was_unseen = ioctl(descriptor, FIONREAD, &bytes) != 0 || bytes > 0;
        state &= was_unseen ? (uint8_t)~TERMINAL_echoes : state;
    }
    errno = saved;
    return state;
}

static void keep_piece(const struct call *call, int descriptor, enum piece_what what, const char *text, size_t bytes)
{
    struct thread *thread = current_thread;
    if (!thread_records(thread))
        return;
    struct reading begin = own_begin(thread);
    struct piece piece = {.time_ns = clock_read(&thread->clock).wall_ns,
                          .thread = thread->number,
                          .descriptor = (uint16_t)descriptor,
                          .what = (uint8_t)what,
                          .flags = call->terminal & TERMINAL_ends_lines ? PIECE_ENDS_LINES : 0};
    dialogue_keep(&piece, text, bytes);
    own_end(thread, begin);
}

static uint8_t input_state(uint8_t (*state_of)(int))
{
    PyObject *in = PySys_GetObject("stdin"), *out = PySys_GetObject("stdout");
    if (!in || !out || descriptor_of(in) != STDIN_FILENO || descriptor_of(out) != STDOUT_FILENO)
        return 0;
    uint8_t shown = terminal_state(STDOUT_FILENO), typed = state_of(STDIN_FILENO);
    if (!shown || !typed)
        return 0;
    return (shown & TERMINAL_ends_lines) | (typed & ~TERMINAL_ends_lines);
}

void terminal_begin(struct call *call)
{
    if (call->slot->traffic) {
        bool moves = call->known && call->known->kind == KIND_screen && call->slot->moves == MOVES_result;
        uint8_t (*state_of)(int) = call->slot->asks ? terminal_before_reading : terminal_state;
        call->terminal = moves ? state_of(call->descriptor) : 0;
    } else if (call->slot->moves == MOVES_frame) {
        call->terminal = terminal_state(STDOUT_FILENO);
    } else if (is_input(call->slot)) {
        Py_ssize_t bytes;
        call->terminal = input_state(terminal_before_reading);
        const char *prompt = call->terminal ? text_of(argument_of(call, 0), &bytes) : NULL;
        if (prompt && bytes)
            keep_piece(call, STDOUT_FILENO, PIECE_SHOWN, prompt, (size_t)bytes);
    }
}

/* The first `bytes` of a buffer; of several one after the other. Returns how many are left. */
static size_t keep_buffer(const struct call *call, enum piece_what what, PyObject *object, size_t bytes)
{
    Py_buffer view;
    if (!object || !bytes || !PyObject_CheckBuffer(object) || is_programs_buffer(object))
        return bytes;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE)) {
        PyErr_Clear();
        return bytes;
    }
    size_t part = (size_t)view.len < bytes ? (size_t)view.len : bytes;
    keep_piece(call, call->descriptor, what, view.buf, part);
    PyBuffer_Release(&view);
    return bytes - part;
}

static void keep_buffers(const struct call *call, enum piece_what what, PyObject *given, size_t bytes)
{
    if (!given || (!PyList_CheckExact(given) && !PyTuple_CheckExact(given))) {
        keep_buffer(call, what, given, bytes);
        return;
    }
    for (Py_ssize_t each = 0; each < PySequence_Fast_GET_SIZE(given) && bytes; each++)
        bytes = keep_buffer(call, what, PySequence_Fast_GET_ITEM(given, each), bytes);
}

static void input_end(const struct call *call, PyObject *line)
{
    Py_ssize_t bytes;
    const char *text = text_of(line, &bytes);
    bool seen = call->terminal & input_state(terminal_state) & TERMINAL_echoes;
    if (text && bytes)
        keep_piece(call, STDIN_FILENO, seen ? PIECE_TYPED : PIECE_UNSEEN, text, (size_t)bytes);
    if (text && (seen || !bytes))
        keep_piece(call, STDIN_FILENO, PIECE_TYPED, "\n", 1);
}

/* A call that waited for a key showed first what had to be. */
static void frame_end(const struct call *call)
{
    struct thread *thread = current_thread;
    if (!thread_records(thread))
        return;
    struct reading begin = own_begin(thread);
    uint64_t time_ns = call->slot->asks && call->span.thread ? call->span.begin.wall_ns : clock_read(&thread->clock).wall_ns;
    struct piece piece = {.time_ns = time_ns, .thread = thread->number, .descriptor = STDOUT_FILENO, .what = PIECE_SHOWN};
    frames_keep(&piece);
    own_end(thread, begin);
}

void terminal_end(const struct call *call, PyObject *result)
{
    const struct slot *slot = call->slot;
    if (slot->moves == MOVES_frame) {
        frame_end(call);
        return;
    }
    if (!slot->traffic) {
        input_end(call, result);
        return;
    }
    enum piece_what what = PIECE_SHOWN;
    if (slot->asks)
        what = call->terminal & terminal_state(call->descriptor) & TERMINAL_echoes ? PIECE_TYPED : PIECE_UNSEEN;
    if (PyBytes_CheckExact(result))
        keep_buffer(call, what, result, (size_t)PyBytes_GET_SIZE(result));
    else if (PyLong_CheckExact(result))
        keep_buffers(call, what, argument_of(call, slot->subject == SUBJECT_OWNER ? 0 : slot->subject + 1), size_of(result));
}
