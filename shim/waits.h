/* Looks that are certain to repeat, in waiting calls of MPI. */

#ifndef NICETY_WAITS_H
#define NICETY_WAITS_H

/* Returns LOOKS_WAIT or LOOKS_START if the look that is about to begin repeats until something has arrived, otherwise 0. The stack is
 * compared from `stack` on upwards, including the callee-saved registers of the caller. */
int nicety_repeats(const void *stack);

/* Returns whether the calling thread waits for a message without taking it, so that a failed probe is followed by another. */
int nicety_probes(void);

/* Enclose a call of MPI that waits by looks of this kind, with this frame. The first returns the argument of the second. */
const void *nicety_begin_wait(const void *frame, int looks);
void nicety_end_wait(const void *before);

/* Records the end of a look. */
void nicety_looked(int found);

#endif
