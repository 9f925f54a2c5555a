/* stdio.h: the header of nicety's runtime, and a printf that prints to the simulation's log, with time, node and core.
 * The conversions are d i u x X o c s p and %. Flags, width, precision and the lengths hh h l ll z are supported.
 * Floating point is not supported. */
#include_next <stdio.h>
#ifndef PSPIN_STDIO_H
#define PSPIN_STDIO_H

#include <stdarg.h>
#include <stdint.h>

enum { PSPIN_CALL_PRINTF = 0x150 };

__attribute__((format(__printf__, 1, 2), unused, noinline)) static int pspin_printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    register uint32_t a0 __asm__("a0") = (uint32_t)(uintptr_t)format;
    register uint32_t a1 __asm__("a1") = (uint32_t)(uintptr_t)arguments;
    register uint32_t a7 __asm__("a7") = PSPIN_CALL_PRINTF;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a7) : "memory");
    va_end(arguments);
    return (int)a0;
}
#define printf pspin_printf

#endif
