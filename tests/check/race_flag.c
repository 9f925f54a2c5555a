/* The first packet publishes a value, the others use it once it is there. The bug's flag is plain. */
#include <nicety.h>

typedef struct {
    uint32_t value, total;
    uint32_t ready;
} shared_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    shared_t *shared = state;
    if (p.offset == 0) {
        shared->value = p.base[0]; // bug
#ifdef BUG
        *(volatile uint32_t *)&shared->ready = 1; // bug
#else
        __atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
#endif
        return SUCCESS;
    }
#ifdef BUG
    if (*(volatile uint32_t *)&shared->ready) // bug
#else
    if (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE))
#endif
        __atomic_fetch_add(&shared->total, shared->value, __ATOMIC_RELAXED); // bug
    return SUCCESS;
}
