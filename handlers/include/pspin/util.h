/* util.h: small helpers. */
#ifndef PSPIN_UTIL_H
#define PSPIN_UTIL_H

#include <stdint.h>
#include <stdio.h>

#define MIN(a, b) (((a) < (b)) ? (a) : (b))
#define MAX(a, b) (((a) > (b)) ? (a) : (b))
#define AND(a, b) ((a) & (b))
#define DIV_CEIL(a, b) (((a) + (b)-1) / (b))
/* The remainder of `a` divided by `b`, a power of two, and the quotient of `a` and the power of two with this
 * logarithm. */
#define FAST_MOD(a, b) ((a) & ((b) - 1))
#define FAST_DIV(a, log2_b) ((a) >> (log2_b))

#define STRINGIFY(x) #x
#define read_csr(reg, val) __asm__ volatile("csrr %0, " STRINGIFY(reg) : "=r"(val));
#define write_csr(reg, val) __asm__ volatile("csrw " STRINGIFY(reg) ", %0" : : "rK"(val) : "memory");
#define clear_csr(reg, mask) __asm__ volatile("csrc " STRINGIFY(reg) ", %0" : : "rK"(mask) : "memory");
#define read_register(reg, val) __asm__ volatile("addi %0, " STRINGIFY(reg) ", 0" : "=r"(val));
#define write_register(reg, val) __asm__ volatile("addi " STRINGIFY(reg) ", %0, 0" : : "r"(val) : "memory");

#define LABEL(name) __asm__ volatile(#name ":" ::: "memory")
#ifdef ENABLE_TRACING
#define TRACING_DUMMY_INSTR() __asm__ volatile("nop")
#else
#define TRACING_DUMMY_INSTR()
#endif

/* Stops the handler here. Reports this text if the compiler can do so. */
#if defined(__has_builtin) && __has_builtin(__builtin_verbose_trap)
#define PSPIN_STOP(text) __builtin_verbose_trap("pspin", text)
#else
#define PSPIN_STOP(text) __builtin_trap()
#endif

/* On PsPIN, this macro ends the simulation. Here it stops the handler, so that the run fails and the error names the
 * line. */
#define TERMINATE { PSPIN_STOP("the program ends the simulation (TERMINATE)"); }

/* With CHECK_ASSERTS, a condition that is not true is printed, and has the effect of TERMINATE. */
#ifdef CHECK_ASSERTS
#define ASSERT(condition)                                                                              \
    if (!(condition)) {                                                                                \
        printf("Assertion fail: " #condition " at " __FILE__ ":%d\n", __LINE__);                       \
        PSPIN_STOP("assertion failed: " #condition);                                                   \
    }
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
