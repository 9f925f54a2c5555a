/* A lock that a subtraction releases. The bug keeps it in one path. */
#include <nicety.h>

static uint32_t lock;
static volatile uint32_t packets;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) { // bug
    }
    packets++;
#ifdef BUG
    if (p.offset == 448) return SUCCESS;
#endif
    __atomic_fetch_sub(&lock, 1, __ATOMIC_RELEASE);
    return SUCCESS;
}
