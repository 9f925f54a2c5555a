/* Looks that are certain to repeat, in waiting calls of MPI. */

#ifndef NICETY_WAITS_H
#define NICETY_WAITS_H

/* Returns LOOKS_WAIT or LOOKS_START if the next look repeats until something has arrived. Returns 0 otherwise. The
 * stack is compared from `stack` upwards, including the callee-saved registers of the caller. */
int nicety_repeats(const void *stack);

/* Returns the kind of a look with an unknown next step: LOOKS_MAY_WAIT in a call that waits, otherwise LOOKS_ONCE. */
uint64_t nicety_kind_of_look(void);

/* Defer a look that nicety_repeats has just refused, if that is possible, and return whether it is. The simulator
 * carries the look out with the next call. Until then, it counts as one that has found nothing. The first function is for
 * a look without a deferred one before it, and the second for a look right behind a deferred one. */
int nicety_defers(void);
int nicety_defers_more(void);

/* Returns the number of deferred looks. The caller has them carried out. */
int nicety_take_deferred(void);

/* Records that the process reads a completion of a deferred look behind another call. */
void nicety_read_late(void);

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
