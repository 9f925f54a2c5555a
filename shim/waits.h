/* Looks that are certain to repeat, in waiting calls of MPI. */

#ifndef NICETY_WAITS_H
#define NICETY_WAITS_H

/* Returns whether the look that is about to begin repeats until something has arrived. The stack is compared from `stack` on upwards,
 * including the callee-saved registers of the caller. */
int nicety_repeats(const void *stack);

/* Returns whether the calling thread waits for a message without taking it, so that a failed probe is followed by another. */
int nicety_probes(void);

/* Records the end of a look. */
void nicety_looked(int found);

#endif
