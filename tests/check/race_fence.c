/* The first packet publishes a value by two flags behind one fence. The bug leaves out the fence of the others. */
#include <nicety.h>

typedef struct {
    volatile uint32_t value;
    uint32_t ready, second;
} shared_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    shared_t *shared = state;
    if (p.offset == 0) {
        shared->value = p.length; // bug
        __atomic_thread_fence(__ATOMIC_RELEASE);
        __atomic_store_n(&shared->ready, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&shared->second, 1, __ATOMIC_RELAXED);
        return SUCCESS;
    }
    while (!__atomic_load_n(&shared->ready, __ATOMIC_RELAXED)) {
    }
#ifndef BUG
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
    return shared->value == 64 ? SUCCESS : DROP; // bug
}
