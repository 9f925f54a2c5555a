/* standard.c: the part of stdlib.h, errno.h and time.h that needs neither files nor a heap. Linked into programs that
 * call one of these functions. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A program may define its own functions instead. */
#pragma weak abs
#pragma weak labs
#pragma weak llabs
#pragma weak div
#pragma weak ldiv
#pragma weak lldiv
#pragma weak atoi
#pragma weak atol
#pragma weak atoll
#pragma weak strtol
#pragma weak strtoul
#pragma weak strtoll
#pragma weak strtoull
#pragma weak rand
#pragma weak srand
#pragma weak qsort
#pragma weak bsearch
#pragma weak exit
#pragma weak abort
#pragma weak clock
#pragma weak time

int errno;

int abs(int value) { return value < 0 ? -value : value; }
long labs(long value) { return value < 0 ? -value : value; }
long long llabs(long long value) { return value < 0 ? -value : value; }
div_t div(int dividend, int divisor) { return (div_t){dividend / divisor, dividend % divisor}; }
ldiv_t ldiv(long dividend, long divisor) { return (ldiv_t){dividend / divisor, dividend % divisor}; }
lldiv_t lldiv(long long dividend, long long divisor) { return (lldiv_t){dividend / divisor, dividend % divisor}; }

static int digit_of(char character) {
    if (isdigit(character)) return character - '0';
    if (isalpha(character)) return tolower(character) - 'a' + 10;
    return INT_MAX;
}

/* Reads magnitude and sign of a number in a text. A magnitude above `most` becomes `most`. */
static uint64_t read_number(const char *text, char **end, int base, uint64_t most, bool *negative, bool *fits) {
    const char *at = text;
    *negative = false;
    *fits = true;
    while (isspace(*at)) at++;
    if (*at == '-' || *at == '+') *negative = *at++ == '-';
    if ((base == 0 || base == 16) && at[0] == '0' && tolower(at[1]) == 'x' && digit_of(at[2]) < 16) {
        at += 2;
        base = 16;
    } else if (base == 0) {
        base = *at == '0' ? 8 : 10;
    }
    uint64_t value = 0;
    const char *first = at;
    for (; digit_of(*at) < base; at++) {
        uint64_t digit = (uint64_t)digit_of(*at);
        if (value > (most - digit) / (uint64_t)base) *fits = false;
        value = value * (uint64_t)base + digit;
    }
    if (end) *end = (char *)(at == first ? text : at);
    if (at == first) errno = EINVAL;
    if (!*fits) errno = ERANGE;
    return *fits ? value : most;
}

static int64_t read_signed(const char *text, char **end, int base, uint64_t most) {
    bool negative, fits;
    /* There is one more number below zero than above zero. */
    uint64_t value = read_number(text, end, base, most + 1, &negative, &fits);
    if (negative) return (int64_t)-value;
    if (value > most) errno = ERANGE;
    return (int64_t)(value > most ? most : value);
}

static uint64_t read_unsigned(const char *text, char **end, int base, uint64_t most) {
    bool negative, fits;
    uint64_t value = read_number(text, end, base, most, &negative, &fits);
    return negative && fits ? -value : value;
}

long strtol(const char *restrict text, char **restrict end, int base) {
    return (long)read_signed(text, end, base, LONG_MAX);
}
long long strtoll(const char *restrict text, char **restrict end, int base) {
    return read_signed(text, end, base, LLONG_MAX);
}
unsigned long strtoul(const char *restrict text, char **restrict end, int base) {
    return (unsigned long)read_unsigned(text, end, base, ULONG_MAX);
}
unsigned long long strtoull(const char *restrict text, char **restrict end, int base) {
    return read_unsigned(text, end, base, ULLONG_MAX);
}
int atoi(const char *text) { return (int)strtol(text, 0, 10); }
long atol(const char *text) { return strtol(text, 0, 10); }
long long atoll(const char *text) { return strtoll(text, 0, 10); }

/* The state of Marsaglia's xorshift of 64 bits (Journal of Statistical Software 8(14), 2003). Its upper bits are the
 * random number. */
static uint64_t random_state = 88172645463325252u;

void srand(unsigned seed) { random_state = 88172645463325252u ^ ((uint64_t)seed << 32 | seed); }

int rand(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int)(random_state >> 33);
}

static void swap(char *a, char *b, size_t size) {
    for (; size > 0; size--, a++, b++) {
        char kept = *a;
        *a = *b;
        *b = kept;
    }
}

/* Moves the element at `root` down until no element below it is greater. */
static void sink(char *base, size_t root, size_t count, size_t size, int (*compare)(const void *, const void *)) {
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && compare(base + child * size, base + (child + 1) * size) < 0) child++;
        if (compare(base + root * size, base + child * size) >= 0) return;
        swap(base + root * size, base + child * size, size);
    }
}

void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *)) {
    /* The algorithm is heapsort, which has no recursion, because a stack has only a few KiB. */
    for (size_t root = count / 2; root-- > 0;) sink(base, root, count, size, compare);
    for (; count > 1; count--) {
        swap(base, (char *)base + (count - 1) * size, size);
        sink(base, 0, count - 1, size, compare);
    }
}

void *bsearch(const void *key, const void *base, size_t count, size_t size, int (*compare)(const void *, const void *)) {
    const char *low = base;
    while (count > 0) {
        const char *middle = low + count / 2 * size;
        int order = compare(key, middle);
        if (order == 0) return (void *)middle;
        if (order > 0) {
            low = middle + size;
            count--;
        }
        count /= 2;
    }
    return 0;
}

void exit(int code) {
    register int a0 __asm__("a0") = code;
    register int a7 __asm__("a7") = 93;
    __asm__ volatile("ecall" : : "r"(a0), "r"(a7));
    __builtin_unreachable();
}

void abort(void) {
    __asm__ volatile("ebreak");
    __builtin_unreachable();
}

/* Reads a counter's register. The option adds Zicsr, because the assembler's isa may lack this extension. */
#define COUNTER(name)                                                                                          \
    ({                                                                                                         \
        unsigned long count;                                                                                   \
        __asm__ volatile(".option push\n\t.option arch, +zicsr\n\tcsrr %0, " name "\n\t.option pop" : "=r"(count)); \
        count;                                                                                                 \
    })

clock_t clock(void) {
#if __riscv_xlen == 64
    return (clock_t)COUNTER("cycle");
#else
    for (;;) {
        unsigned long high = COUNTER("cycleh"), low = COUNTER("cycle");
        if (COUNTER("cycleh") == high) return (clock_t)high << 32 | low;
    }
#endif
}

time_t time(time_t *now) {
    if (now) *now = -1;
    return -1;
}
