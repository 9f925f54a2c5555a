/* exact.c: functions of math.h with an exact result, or with a result that is rounded once. Linked into programs that
 * call one of these functions. */
#include <math.h>
#include <stdint.h>

/* A program may define its own functions instead. */
#pragma weak fabs
#pragma weak fabsf
#pragma weak copysign
#pragma weak copysignf
#pragma weak sqrt
#pragma weak sqrtf
#pragma weak trunc
#pragma weak truncf
#pragma weak floor
#pragma weak floorf
#pragma weak ceil
#pragma weak ceilf
#pragma weak round
#pragma weak roundf
#pragma weak lround
#pragma weak lroundf
#pragma weak llround
#pragma weak llroundf
#pragma weak rint
#pragma weak rintf
#pragma weak nearbyint
#pragma weak nearbyintf
#pragma weak lrint
#pragma weak lrintf
#pragma weak llrint
#pragma weak llrintf
#pragma weak modf
#pragma weak modff
#pragma weak frexp
#pragma weak frexpf
#pragma weak ldexp
#pragma weak ldexpf
#pragma weak scalbn
#pragma weak scalbnf
#pragma weak fdim
#pragma weak fdimf
#pragma weak fmax
#pragma weak fmaxf
#pragma weak fmin
#pragma weak fminf

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

    /* Two bits of the radicand give one bit of the root. The root has the 53 bits of the result, and one bit for
     * rounding. The radicand's point is after its upper two bits, and zeros follow its lowest bit. There are no
     * ties. */
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
    /* The root of a double, rounded again, is the correct root of a float. A double has more than twice the bits of a
     * float, plus two. */
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

double round(double x) {
    double whole = trunc(x);
    return fabs(x - whole) >= 0.5 ? whole + copysign(1, x) : copysign(whole, x);
}

/* Rounds to the nearest integer, ties to even. There is no other mode. */
double rint(double x) {
    if (exponent_of((number){x}.bits) >= BIAS + FRACTION) return x;
    double above = copysign((double)HIDDEN, x);
    return copysign(x + above - above, x);
}
double nearbyint(double x) { return rint(x); }

long lround(double x) { return (long)round(x); }
long long llround(double x) { return (long long)round(x); }
long lrint(double x) { return (long)rint(x); }
long long llrint(double x) { return (long long)rint(x); }

double modf(double x, double *whole) {
    *whole = trunc(x);
    return copysign(fabs(x) == INFINITY ? 0 : x - *whole, x);
}

double frexp(double x, int *exponent) {
    *exponent = 0;
    if (x == 0 || exponent_of((number){x}.bits) == SPECIAL) return x;
    int lifted = 0;
    if (exponent_of((number){x}.bits) == 0) {
        x *= 0x1p54;
        lifted = 54;
    }
    uint64_t bits = (number){x}.bits;
    *exponent = exponent_of(bits) - (BIAS - 1) - lifted;
    return ((number){.bits = (bits & ~((uint64_t)SPECIAL << FRACTION)) | (uint64_t)(BIAS - 1) << FRACTION}).value;
}

/* Returns 2^exponent, for a normal number. */
static double power(int exponent) { return ((number){.bits = (uint64_t)(exponent + BIAS) << FRACTION}).value; }

double ldexp(double x, int exponent) {
    /* Exponents beyond two of these steps give zero or infinity in any case. */
    for (int step = 0; step < 2 && exponent > BIAS; step++, exponent -= BIAS) x *= power(BIAS);
    /* Each step but the last keeps all 53 bits, so that only the last step rounds. */
    const int down = 1 - BIAS + FRACTION + 1;
    for (int step = 0; step < 2 && exponent < 1 - BIAS; step++, exponent -= down) x *= power(down);
    exponent = exponent > BIAS ? BIAS : exponent < 1 - BIAS ? 1 - BIAS : exponent;
    return x * power(exponent);
}
double scalbn(double x, int exponent) { return ldexp(x, exponent); }

double fdim(double x, double y) { return x != x || y != y ? x + y : x > y ? x - y : 0; }
double fmax(double x, double y) { return x != x || y > x || (y == x && signbit(x)) ? y : x; }
double fmin(double x, double y) { return x != x || y < x || (y == x && signbit(y)) ? y : x; }

/* Each float is a double, and each exact result of these functions is a float again. */
float truncf(float x) { return (float)trunc(x); }
float floorf(float x) { return (float)floor(x); }
float ceilf(float x) { return (float)ceil(x); }
float roundf(float x) { return (float)round(x); }
float rintf(float x) { return (float)rint(x); }
float nearbyintf(float x) { return (float)rint(x); }
long lroundf(float x) { return (long)round(x); }
long long llroundf(float x) { return (long long)round(x); }
long lrintf(float x) { return (long)rint(x); }
long long llrintf(float x) { return (long long)rint(x); }
float frexpf(float x, int *exponent) { return (float)frexp(x, exponent); }
float ldexpf(float x, int exponent) { return (float)ldexp(x, exponent); }
float scalbnf(float x, int exponent) { return (float)ldexp(x, exponent); }
float fmaxf(float x, float y) { return (float)fmax(x, y); }
float fminf(float x, float y) { return (float)fmin(x, y); }
float fdimf(float x, float y) { return x != x || y != y ? x + y : x > y ? x - y : 0; }

float modff(float x, float *whole) {
    *whole = truncf(x);
    return copysignf(fabsf(x) == INFINITY ? 0 : x - *whole, x);
}
