/* pspin.h: atomic operations, futexes and pauses of a PsPIN handler. Commands and locks are in handler.h. */
#ifndef PSPIN_PSPIN_H
#define PSPIN_PSPIN_H

#include <hal/pulp.h>

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define PSPIN_INLINE static inline __attribute__((always_inline, unused))

#define MEM_ALIGNMENT 4
#define ALIGN_UP(NUM, ALIGN) ((((uint32_t)(NUM)) + ((ALIGN)-1)) & ~((ALIGN)-1))
#define DMA_MAX_XFER_SIZE 32768
#define DMA_NULL 0

typedef uint32_t dma_t;
typedef volatile uint32_t futex_t; /* 0 if it is free, or 1 if it is taken */

/* Waits for about `cycles` cycles. A round of the loop of two instructions takes 4 cycles. There is no round for 4 or
 * fewer cycles. */
PSPIN_INLINE void rt_time_wait_cycles(const unsigned cycles) {
    unsigned turns = cycles, least;
    __asm__ volatile("li %1, 4\n\t"
                     "ble %0, %1, 2f\n\t"
                     "srli %0, %0, 2\n"
                     "1: addi %0, %0, -1\n\t"
                     "bnez %0, 1b\n"
                     "2:"
                     : "+r"(turns), "=&r"(least));
}

/* Keeps the compiler from moving accesses across this fence. */
PSPIN_INLINE void asm_mem_fence(void) { __asm__ volatile("" ::: "memory"); }

PSPIN_INLINE uint32_t load_reserved(volatile const uint32_t *const addr) {
    uint32_t value;
    __asm__ volatile("lr.w %0, (%1)" : "=r"(value) : "r"(addr) : "memory");
    return value;
}

/* Returns 0 if the value was stored, or 1 if the reservation was lost. For an address without memory, PsPIN returns 2
 * or 3. Here such an address stops the handler. */
PSPIN_INLINE unsigned store_conditional(volatile uint32_t *const addr, const uint32_t val) {
    unsigned failed;
    __asm__ volatile("sc.w %0, %2, (%1)" : "=r"(failed) : "r"(addr), "r"(val) : "memory");
    return failed;
}

/* Makes one attempt to swap. Returns 0 if it swapped, -1 if another value was there, or a positive number if the
 * reservation was lost. */
PSPIN_INLINE int compare_and_swap(volatile uint32_t *const addr, const uint32_t old, const uint32_t new) {
    return load_reserved(addr) == old ? (int)store_conditional(addr, new) : -1;
}

/* Atomic operations on words. Each returns the previous value. */
#define PSPIN_AMO(name, type, instruction)                                                              \
    PSPIN_INLINE type name(volatile type *const addr, const type val) {                                 \
        type before;                                                                                    \
        __asm__ volatile(instruction " %0, %2, (%1)" : "=r"(before) : "r"(addr), "r"(val) : "memory");  \
        return before;                                                                                  \
    }
PSPIN_AMO(amo_add, int32_t, "amoadd.w")
PSPIN_AMO(amo_min, int32_t, "amomin.w")
PSPIN_AMO(amo_max, int32_t, "amomax.w")
PSPIN_AMO(amo_swap, uint32_t, "amoswap.w")
PSPIN_AMO(amo_and, uint32_t, "amoand.w")
PSPIN_AMO(amo_or, uint32_t, "amoor.w")
PSPIN_AMO(amo_xor, uint32_t, "amoxor.w")
PSPIN_AMO(amo_minu, uint32_t, "amominu.w")
PSPIN_AMO(amo_maxu, uint32_t, "amomaxu.w")

PSPIN_INLINE void amo_store(volatile uint32_t *const addr, const uint32_t val) {
    __asm__ volatile("amoswap.w zero, %1, (%0)" : : "r"(addr), "r"(val) : "memory");
}

PSPIN_INLINE void futex_init(futex_t *futex) { amo_store(futex, 0); }
PSPIN_INLINE void futex_unlock(futex_t *futex) { futex_init(futex); }

/* Returns 1 if the futex was free and is taken now, or 0 if it was not free. */
PSPIN_INLINE int futex_try_lock(futex_t *futex) { return amo_or(futex, 1) == 0; }

/* Both functions return 1 when they have taken the futex. The second function pauses between its attempts. */
PSPIN_INLINE int futex_lock(futex_t *futex) {
    while (!futex_try_lock(futex)) {
    }
    return 1;
}
PSPIN_INLINE int futex_lock_s(futex_t *futex) {
    while (!futex_try_lock(futex)) rt_time_wait_cycles(32);
    return 1;
}

#endif
