/* What compilers turn into calls and tables: copies of structures, switches, packed members, floating point. Writes a
 * line and exits with 42, or with the number of the first check that failed. */
#include <stdint.h>

#define CHECK(number, holds) \
    if (!(holds)) return number

struct large {
    uint8_t bytes[300];
};

struct __attribute__((packed)) header {
    uint8_t kind;
    uint32_t length;
    uint64_t match_bits;
};

static struct large source, target;
static const uint32_t constants[] = {2, 3, 5, 7, 11};
static uint32_t initialised = 0x12345678;
static uint32_t zero;

static __attribute__((noinline)) int by_table(int x) {
    switch (x) {
        case 0: return 17;
        case 1: return -4;
        case 2: return 1000;
        case 3: return 3;
        case 4: return 77;
        case 5: return 123456;
        case 6: return 8;
        default: return 0;
    }
}

static __attribute__((noinline)) int by_jump(int x, int (*f)(int)) {
    switch (x) {
        case 0: return f(1) + 1;
        case 1: return f(f(0));
        case 2: return f(2) / 7;
        case 3: return f(x) * f(x);
        case 4: return f(5) - x;
        case 5: return f(6) << 2;
        default: return -1;
    }
}

static __attribute__((noinline)) uint64_t sum_of_packed(const struct header *headers, int count) {
    uint64_t sum = 0;
    for (int i = 0; i < count; i++) sum += headers[i].kind + headers[i].length + headers[i].match_bits;
    return sum;
}

static void write_line(const char *text, uint32_t length) {
    register uint32_t a0 __asm__("a0") = 1;
    register const char *a1 __asm__("a1") = text;
    register uint32_t a2 __asm__("a2") = length;
    register uint32_t a7 __asm__("a7") = 64;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
}

int main(void) {
    for (int i = 0; i < 300; i++) source.bytes[i] = (uint8_t)(i * 7);
    target = source;
    for (int i = 0; i < 300; i++) CHECK(1, target.bytes[i] == (uint8_t)(i * 7));

    static const int table[] = {17, -4, 1000, 3, 77, 123456, 8, 0};
    for (int i = 0; i < 8; i++) CHECK(2, by_table(i) == table[i]);
    static const int jumped[] = {-3, 0, 142, 9, 123452, 32, -1};
    for (int i = 0; i < 7; i++) CHECK(3, by_jump(i, by_table) == jumped[i]);

    struct header headers[5];
    for (int i = 0; i < 5; i++) headers[i] = (struct header){(uint8_t)i, 1u << 30, (uint64_t)i << 40};
    CHECK(4, sum_of_packed(headers, 5) == 10 + 5 * (uint64_t)(1u << 30) + ((uint64_t)10 << 40));

    uint32_t sum = 0;
    for (int i = 0; i < 5; i++) sum += constants[i];
    CHECK(5, sum == 28 && initialised == 0x12345678 && zero == 0);

#ifdef FLOATING
    volatile double third = 1.0 / 3.0;
    volatile float scaled = (float)(third * 9.0 + 0.5);
    CHECK(6, scaled == 3.5f && (int)scaled == 3 && (uint64_t)(third * 3e12) == 1000000000000u);
#endif
    write_line("checked\n", 8);
    return 42;
}
