/* locks.h: a lock in a memory of the card, as authors of processes write it. */
#ifndef LOCKS_H
#define LOCKS_H

#include <nfp.h>

NFP_INLINE void take(volatile uint32_t *lock) {
    while (nfp_swap(lock, 1)) {
    }
}

NFP_INLINE void give(volatile uint32_t *lock) { nfp_swap(lock, 0); }

#endif
