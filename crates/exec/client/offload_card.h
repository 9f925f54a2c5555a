/* Collective operations by the handlers of handlers/collectives.c, over Portals. All ranks call these in the same order, with the same
 * lengths. When a rank's calls have returned, nothing is on its way to its memory, and what is on its way from there has left when the others'
 * have. */

#ifndef NICETY_OFFLOAD_CARD_H
#define NICETY_OFFLOAD_CARD_H

#include <stddef.h>
#include <stdint.h>

/* Puts handlers and their entries on the card. The longest vector that it reduces, in bytes, or 0: nicety_reason() says why. */
int card_set_up(const char *program, uint32_t packet_bytes);

/* Takes all that off the card again: 0. */
int card_give_up(void);

/* Called where something has come for MPI while a rank waits for its card. */
extern void (*card_progress)(void);
/* Called where a handler has failed. */
extern void (*card_failed)(const char *what);

void card_barrier(void);
/* Bytes of the root's buffer to those of all others. The root's may be written over when this returns. */
void card_broadcast(void *buffer, size_t bytes, uint32_t root);
/* A vector of at most as many bytes as card_set_up says, by an operator and of a type of collectives.h. */
void card_reduce(const void *from, void *to, size_t bytes, int op, int type);

#endif
