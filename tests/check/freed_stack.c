/* Leaves a record for the completion handler. The bug leaves the address of a local variable. */
#include <nicety.h>

typedef struct {
    uint32_t *record;
    uint32_t own, total;
} kept_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    kept_t *kept = state;
    volatile uint32_t local = p.base[0];
    if (p.offset == 0) {
#ifdef BUG
        kept->record = (uint32_t *)&local;
#else
        kept->own = local;
        kept->record = &kept->own;
#endif
    }
    return SUCCESS;
}

__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    kept_t *kept = state;
    (void)dropped_bytes, (void)flow_control_triggered;
    __atomic_fetch_add(&kept->total, *kept->record, __ATOMIC_RELAXED); // bug
    return SUCCESS;
}
