# Native calls (cext/native/): their declarations, and which of them are recorded.

def native_calls():
    """What there is to declare of native intrinsics: tuples of library, name, kinds, choice, detail, bytes and effect, and
    whether buffers are above files."""
    return [(*native_row(&native_rows[number]), number >= FIRST_STREAM) for number in range(NATIVE_COUNT)]


def database_calls():
    """The same of those that only programs have which are not Python."""
    return [(*native_row(&database_rows[number]), False) for number in range(DATABASE_COUNT)]


cdef tuple native_row(const c_native_row *row):
    texts = (row.library, row.name, row.kinds, row.choice, row.detail, row.moves, row.effect)
    return tuple([(<bytes>text).decode() for text in texts])


cdef bint know_native(object intrinsic) except False:
    """From now on its calls are recorded, where objects are patched for them."""
    cdef int number
    cdef bytes name = intrinsic.qualified.rpartition(".")[2].encode()
    if not native_is_on():
        native_prepare()
    for number in range(NATIVE_COUNT):
        if strcmp(native_rows[number].name, name) == 0:
            if natives[number].real == NULL and not native_is_tls(number):
                raise NotInterposed("the C library has no such function")
            natives[number].slot.numbers = 0
            fit(&natives[number].slot, intrinsic)
            return know_of_programs(intrinsic)
    raise NotInterposed(ABSENT)


cdef bint know_of_programs(object intrinsic) except False:
    """From now on programs that are not Python have it."""
    cdef xml_text entry
    name = intrinsic.qualified.rpartition(".")[2]
    memset(&entry, 0, sizeof(entry))
    map_entry(&entry, intrinsic, b"import table", "")
    _natives.append((name, intrinsic.number, intrinsic.levels, taken(&entry)))
    return True


cdef bint look_at_objects() except False:
    """Patch the objects that were loaded since the last time, and watch what ctypes loads."""
    if native_is_on():
        native_look()
        module = _modules.get("_ctypes")
        if PyModule_Check(module) and _kept.get("_ctypes") is not module:
            _kept["_ctypes"] = module
            put_hook(module, "dlopen", <void *>see_dlopen, SIGNATURE_pair)
    return True
