/* Compares the runtime's functions with plain ones on random values; exits with 42, or with the number of the first
 * comparison that failed. */
#include <stdint.h>
#include <string.h>

#ifndef ROUNDS
#define ROUNDS 200
#endif

#define CHECK(number, holds) \
    if (!(holds)) return number

int __popcountdi2(uint64_t), __clzdi2(uint64_t), __ctzdi2(uint64_t), __ffsdi2(int64_t);
uint64_t __bswapdi2(uint64_t), __ashldi3(uint64_t, int), __lshrdi3(uint64_t, int);
int64_t __ashrdi3(int64_t, int);

static uint64_t state = 88172645463325252u;

static uint64_t random64(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Returns values of all lengths, including edge values. */
static uint64_t random_value(void) {
    int by = (int)(random64() & 63);
    switch (random64() & 15) {
        case 0: return ~(uint64_t)0 << by;
        case 1: return ~(uint64_t)0 >> by;
        case 2: return (uint64_t)1 << by;
        case 3: return 0;
        default: return random64() >> by;
    }
}

static uint64_t divide_by_bits(uint64_t dividend, uint64_t divisor, uint64_t *remainder) {
    uint64_t quotient = 0, left = 0;
    for (int bit = 63; bit >= 0; bit--) {
        uint64_t carry = left >> 63;
        left = left << 1 | (dividend >> bit & 1);
        if (carry || left >= divisor) {
            left -= divisor;
            quotient |= (uint64_t)1 << bit;
        }
    }
    *remainder = left;
    return quotient;
}

static uint64_t magnitude(int64_t value) { return value < 0 ? -(uint64_t)value : (uint64_t)value; }

static int check_division(volatile uint64_t a, volatile uint64_t b) {
    volatile int64_t sa = (int64_t)a, sb = (int64_t)b;
    volatile uint32_t wa = (uint32_t)a, wb = (uint32_t)b;
    volatile int32_t swa = (int32_t)wa, swb = (int32_t)wb;
    uint64_t quotient, remainder;
    if (b != 0) {
        quotient = divide_by_bits(a, b, &remainder);
        CHECK(1, a / b == quotient);
        CHECK(2, a % b == remainder);
    }
    if (b != 0 && !(sa == INT64_MIN && sb == -1)) {
        quotient = divide_by_bits(magnitude(sa), magnitude(sb), &remainder);
        CHECK(3, (uint64_t)(sa / sb) == ((sa < 0) != (sb < 0) ? -quotient : quotient));
        CHECK(4, (uint64_t)(sa % sb) == (sa < 0 ? -remainder : remainder));
    }
    if (wb != 0) {
        quotient = divide_by_bits(wa, wb, &remainder);
        CHECK(5, wa / wb == quotient);
        CHECK(6, wa % wb == remainder);
    }
    if (wb != 0 && !(swa == INT32_MIN && swb == -1)) {
        quotient = divide_by_bits(magnitude(swa), magnitude(swb), &remainder);
        CHECK(7, (uint32_t)(swa / swb) == (uint32_t)((swa < 0) != (swb < 0) ? -quotient : quotient));
        CHECK(8, (uint32_t)(swa % swb) == (uint32_t)(swa < 0 ? -remainder : remainder));
    }
    return 0;
}

static int check_bits(volatile uint64_t a, volatile uint64_t b) {
    int ones = 0, high = -1, low = 64;
    uint64_t swapped = 0, product = 0, power = a;
    for (int bit = 0; bit < 64; bit++) {
        if (a >> bit & 1) {
            ones++;
            high = bit;
            if (low == 64) low = bit;
        }
        if (b >> bit & 1) product += power;
        power += power;
    }
    for (int byte = 0; byte < 8; byte++) swapped = swapped << 8 | (a >> 8 * byte & 0xff);
    CHECK(11, __popcountdi2(a) == ones);
    CHECK(12, a == 0 || __clzdi2(a) == 63 - high);
    CHECK(13, a == 0 || __ctzdi2(a) == low);
    CHECK(14, __ffsdi2((int64_t)a) == (a ? low + 1 : 0));
    CHECK(15, __bswapdi2(a) == swapped);
    CHECK(16, a * b == product);

    int by = (int)(b & 63);
    uint64_t up = a, down = a;
    int64_t signed_down = (int64_t)a;
    for (int i = 0; i < by; i++) {
        up += up;
        down >>= 1;
        signed_down >>= 1;
    }
    CHECK(17, __ashldi3(a, by) == up);
    CHECK(18, __lshrdi3(a, by) == down);
    CHECK(19, __ashrdi3((int64_t)a, by) == signed_down);
    return 0;
}

static unsigned char memory[256], other[256], expected[256];

static int check_memory(void) {
    for (int i = 0; i < 256; i++) expected[i] = memory[i] = other[i] = (unsigned char)random64();
    size_t length = random64() % 100, from = random64() % 100, to = random64() % 100;

    for (size_t i = 0; i < length; i++) expected[to + i] = other[from + i];
    CHECK(21, memmove(memory + to, memory + from, length) == memory + to);
    for (int i = 0; i < 256; i++) CHECK(22, memory[i] == expected[i]);

    int byte = (int)random64();
    CHECK(23, memset(memory + to, byte, length) == memory + to);
    for (size_t i = 0; i < 256; i++)
        CHECK(24, memory[i] == (i >= to && i < to + length ? (unsigned char)byte : expected[i]));

    CHECK(25, memcpy(memory + to, other + from, length) == memory + to);
    for (int i = 0; i < 256; i++) CHECK(26, memory[i] == expected[i]);

    CHECK(27, memcmp(memory + to, other + from, length) == 0);
    if (length > 0) {
        size_t at = random64() % length;
        int difference = (unsigned char)(memory[to + at] += 1 + (unsigned char)(random64() % 255)) - other[from + at];
        int order = memcmp(memory + to, other + from, length);
        CHECK(28, order != 0 && (order < 0) == (difference < 0));
    }
    return 0;
}

static int check_text(void) {
    static const char text[] = "match entry";
    CHECK(31, strlen(text) == 11 && strlen("") == 0);
    CHECK(32, strcmp(text, "match entry") == 0 && strcmp(text, "match list") < 0 && strcmp(text, "match") > 0);
    CHECK(33, strncmp(text, "match list", 6) == 0 && strncmp(text, "match list", 7) < 0 && strncmp("a", "b", 0) == 0);
    CHECK(34, memchr(text, 'h', 11) == text + 4 && memchr(text, 'z', 11) == 0 && memchr(text, 'y', 10) == 0);
    return 0;
}

int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = random_value(), b = random_value();
        int failed = check_division(a, b);
        if (!failed) failed = check_bits(a, b);
        if (!failed) failed = check_memory();
        if (failed) return failed;
    }
    int failed = check_text();
    return failed ? failed : 42;
}
