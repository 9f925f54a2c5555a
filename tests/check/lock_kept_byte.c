/* A lock in a byte beside another byte. The bug keeps it in one path. */
#include <nicety.h>

static struct {
    uint8_t kind, lock;
} shared;
static volatile uint32_t packets;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    while (__atomic_exchange_n(&shared.lock, 1, __ATOMIC_ACQUIRE)) { // bug
    }
    packets++;
#ifdef BUG
    if (p.offset == 448) return SUCCESS;
#endif
    __atomic_store_n(&shared.lock, 0, __ATOMIC_RELEASE);
    return SUCCESS;
}
