/* util.h: small helpers. */
#ifndef PSPIN_UTIL_H
#define PSPIN_UTIL_H

#include <stdint.h>

#define MIN(a, b) (((a) < (b)) ? (a) : (b))
#define MAX(a, b) (((a) > (b)) ? (a) : (b))
#define DIV_CEIL(a, b) (((a) + (b)-1) / (b))
/* a modulo b, where b is a power of two, and a divided by a power of two, whose logarithm is given. */
#define FAST_MOD(a, b) ((a) & ((b) - 1))
#define FAST_DIV(a, log2_b) ((a) >> (log2_b))

#define STRINGIFY(x) #x
#define read_csr(reg, val) __asm__ volatile("csrr %0, " STRINGIFY(reg) : "=r"(val));
#define write_csr(reg, val) __asm__ volatile("csrw " STRINGIFY(reg) ", %0" : : "rK"(val) : "memory");

/* With CHECK_ASSERTS a condition that does not hold stops the handler. */
#ifdef CHECK_ASSERTS
#define ASSERT(condition)                                                                              \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            printf("%s:%d: assertion failed: %s\n", __FILE__, __LINE__, #condition);                  \
            __builtin_trap();                                                                          \
        }                                                                                              \
    } while (0)
#else
#define ASSERT(condition)
#endif

#define SPIN_PRINTF(format, ...)                                                                       \
    printf("%s:%s:%d: " format, __FILE__, __func__, __LINE__, ##__VA_ARGS__)
#ifdef LOG
#define DEBUG_PRINT(format, ...) SPIN_PRINTF(format, ##__VA_ARGS__)
#else
#define DEBUG_PRINT(...)
#endif

#endif
