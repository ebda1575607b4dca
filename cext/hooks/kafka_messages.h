/* Messages of Kafka, as confluent_kafka gives them: what they tell by functions in C. None of the program's code is run. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* The topic of a message, or the one that all messages of a list have. */
uint32_t topic_detail(PyObject *object);

/* The length of a message's value, or of all in a list. In the place of a value may be the text of an error: that is none. */
uint64_t size_of_messages(PyObject *object);
