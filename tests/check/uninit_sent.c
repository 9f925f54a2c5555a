/* Sends a record to the host. The bug leaves a field of it without a value. */
#include <nicety.h>

typedef struct {
    uint32_t offset, length, first, sum;
} record_t;

static __attribute__((noinline)) void describe(const ptl_payload_t *p, record_t *record) {
    record->offset = p->offset;
    record->length = p->length;
    record->first = p->base[0];
#ifndef BUG
    record->sum = p->base[0] + p->base[1];
#endif
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    record_t record;
    (void)state;
    describe(&p, &record);
    PtlHandlerDMAToHostB(&record, 0, sizeof record, PTL_HANDLER_HOST_MEM); // bug
    return SUCCESS;
}
