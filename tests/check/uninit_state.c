/* Copies a record whole into the state. The completion handler uses a field of it: the bug one that never had a value. The
 * copy is no bug, and neither are its bytes of padding. */
#include <nicety.h>

typedef struct {
    uint8_t kind;
    uint32_t length, flags;
} record_t;

static __attribute__((noinline)) void describe(const ptl_payload_t *p, record_t *record) {
    record->kind = p->base[0];
    record->length = p->length;
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    record_t record;
    describe(&p, &record);
    if (p.offset == 0)
        *(record_t *)state = record;
    return SUCCESS;
}

__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    record_t *record = state;
    (void)dropped_bytes, (void)flow_control_triggered;
#ifdef BUG
    uint32_t used = record->flags;
#else
    uint32_t used = record->length;
#endif
    if (used & 64) // bug
        PtlHandlerDMAToHostB(&record->length, 0, 4, PTL_HANDLER_HOST_MEM);
    return SUCCESS;
}
