/* Counts packets in a variable of the program. The bug adds without an atomic operation. */
#include <nicety.h>

static int n;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    (void)p, (void)state;
#ifdef BUG
    n++; // bug
#else
    __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED);
#endif
    return SUCCESS;
}
