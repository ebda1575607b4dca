/* Whether who waits for a descriptor waits for new work, or for the answer to something. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "kinds.h"
#include "hooks/descriptors.h"

extern uint32_t answers;    /* given on servers' connections */

/* Does a wait on this descriptor end with new work, rather than with the answer to something? */
bool is_idle(int number, struct descriptor known);

/* The process is about to wait for this descriptor: note it if it is a listener, by which the process offers to serve. */
void serves_by(int number);

/* A number for what waits for registered descriptors, an object, or the thread of a loop (hooks/loop_waits.h); never 0. */
uint32_t watcher_of(const PyObject *object);
uint32_t watcher_of_thread(uint32_t number);

void descriptor_has_role(int number, enum role role);

/* Something was sent or received. Where `is_known`, only if the descriptor is known already: nothing is asked then. */
void descriptor_moved(int number, enum last last, bool is_known);

void descriptor_watch(int number, uint32_t watcher, void (*set)(struct descriptor *, uint32_t));

void watch(struct descriptor *known, uint32_t watcher);

void unwatch(struct descriptor *known, uint32_t watcher);

/* The watcher is gone, or a new one has taken its place. */
void unwatch_all(const PyObject *object);

/* net: an answer is due; else idle. With `is_sure`, a descriptor that may have been closed unseen is looked at before it counts. */
enum kind kind_of_watched(uint32_t watcher, bool is_sure);

/* The same without the requests that a server has received and not answered: is an answer of others waited for? */
bool awaits_others(uint32_t watcher, bool is_sure);

enum kind kind_of_selected(PyObject *const *lists, Py_ssize_t count);

/* Is no answer due, and is none of the descriptors that of somebody who may send at any time? */
bool watches_nobody(uint32_t watcher);
bool selects_nobody(PyObject *const *lists, Py_ssize_t count);

/* Is it known as the descriptor of a child, or a pipe to one? */
bool is_childs(int number);

/* Did select, or a poll, return such a descriptor? */
bool brings_childs(PyObject *result);
