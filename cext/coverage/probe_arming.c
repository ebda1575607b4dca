#include "coverage/probe_arming.h"

#if !HAS_MONITORING

static _Py_CODEUNIT unit_with(uint8_t opcode, uint32_t argument)
{
    return _Py_MAKECODEUNIT(opcode, argument & 255);
}

void arm(PyCodeObject *code, const struct probes *probes, struct probe *probe)
{
    _Py_CODEUNIT *at = _PyCode_CODE(code) + probe->unit;
    uint32_t stub = probes->first_stub + (uint32_t)(probe - probes->probe) * STUB_UNITS;
    uint32_t way = stub - (probe->unit + probe->units);
    if (probe->units == 2)
        *at++ = unit_with(EXTENDED_ARG, way >> 8);
    *at = unit_with(JUMP_FORWARD, way);
    probe->is_armed = true;
}

/* The replacement of an instruction in code that has run often enough. */
static uint8_t quick(uint8_t opcode)
{
    switch (opcode) {
    case BINARY_OP: return BINARY_OP_ADAPTIVE;
    case BINARY_SUBSCR: return BINARY_SUBSCR_ADAPTIVE;
    case CALL: return CALL_ADAPTIVE;
    case COMPARE_OP: return COMPARE_OP_ADAPTIVE;
    case LOAD_ATTR: return LOAD_ATTR_ADAPTIVE;
    case LOAD_GLOBAL: return LOAD_GLOBAL_ADAPTIVE;
    case LOAD_METHOD: return LOAD_METHOD_ADAPTIVE;
    case PRECALL: return PRECALL_ADAPTIVE;
    case STORE_ATTR: return STORE_ATTR_ADAPTIVE;
    case STORE_SUBSCR: return STORE_SUBSCR_ADAPTIVE;
    case UNPACK_SEQUENCE: return UNPACK_SEQUENCE_ADAPTIVE;
    case JUMP_BACKWARD: return JUMP_BACKWARD_QUICK;
    case EXTENDED_ARG: return EXTENDED_ARG_QUICK;
    default: return opcode;
    }
}

static uint8_t pair(uint8_t first, uint8_t second)
{
    if (first == LOAD_FAST && second == LOAD_FAST)
        return LOAD_FAST__LOAD_FAST;
    if (first == LOAD_FAST && second == LOAD_CONST)
        return LOAD_FAST__LOAD_CONST;
    if (first == LOAD_CONST && second == LOAD_FAST)
        return LOAD_CONST__LOAD_FAST;
    if (first == STORE_FAST && second == LOAD_FAST)
        return STORE_FAST__LOAD_FAST;
    if (first == STORE_FAST && second == STORE_FAST)
        return STORE_FAST__STORE_FAST;
    return 0;
}

/* Two instructions become one, as the interpreter makes them when it has run code often enough. */
static void put_together(_Py_CODEUNIT *code, const _Py_CODEUNIT *compiled, uint32_t unit, uint32_t units)
{
    if (unit + 1 >= units || code[unit] != compiled[unit] ||
        _Py_OPARG(code[unit + 1]) != _Py_OPARG(compiled[unit + 1]))
        return;
    uint8_t live = _Py_OPCODE(code[unit + 1]), second = _Py_OPCODE(compiled[unit + 1]);
    uint8_t both = pair(_Py_OPCODE(compiled[unit]), second);
    if (both && (live == second || pair(second, LOAD_FAST) == live || pair(second, LOAD_CONST) == live ||
                 pair(second, STORE_FAST) == live))
        code[unit] = unit_with(both, _Py_OPARG(code[unit]));
}

void disarm(PyCodeObject *code, struct probe *probe)
{
    _Py_CODEUNIT *units = _PyCode_CODE(code);
    const _Py_CODEUNIT *compiled = (const _Py_CODEUNIT *)PyBytes_AS_STRING(code->_co_code);
    uint32_t count = (uint32_t)(PyBytes_GET_SIZE(code->_co_code) / 2), end = probe->unit + probe->units;
    if (!probe->is_armed)
        return;
    probe->is_armed = false;
    for (uint32_t unit = probe->unit; unit < end; unit++) {
        uint8_t opcode = _Py_OPCODE(compiled[unit]);
        units[unit] = unit_with(code->co_warmup ? opcode : quick(opcode), _Py_OPARG(compiled[unit]));
    }
    if (!code->co_warmup)
        for (uint32_t unit = probe->unit ? probe->unit - 1 : 0; unit < end; unit++)
            put_together(units, compiled, unit, count);
}

void arm_again(PyCodeObject *code, const struct probes *probes, struct probe *probe)
{
    _Py_CODEUNIT *units = _PyCode_CODE(code);
    const _Py_CODEUNIT *compiled = (const _Py_CODEUNIT *)PyBytes_AS_STRING(code->_co_code);
    uint32_t before = probe->unit ? probe->unit - 1 : 0;
    uint8_t opcode = _Py_OPCODE(compiled[probe->unit]), first = _Py_OPCODE(compiled[before]);
    bool is_passed_over = (opcode >= POP_JUMP_FORWARD_IF_FALSE && opcode <= POP_JUMP_FORWARD_IF_TRUE) ||
                          opcode == STORE_FAST || opcode == CALL || probe->units > 1;
    if (is_passed_over) /* by what was specialised on it; it is not reached a second time */
        return;
    if (pair(first, opcode))
        units[before] = compiled[before];
    arm(code, probes, probe);
}

void put_stub(_Py_CODEUNIT *at, uint32_t unit, uint32_t back)
{
    uint32_t way = unit + STUB_UNITS - back;
    at[0] = unit_with(LOAD_ASSERTION_ERROR, 0);
    at[1] = unit_with(UNARY_INVERT, 0);
    at[2] = unit_with(POP_TOP, 0);
    at[3] = unit_with(EXTENDED_ARG, way >> 8);
    at[4] = unit_with(JUMP_BACKWARD_NO_INTERRUPT, way);
}

#endif
