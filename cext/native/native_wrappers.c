#define _GNU_SOURCE
#include "native/native_wrappers.h"

#include "native/native_call.h"
#include "native/native_shapes.h"

/* The content of exchanged slots: begin, the real function, end. `first` may return before that, and `back` after
   the real function has; `named` is the name of an error that has no number. */
#define WRAPPER_WITH(first, back, named, told, name, returns, parameters, arguments, subject, error_number) \
    typedef returns type_of_##name parameters; \
    static returns native_##name parameters \
    { \
        type_of_##name *real = (type_of_##name *)natives[NATIVE_##name].real; \
        struct native_call call; \
        first; \
        if (!native_begin(&call, &natives[NATIVE_##name], (subject), __builtin_return_address(0), \
                          (uintptr_t)__builtin_frame_address(0))) \
            return real arguments; \
        returns result = real arguments; \
        back; \
        call.failed = (named); \
        native_end(&call, (int64_t)(told), (error_number)); \
        return result; \
    }
#define NOTHING (void)0
#define WRAPPER(name, ...) WRAPPER_WITH(NOTHING, NOTHING, 0, result, name, __VA_ARGS__)
#define WRAPPER_TOLD(name, returns, parameters, arguments, subject, error_number, told) \
    WRAPPER_WITH(NOTHING, NOTHING, 0, told, name, returns, parameters, arguments, subject, error_number)
#define WRAPPER_NAMED(name, returns, parameters, arguments, subject, named, told) \
    WRAPPER_WITH(NOTHING, NOTHING, named, told, name, returns, parameters, arguments, subject, 0)
#define WRAPPER_OF_TWO(name, ...) WRAPPER_WITH(NOTHING, RETURN_IN_CHILD, 0, result, name, __VA_ARGS__)
#define RETURN_IN_CHILD \
    if (result == 0) \
    return 0
#define WRAPPER_IF(name, returns, parameters, arguments, subject, error_number, condition) \
    WRAPPER_WITH(if (!(condition)) return real arguments, NOTHING, 0, result, name, returns, parameters, arguments, \
                 subject, error_number)
#define WRAPPER_UNLESS_FREE(name, returns, parameters, arguments, subject, error_number, try) \
    WRAPPER_WITH(RETURN_UNLESS_BUSY(try), NOTHING, 0, result, name, returns, parameters, arguments, subject, error_number)
#define WRAPPER_UNLESS_FREE_NAMED(name, returns, parameters, arguments, subject, named, try) \
    WRAPPER_WITH(RETURN_UNLESS_BUSY(try), NOTHING, named, result, name, returns, parameters, arguments, subject, 0)
#define RETURN_UNLESS_BUSY(try) \
    int tried = LIKELY(!recorder.all_waits) ? (try) : EBUSY; \
    if (LIKELY(tried != EBUSY)) \
    return tried
#define WRAPPER_OF_SHAPE(name, shape, ...) SHAPE_##shape(WRAPPER, name)
NATIVE_CALLS(WRAPPER_OF_SHAPE)

#define ROW(library, name, shape, kinds, choice, detail, moves, effect) \
    {library, #name, kinds, choice, detail, moves, effect, (void *)native_##name},
#define ROW_OF_C(name, shape, ...) ROW("libc", name, shape, __VA_ARGS__)
#define ROW_OF_OPENSSL(name, shape, ...) ROW("libssl", name, shape, __VA_ARGS__)
#define ROW_OF_GNUTLS(name, shape, ...) ROW("libgnutls", name, shape, __VA_ARGS__)
const struct native_row native_rows[] = {
    DIRECT_CALLS(ROW_OF_C) OPENSSL_CALLS(ROW_OF_OPENSSL) GNUTLS_CALLS(ROW_OF_GNUTLS) STREAM_CALLS(ROW_OF_C)};
