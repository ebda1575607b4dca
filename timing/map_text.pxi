# Text for the map and the log, by cext/core/xml_text.h.

cdef bint add_escaped(xml_text *out, str text) except False:
    """Put text as it may stand in XML."""
    cdef Py_ssize_t bytes = 0
    cdef const char *encoded
    if not text.isascii():
        text = "".join([letter if letter.isprintable() else "?" for letter in text])
    encoded = PyUnicode_AsUTF8AndSize(text, &bytes)
    xml_put_escaped(out, encoded, bytes)
    return True


cdef bint add_attribute(xml_text *out, const char *begin, str text) except False:
    """Put an attribute, unless its text is empty."""
    if text:
        xml_put(out, begin)
        add_escaped(out, text)
        xml_put(out, b'"')
    return True


cdef str taken(xml_text *text):
    """The text as a str; frees its memory. Raises MemoryError."""
    try:
        if text.failed:
            raise MemoryError
        return text.text[:text.bytes].decode()
    finally:
        xml_free(text)


cdef str escape(str text):
    """Text as it may stand in XML."""
    cdef xml_text escaped
    memset(&escaped, 0, sizeof(escaped))
    add_escaped(&escaped, text)
    return taken(&escaped)


cdef bint append_to_map(xml_text *entries) except False:
    """Append the entries, if any, to the map, and free their memory."""
    try:
        if entries.bytes:
            xml_put(entries, b"</map>\n")
        if not entries.failed and entries.bytes:
            recorder_map(entries.text, entries.bytes)
    finally:
        xml_free(entries)
    return True


cdef bint note_in_map(object entries) except False:
    """Write elements into the map: pairs of a name and its attributes."""
    cdef xml_text text
    cdef str tag, name
    memset(&text, 0, sizeof(text))
    try:
        for tag, attributes in entries:
            xml_put(&text, b"  <")
            add_escaped(&text, tag)
            for name, value in attributes.items():
                xml_put(&text, b" ")
                add_escaped(&text, name)
                xml_put(&text, b'="')
                add_escaped(&text, value)
                xml_put(&text, b'"')
            xml_put(&text, b"/>\n")
        return append_to_map(&text)
    finally:
        xml_free(&text)
