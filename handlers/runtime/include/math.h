/* math.h: what is exact: no logarithms, powers or angles. double is computed in software. */
#ifndef NICETY_MATH_H
#define NICETY_MATH_H

typedef float float_t;
typedef double double_t;

#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)

double fabs(double x);
float fabsf(float x);
double copysign(double magnitude, double sign);
float copysignf(float magnitude, float sign);
double sqrt(double x);
float sqrtf(float x);
double trunc(double x);
double floor(double x);
double ceil(double x);

#endif
