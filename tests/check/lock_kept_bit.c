/* A lock in bit 0 of a word with a mark in bit 1. It is released by a mask. The bug keeps it in one path. */
#include <nicety.h>

static uint32_t word;
static volatile uint32_t packets;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    while (__atomic_fetch_or(&word, 1, __ATOMIC_ACQUIRE) & 1) { // bug
    }
    packets++;
    __atomic_fetch_or(&word, 2, __ATOMIC_RELAXED);
#ifdef BUG
    if (p.offset == 448) return SUCCESS;
#endif
    __atomic_fetch_and(&word, ~1u, __ATOMIC_RELEASE);
    return SUCCESS;
}
