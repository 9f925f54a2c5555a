/* Looks that are followed by others for certain: those of MPI's calls that wait. */

#ifndef NICETY_WAITS_H
#define NICETY_WAITS_H

/* Whether the look that is about to begin is followed by others until something has come. The stack is what is kept of it from there on up,
 * the registers that a function has to keep for its caller among it. */
int nicety_repeats(const void *stack);

/* Whether the calling thread waits for a message without taking it, so that a look for one in vain is followed by another. */
int nicety_probes(void);

/* A look has ended. */
void nicety_looked(int found);

#endif
