/* integer.c: the integer functions that a compiler calls if RV32 has no instruction. They are division and shifts of 64
 * bits, and bit counts. If the card's isa lacks the M extension, multiplication and division of 32 bits are included.
 * RV64 uses the bit counts, and without M also multiplication and division of 64 bits. The names and meanings are those
 * of libgcc and compiler-rt. Division by zero has the results of RISC-V's instructions. The quotient is all ones, and
 * the remainder is the dividend.
 *
 * No function here may use an operation for which the compiler would call the same function.
 */
#include <stdint.h>

typedef union {
    uint64_t all;
    struct {
        uint32_t low, high;
    };
} parts;

uint64_t __ashldi3(uint64_t value, int by) {
    parts in = {.all = value}, out;
    if (by & 32) {
        out.high = in.low << (by & 31);
        out.low = 0;
    } else if (by == 0) {
        return value;
    } else {
        out.high = in.high << by | in.low >> (32 - by);
        out.low = in.low << by;
    }
    return out.all;
}

uint64_t __lshrdi3(uint64_t value, int by) {
    parts in = {.all = value}, out;
    if (by & 32) {
        out.low = in.high >> (by & 31);
        out.high = 0;
    } else if (by == 0) {
        return value;
    } else {
        out.low = in.low >> by | in.high << (32 - by);
        out.high = in.high >> by;
    }
    return out.all;
}

int64_t __ashrdi3(int64_t value, int by) {
    parts in = {.all = (uint64_t)value}, out;
    if (by & 32) {
        out.low = (uint32_t)((int32_t)in.high >> (by & 31));
        out.high = (uint32_t)((int32_t)in.high >> 31);
    } else if (by == 0) {
        return value;
    } else {
        out.low = in.low >> by | in.high << (32 - by);
        out.high = (uint32_t)((int32_t)in.high >> by);
    }
    return (int64_t)out.all;
}

int __clzsi2(uint32_t value) {
    int zeros = 0;
    for (int step = 16; step > 0; step >>= 1) {
        if (value >> (32 - step) == 0) {
            zeros += step;
            value <<= step;
        }
    }
    return zeros;
}

int __ctzsi2(uint32_t value) { return 31 - __clzsi2(value & -value); }

int __clzdi2(uint64_t value) {
    parts in = {.all = value};
    return in.high ? __clzsi2(in.high) : 32 + __clzsi2(in.low);
}

int __ctzdi2(uint64_t value) {
    parts in = {.all = value};
    return in.low ? __ctzsi2(in.low) : 32 + __ctzsi2(in.high);
}

int __ffsdi2(int64_t value) { return value ? 1 + __ctzdi2((uint64_t)value) : 0; }

int __popcountsi2(uint32_t value) {
    value -= value >> 1 & 0x55555555u;
    value = (value & 0x33333333u) + (value >> 2 & 0x33333333u);
    value = (value + (value >> 4)) & 0x0f0f0f0fu;
    value += value >> 8;
    return (int)((value + (value >> 16)) & 0x3f);
}

int __popcountdi2(uint64_t value) {
    parts in = {.all = value};
    return __popcountsi2(in.low) + __popcountsi2(in.high);
}

uint32_t __bswapsi2(uint32_t value) {
    return value << 24 | (value & 0xff00u) << 8 | (value >> 8 & 0xff00u) | value >> 24;
}

uint64_t __bswapdi2(uint64_t value) {
    parts in = {.all = value}, out = {.low = __bswapsi2(in.high), .high = __bswapsi2(in.low)};
    return out.all;
}

#ifndef __riscv_mul

uint32_t __mulsi3(uint32_t left, uint32_t right) {
    uint32_t product = 0;
    for (; left; left >>= 1, right <<= 1) {
        if (left & 1) product += right;
    }
    return product;
}

uint64_t __muldi3(uint64_t left, uint64_t right) {
    parts a = {.all = left}, b = {.all = right};
    uint64_t product = 0;
    for (; a.all; a.low = a.low >> 1 | a.high << 31, a.high >>= 1) {
        if (a.low & 1) product += b.all;
        b.high = b.high << 1 | b.low >> 31;
        b.low <<= 1;
    }
    return product;
}

#endif

#if !defined __riscv_div && __riscv_xlen == 32

/* Computes quotient and remainder, one bit at a time. */
static uint32_t divide(uint32_t dividend, uint32_t divisor, uint32_t *remainder) {
    uint32_t quotient = 0, left = 0;
    for (int bit = 31; bit >= 0; bit--) {
        /* With a divisor above 2^31, a bit is shifted out at the top. This bit is part of the remainder. */
        uint32_t carry = left >> 31;
        left = left << 1 | (dividend >> bit & 1);
        if (carry || left >= divisor) {
            left -= divisor;
            quotient |= 1u << bit;
        }
    }
    *remainder = divisor ? left : dividend;
    return quotient;
}

uint32_t __udivsi3(uint32_t dividend, uint32_t divisor) {
    uint32_t remainder;
    return divide(dividend, divisor, &remainder);
}

uint32_t __umodsi3(uint32_t dividend, uint32_t divisor) {
    uint32_t remainder;
    divide(dividend, divisor, &remainder);
    return remainder;
}

int32_t __divsi3(int32_t dividend, int32_t divisor) {
    if (divisor == 0) return -1;
    uint32_t a = dividend < 0 ? -(uint32_t)dividend : (uint32_t)dividend;
    uint32_t b = divisor < 0 ? -(uint32_t)divisor : (uint32_t)divisor;
    uint32_t quotient = __udivsi3(a, b);
    return (int32_t)((dividend ^ divisor) < 0 ? -quotient : quotient);
}

int32_t __modsi3(int32_t dividend, int32_t divisor) {
    uint32_t a = dividend < 0 ? -(uint32_t)dividend : (uint32_t)dividend;
    uint32_t b = divisor < 0 ? -(uint32_t)divisor : (uint32_t)divisor;
    uint32_t remainder = __umodsi3(a, b);
    return (int32_t)(dividend < 0 ? -remainder : remainder);
}

#endif

#if __riscv_xlen == 32

/* Returns high:low / divisor for high < divisor, so that the quotient fits 32 bits. Knuth's algorithm D with two digits
 * of 16 bits (The Art of Computer Programming, volume 2, 4.3.1). */
static uint32_t divide_two_by_one(uint32_t high, uint32_t low, uint32_t divisor, uint32_t *remainder) {
    const uint32_t base = 1u << 16;
    int shift = __clzsi2(divisor);
    divisor <<= shift;
    uint32_t top = divisor >> 16, bottom = divisor & 0xffff;
    if (shift) high = high << shift | low >> (32 - shift);
    low <<= shift;
    uint32_t next = low >> 16, last = low & 0xffff;

    uint32_t q1 = high / top, r = high - q1 * top;
    while (q1 >= base || q1 * bottom > (r << 16 | next)) {
        q1--;
        r += top;
        if (r >= base) break;
    }
    uint32_t middle = (high << 16 | next) - q1 * divisor;
    uint32_t q0 = middle / top;
    r = middle - q0 * top;
    while (q0 >= base || q0 * bottom > (r << 16 | last)) {
        q0--;
        r += top;
        if (r >= base) break;
    }
    *remainder = ((middle << 16 | last) - q0 * divisor) >> shift;
    return q1 << 16 | q0;
}

uint64_t __udivmoddi4(uint64_t dividend, uint64_t divisor, uint64_t *remainder) {
    parts n = {.all = dividend}, d = {.all = divisor}, quotient = {.all = 0}, left = {.all = 0};
    if (divisor == 0) {
        if (remainder) *remainder = dividend;
        return ~(uint64_t)0;
    }
    if (divisor > dividend) {
        if (remainder) *remainder = dividend;
        return 0;
    }
    if (d.high == 0) {
        if (n.high == 0) {
            quotient.low = n.low / d.low;
            left.low = n.low % d.low;
        } else {
            quotient.high = n.high / d.low;
            quotient.low = divide_two_by_one(n.high % d.low, n.low, d.low, &left.low);
        }
    } else {
        /* The quotient has less than 32 bits. The top 32 bits of the divisor give an estimate from half the dividend.
         * The estimate is correct or one too large, and is then corrected (Hacker's Delight, 9-5). */
        int shift = __clzsi2(d.high);
        uint32_t top = shift ? d.high << shift | d.low >> (32 - shift) : d.high;
        uint32_t half_high = n.high >> 1, half_low = n.high << 31 | n.low >> 1, ignored;
        uint32_t estimate = divide_two_by_one(half_high, half_low, top, &ignored);
        estimate >>= 31 - shift;
        if (estimate) estimate--;
        quotient.low = estimate;
        left.all = dividend - (uint64_t)estimate * divisor;
        if (left.all >= divisor) {
            left.all -= divisor;
            quotient.low++;
        }
    }
    if (remainder) *remainder = left.all;
    return quotient.all;
}

#else

/* Only a core without division calls this function, for any division. It computes one bit at a time. */
uint64_t __udivmoddi4(uint64_t dividend, uint64_t divisor, uint64_t *remainder) {
    uint64_t quotient = 0, left = 0;
    for (int bit = 63; bit >= 0; bit--) {
        /* With a divisor above 2^63, a bit is shifted out at the top. This bit is part of the remainder. */
        uint64_t carry = left >> 63;
        left = left << 1 | (dividend >> bit & 1);
        if (carry || left >= divisor) {
            left -= divisor;
            quotient |= (uint64_t)1 << bit;
        }
    }
    if (remainder) *remainder = divisor ? left : dividend;
    return quotient;
}

#endif

uint64_t __udivdi3(uint64_t dividend, uint64_t divisor) { return __udivmoddi4(dividend, divisor, 0); }

uint64_t __umoddi3(uint64_t dividend, uint64_t divisor) {
    uint64_t remainder;
    __udivmoddi4(dividend, divisor, &remainder);
    return remainder;
}

static uint64_t magnitude(int64_t value) { return value < 0 ? -(uint64_t)value : (uint64_t)value; }

int64_t __divdi3(int64_t dividend, int64_t divisor) {
    if (divisor == 0) return -1;
    uint64_t quotient = __udivmoddi4(magnitude(dividend), magnitude(divisor), 0);
    return (int64_t)((dividend ^ divisor) < 0 ? -quotient : quotient);
}

int64_t __moddi3(int64_t dividend, int64_t divisor) {
    uint64_t remainder;
    __udivmoddi4(magnitude(dividend), magnitude(divisor), &remainder);
    return (int64_t)(dividend < 0 ? -remainder : remainder);
}

int64_t __divmoddi4(int64_t dividend, int64_t divisor, int64_t *remainder) {
    *remainder = __moddi3(dividend, divisor);
    return __divdi3(dividend, divisor);
}
