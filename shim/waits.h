/* Looks that are certain to repeat, in waiting calls of MPI. */

#ifndef NICETY_WAITS_H
#define NICETY_WAITS_H

/* Returns LOOKS_WAIT or LOOKS_START if the next look repeats until something has arrived. Returns 0 otherwise. The
 * stack is compared from `stack` upwards, including the callee-saved registers of the caller. */
int nicety_repeats(const void *stack);

/* Returns whether the calling thread waits for a message without taking it. Another probe then follows a failed
 * probe. */
int nicety_probes(void);

/* These functions enclose a call of MPI with this frame that waits by looks of this kind. The first returns the
 * argument of the second. */
const void *nicety_begin_wait(const void *frame, int looks);
void nicety_end_wait(const void *before);

/* Records the end of a look. */
void nicety_looked(int found);

#endif
