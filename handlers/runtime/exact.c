/* exact.c: the functions of math.h whose result is exact, or rounded once. Linked into programs that call one. */
#include <math.h>
#include <stdint.h>

/* A program may bring its own instead. */
#pragma weak fabs
#pragma weak fabsf
#pragma weak copysign
#pragma weak copysignf
#pragma weak sqrt
#pragma weak sqrtf
#pragma weak trunc
#pragma weak floor
#pragma weak ceil

typedef union {
    double value;
    uint64_t bits;
} number;
typedef union {
    float value;
    uint32_t bits;
} single;

#define SIGN ((uint64_t)1 << 63)
#define FRACTION 52
#define HIDDEN ((uint64_t)1 << FRACTION)
#define BIAS 1023
#define SPECIAL 2047

static int exponent_of(uint64_t bits) { return (int)(bits >> FRACTION & SPECIAL); }

double fabs(double x) { return ((number){.bits = (number){x}.bits & ~SIGN}).value; }
float fabsf(float x) { return ((single){.bits = (single){x}.bits & 0x7fffffffu}).value; }

double copysign(double magnitude, double sign) {
    return ((number){.bits = ((number){magnitude}.bits & ~SIGN) | ((number){sign}.bits & SIGN)}).value;
}
float copysignf(float magnitude, float sign) {
    uint32_t bits = ((single){magnitude}.bits & 0x7fffffffu) | ((single){sign}.bits & 0x80000000u);
    return ((single){.bits = bits}).value;
}

double sqrt(double x) {
    uint64_t bits = (number){x}.bits;
    if (bits << 1 == 0 || x != x) return x;
    if (bits & SIGN) return NAN;
    int exponent = exponent_of(bits);
    if (exponent == SPECIAL) return x;
    uint64_t significand = bits & (HIDDEN - 1);
    if (exponent == 0) {
        for (exponent = 1; !(significand & HIDDEN); exponent--) significand <<= 1;
    } else {
        significand |= HIDDEN;
    }
    exponent -= BIAS;
    if (exponent & 1) significand <<= 1;
    exponent >>= 1;

    /* Two bits of the radicand make one of the root: 53 of the result, and one to round by. The radicand's point is
     * behind its upper two bits, and zeros follow its lowest. Nothing is exactly half way. */
    uint64_t root = 0, remainder = 0;
    significand <<= 10;
    for (int step = 0; step < FRACTION + 2; step++) {
        remainder = remainder << 2 | significand >> 62;
        significand <<= 2;
        uint64_t trial = root << 2 | 1;
        root <<= 1;
        if (remainder >= trial) {
            remainder -= trial;
            root |= 1;
        }
    }
    root = (root >> 1) + (root & 1);
    return ((number){.bits = ((uint64_t)(exponent + BIAS) << FRACTION) + (root - HIDDEN)}).value;
}

float sqrtf(float x) {
#ifdef __riscv_flen
    float root;
    __asm__("fsqrt.s %0, %1" : "=f"(root) : "f"(x));
    return root;
#else
    /* A double's root rounded again is a float's: it has more than twice as many bits, and two. */
    return (float)sqrt(x);
#endif
}

double trunc(double x) {
    uint64_t bits = (number){x}.bits;
    int whole = exponent_of(bits) - BIAS;
    if (whole >= FRACTION) return x;
    if (whole < 0) return copysign(0, x);
    return ((number){.bits = bits & ~((HIDDEN - 1) >> whole)}).value;
}

double floor(double x) {
    double whole = trunc(x);
    return whole > x ? copysign(whole - 1, x) : whole;
}

double ceil(double x) {
    double whole = trunc(x);
    return whole < x ? copysign(whole + 1, x) : whole;
}
