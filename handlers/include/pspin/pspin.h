/* pspin.h: commands to the card, atomic operations and locks of a handler written for PsPIN. */
#ifndef PSPIN_PSPIN_H
#define PSPIN_PSPIN_H

#include "handler.h"

#define PSPIN_INLINE static inline __attribute__((always_inline, unused))

/* The registers of the core that handlers use; see crates/nic/src/spin/handlers/pspin/hardware.rs. */
#define PSPIN_HARDWARE 0x1B205000u
#define PSPIN_REGISTER(offset) (*(volatile uint32_t *)(PSPIN_HARDWARE + (offset)))

enum { PSPIN_ISSUE = 0x80, PSPIN_WAIT = 0x84, PSPIN_TEST = 0x88, PSPIN_KIND = 0x8c, PSPIN_WORDS = 0x90 };
enum { PSPIN_HOST_DMA = 0, PSPIN_NIC_SEND = 1, PSPIN_HOST_WRITE = 2 };

typedef uint32_t spin_cmd_t;  /* a command in flight, 0 to 3 */

#define SPIN_SUCCESS 0
#define SPIN_OK SPIN_SUCCESS
#define SPIN_FAIL 1

/* A packet out of the card, the bytes of which are taken at once: back to where the handler's message comes from. Here it is
 * a put with the match bits of that message, for the same offset. */
PSPIN_INLINE int spin_send_packet(void *data, uint32_t length, spin_cmd_t *handle) {
    PSPIN_REGISTER(PSPIN_WORDS) = 0;
    PSPIN_REGISTER(PSPIN_WORDS + 4) = 0;
    PSPIN_REGISTER(PSPIN_WORDS + 8) = (uint32_t)(uintptr_t)data;
    PSPIN_REGISTER(PSPIN_WORDS + 12) = 0;
    PSPIN_REGISTER(PSPIN_WORDS + 16) = length;
    PSPIN_REGISTER(PSPIN_KIND) = PSPIN_NIC_SEND << 1;
    *handle = PSPIN_REGISTER(PSPIN_ISSUE);
    return SPIN_SUCCESS;
}

/* The same to a rank. */
PSPIN_INLINE int spin_rdma_put(uint32_t dest, void *data, uint32_t length, spin_cmd_t *handle) {
    PSPIN_REGISTER(PSPIN_WORDS) = dest;
    PSPIN_REGISTER(PSPIN_WORDS + 4) = 1;
    PSPIN_REGISTER(PSPIN_WORDS + 8) = (uint32_t)(uintptr_t)data;
    PSPIN_REGISTER(PSPIN_WORDS + 12) = 0;
    PSPIN_REGISTER(PSPIN_WORDS + 16) = length;
    PSPIN_REGISTER(PSPIN_KIND) = PSPIN_NIC_SEND << 1;
    *handle = PSPIN_REGISTER(PSPIN_ISSUE);
    return SPIN_SUCCESS;
}

PSPIN_INLINE int pspin_host_dma(uint64_t host, uint32_t nic, uint32_t length, uint32_t to_host, bool event,
                                spin_cmd_t *handle) {
    PSPIN_REGISTER(PSPIN_WORDS) = (uint32_t)host;
    PSPIN_REGISTER(PSPIN_WORDS + 4) = (uint32_t)(host >> 32);
    PSPIN_REGISTER(PSPIN_WORDS + 8) = nic;
    PSPIN_REGISTER(PSPIN_WORDS + 12) = length;
    PSPIN_REGISTER(PSPIN_WORDS + 16) = to_host;
    PSPIN_REGISTER(PSPIN_KIND) = PSPIN_HOST_DMA << 1 | event;
    *handle = PSPIN_REGISTER(PSPIN_ISSUE);
    return SPIN_SUCCESS;
}

/* Copies `length` bytes between the card's memory, at `nic`, and host memory: that of the task, or the handlers' second
 * region. The bytes to the host are taken at once; those from it are in place when their command has been waited for.
 * `event`: count one on the counter of the match entry. */
PSPIN_INLINE int spin_dma_to_host(uint64_t host, uint32_t nic, uint32_t length, bool event, spin_cmd_t *handle) {
    return pspin_host_dma(host, nic, length, 1, event, handle);
}
PSPIN_INLINE int spin_dma_from_host(uint64_t host, uint32_t nic, uint32_t length, bool event, spin_cmd_t *handle) {
    return pspin_host_dma(host, nic, length, 0, event, handle);
}

/* Writes 8 bytes to host memory. */
PSPIN_INLINE int spin_write_to_host(uint64_t host, uint64_t data, spin_cmd_t *handle) {
    PSPIN_REGISTER(PSPIN_WORDS) = (uint32_t)host;
    PSPIN_REGISTER(PSPIN_WORDS + 4) = (uint32_t)(host >> 32);
    PSPIN_REGISTER(PSPIN_WORDS + 8) = 8 << 1 | 1;
    PSPIN_REGISTER(PSPIN_WORDS + 12) = (uint32_t)data;
    PSPIN_REGISTER(PSPIN_WORDS + 16) = (uint32_t)(data >> 32);
    PSPIN_REGISTER(PSPIN_KIND) = PSPIN_HOST_WRITE << 1;
    *handle = PSPIN_REGISTER(PSPIN_ISSUE);
    return SPIN_SUCCESS;
}
#define spin_host_write spin_write_to_host

/* Waits until a command is done, and whether it is. */
PSPIN_INLINE int spin_cmd_wait(spin_cmd_t handle) {
    PSPIN_REGISTER(PSPIN_WAIT) = handle;
    __asm__ volatile("" ::: "memory");
    return SPIN_SUCCESS;
}
PSPIN_INLINE int spin_cmd_test(spin_cmd_t handle, bool *completed) {
    PSPIN_REGISTER(PSPIN_TEST) = handle;
    *completed = PSPIN_REGISTER(PSPIN_TEST) != 0;
    __asm__ volatile("" ::: "memory");
    return SPIN_SUCCESS;
}

/* Atomic operations on words; each returns the value before. */
#define PSPIN_AMO(name, type, instruction)                                                              \
    PSPIN_INLINE type name(volatile type *address, type value) {                                        \
        type before;                                                                                    \
        __asm__ volatile(instruction " %0, %2, (%1)" : "=r"(before) : "r"(address), "r"(value) : "memory"); \
        return before;                                                                                  \
    }
PSPIN_AMO(amo_add, int32_t, "amoadd.w")
PSPIN_AMO(amo_swap, int32_t, "amoswap.w")
PSPIN_AMO(amo_and, int32_t, "amoand.w")
PSPIN_AMO(amo_or, int32_t, "amoor.w")
PSPIN_AMO(amo_xor, int32_t, "amoxor.w")
PSPIN_AMO(amo_min, int32_t, "amomin.w")
PSPIN_AMO(amo_max, int32_t, "amomax.w")
PSPIN_AMO(amo_minu, uint32_t, "amominu.w")
PSPIN_AMO(amo_maxu, uint32_t, "amomaxu.w")

PSPIN_INLINE int32_t load_reserved(volatile int32_t *address) {
    int32_t value;
    __asm__ volatile("lr.w %0, (%1)" : "=r"(value) : "r"(address) : "memory");
    return value;
}
/* 0 if it has stored. */
PSPIN_INLINE int32_t store_conditional(volatile int32_t *address, int32_t value) {
    int32_t failed;
    __asm__ volatile("sc.w %0, %2, (%1)" : "=r"(failed) : "r"(address), "r"(value) : "memory");
    return failed;
}
/* 0 if it has swapped, 1 if another value was there. */
PSPIN_INLINE int32_t compare_and_swap(volatile int32_t *address, int32_t old, int32_t value) {
    do {
        if (load_reserved(address) != old) return 1;
    } while (store_conditional(address, value) != 0);
    return 0;
}

/* Locks. */
typedef volatile int32_t spin_lock_t;

PSPIN_INLINE int spin_lock_init(spin_lock_t *lock) {
    *lock = 0;
    return SPIN_SUCCESS;
}
/* 0 if the lock was free and is taken now. */
PSPIN_INLINE int spin_lock_try_lock(spin_lock_t *lock) { return amo_swap(lock, 1); }
PSPIN_INLINE int spin_lock_lock(spin_lock_t *lock) {
    while (spin_lock_try_lock(lock) != 0)
        ;
    return SPIN_SUCCESS;
}
PSPIN_INLINE int spin_lock_unlock(spin_lock_t *lock) {
    amo_swap(lock, 0);
    return SPIN_SUCCESS;
}

/* Locks of any number of readers or one writer. */
typedef struct {
    volatile int32_t readers;
    spin_lock_t writer;
} spin_rw_lock_t;

PSPIN_INLINE int spin_rw_lock_init(spin_rw_lock_t *lock) {
    lock->readers = 0;
    return spin_lock_init(&lock->writer);
}
PSPIN_INLINE int spin_rw_lock_r_lock(spin_rw_lock_t *lock) {
    spin_lock_lock(&lock->writer);
    amo_add(&lock->readers, 1);
    return spin_lock_unlock(&lock->writer);
}
PSPIN_INLINE int spin_rw_lock_r_unlock(spin_rw_lock_t *lock) {
    amo_add(&lock->readers, -1);
    return SPIN_SUCCESS;
}
PSPIN_INLINE int spin_rw_lock_w_lock(spin_rw_lock_t *lock) {
    spin_lock_lock(&lock->writer);
    while (amo_add(&lock->readers, 0) != 0)
        ;
    return SPIN_SUCCESS;
}
PSPIN_INLINE int spin_rw_lock_w_unlock(spin_rw_lock_t *lock) { return spin_lock_unlock(&lock->writer); }

/* Calls of the runtime that are no accesses to registers. */
enum { PSPIN_CALL_PRINTF = 0x150, PSPIN_CALL_DMA = 0x160, PSPIN_CALL_UNTIL = 0x161 };

PSPIN_INLINE uint32_t pspin_call(uint32_t number, uint32_t x0, uint32_t x1, uint32_t x2) {
    register uint32_t a0 __asm__("a0") = x0;
    register uint32_t a1 __asm__("a1") = x1;
    register uint32_t a2 __asm__("a2") = x2;
    register uint32_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

/* Prints to the simulation's log, with time, node and core. Conversions: d i u x X o c s p and %, with flags, width,
 * precision and the lengths hh h l ll z; no floating point. */
#define printf pspin_printf /* that of stdio.h is for bare programs */
__attribute__((format(__printf__, 1, 2), unused, noinline)) static int pspin_printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = (int)pspin_call(PSPIN_CALL_PRINTF, (uint32_t)(uintptr_t)format, (uint32_t)(uintptr_t)arguments, 0);
    va_end(arguments);
    return written;
}

#endif
