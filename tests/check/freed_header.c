/* The header handler finds a field in the first packet. The bug reads it again in handlers of other packets. */
#include <nicety.h>

typedef struct {
    const uint8_t *at;
    uint32_t field, total;
} kept_t;

__handler int header_handler(const ptl_header_t h, void *state) {
    kept_t *kept = state;
    kept->at = h.base + 4;
    kept->field = h.base[4];
    return PROCESS_DATA;
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    kept_t *kept = state;
    (void)p;
#ifdef BUG
    uint32_t field = *kept->at; // bug
#else
    uint32_t field = kept->field;
#endif
    __atomic_fetch_add(&kept->total, field, __ATOMIC_RELAXED);
    return SUCCESS;
}
