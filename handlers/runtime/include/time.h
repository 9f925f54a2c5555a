/* time.h: the processor's clock. The length of a cycle depends on the card (hpu.clock). So a program that needs seconds
 * is compiled with, for example, -D CLOCKS_PER_SEC=2500000000u. There is no calendar. */
#ifndef NICETY_TIME_H
#define NICETY_TIME_H

#include <stddef.h>

typedef unsigned long long clock_t;
typedef long long time_t;

/* Returns the number of cycles of the program so far. */
clock_t clock(void);
/* Returns -1, because there is no calendar. */
time_t time(time_t *now);

#endif
