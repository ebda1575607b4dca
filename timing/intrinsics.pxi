# What is declared of an intrinsic, as the shims read it.

@no_gc  # what leads back to it are shims, which are taken out again
cdef class Declared:
    """What an interpose.library.Intrinsic says, where compiled code finds it at once. Nothing of that class is imported
    for what the system library declares: a start of Python unpacks it (interpose/bundle.py)."""

    cdef readonly object argument, attribute, by, bytes, choice, detail, effect, headers, keyword, kinds, levels, library
    cdef readonly object lock, module, name, number, order, others, overrides, passes, passes_on, place, qualified, raises
    cdef readonly object route, sampled, suffix, target, terminal, transaction, waits, wrapper
    cdef readonly object is_on_request, is_pattern, is_transaction
    cdef object source  # the declaration, if it is one of a library's


cdef Declared as_declared(object intrinsic):
    cdef Declared one
    if type(intrinsic) is Declared:
        return intrinsic
    one = Declared.__new__(Declared)
    one.argument, one.attribute, one.by, one.bytes = intrinsic.argument, intrinsic.attribute, intrinsic.by, intrinsic.bytes
    one.choice, one.detail, one.effect, one.headers = intrinsic.choice, intrinsic.detail, intrinsic.effect, intrinsic.headers
    one.keyword, one.kinds, one.levels, one.lock = intrinsic.keyword, intrinsic.kinds, intrinsic.levels, intrinsic.lock
    one.library, one.module, one.name, one.number = intrinsic.library, intrinsic.module, intrinsic.name, intrinsic.number
    one.order, one.overrides, one.passes, one.place = intrinsic.order, intrinsic.overrides, intrinsic.passes, intrinsic.place
    one.passes_on, one.qualified, one.raises = intrinsic.passes_on, intrinsic.qualified, intrinsic.raises
    one.route, one.sampled, one.suffix, one.target = intrinsic.route, intrinsic.sampled, intrinsic.suffix, intrinsic.target
    one.terminal, one.transaction, one.waits = intrinsic.terminal, intrinsic.transaction, intrinsic.waits
    one.wrapper, one.is_on_request, one.is_pattern = intrinsic.wrapper, intrinsic.is_on_request, intrinsic.is_pattern
    one.is_transaction = intrinsic.is_transaction
    one.others = tuple([as_declared(each) for each in intrinsic.others])
    one.source = intrinsic
    return one


# What differs among the declarations of the system library, in the order in which it is packed: setup.py reads it here.
PACKED = (
    "number", "argument", "attribute", "by", "bytes", "choice", "detail", "effect", "headers", "keyword", "kinds", "levels", "lock",
    "module", "name", "passes", "qualified", "route", "target", "terminal", "transaction", "waits",
    "is_on_request", "is_transaction", "library",
)


@boundscheck(False)
@wraparound(False)
cdef list unpacked(str texts, bytes numbers):
    """The declarations of a module that interpose/bundle.py packed. They come from the same file as the code, so the
    positions are not checked."""
    cdef list values = [*_shared, *texts.split("\0")]
    cdef const uint16_t *at = <const uint16_t *><const char *>numbers
    cdef Declared one
    cdef list found = []
    for _ in range(len(numbers) // (2 * len(PACKED))):
        one = Declared.__new__(Declared)
        one.number = at[0]
        one.argument, one.attribute, one.by, one.bytes = values[at[1]], values[at[2]], values[at[3]], values[at[4]]
        one.choice, one.detail, one.effect, one.headers = values[at[5]], values[at[6]], values[at[7]], values[at[8]]
        one.keyword, one.kinds, one.levels, one.lock = values[at[9]], values[at[10]], values[at[11]], values[at[12]]
        one.module, one.name, one.passes, one.qualified = values[at[13]], values[at[14]], values[at[15]], values[at[16]]
        one.route, one.target, one.terminal, one.transaction = values[at[17]], values[at[18]], values[at[19]], values[at[20]]
        one.waits, one.is_on_request, one.is_transaction, one.library = values[at[21]], values[at[22]], values[at[23]], values[at[24]]
        one.order, one.others, one.place, one.passes_on, one.suffix = 0, (), "", "", ""
        one.overrides = one.raises = one.sampled = one.is_pattern = False
        found.append(one)
        at += 25
    return found


cdef bint is_packed(object intrinsics):
    return type(intrinsics) is tuple


cdef list declarations(object intrinsics):
    return [as_declared(each) for each in intrinsics]
