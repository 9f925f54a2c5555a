/* util.h: small helpers. */
#ifndef PSPIN_UTIL_H
#define PSPIN_UTIL_H

#include <stdint.h>

#define MIN(a, b) (((a) < (b)) ? (a) : (b))
#define MAX(a, b) (((a) > (b)) ? (a) : (b))
/* a modulo b, where b is a power of two. */
#define FAST_MOD(a, b) ((a) & ((b) - 1))

#endif
