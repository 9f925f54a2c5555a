/* Collective operations by the handlers of handlers/collectives.c, over Portals. All ranks call these functions in the
 * same order, with the same lengths. After a rank's calls have returned, no message to this rank's memory is in flight.
 * After the calls of the other ranks have also returned, all messages have left this rank's memory. */

#ifndef NICETY_OFFLOAD_CARD_H
#define NICETY_OFFLOAD_CARD_H

#include <stddef.h>
#include <stdint.h>

/* Puts handlers and their entries on the card. Returns the length in bytes of the longest vector that the card reduces,
 * or 0 after a failure. nicety_reason() then has the reason. */
int card_set_up(const char *program, uint32_t packet_bytes);

/* Removes the handlers and their entries from the card. Returns 0. */
int card_give_up(void);

/* Called when messages for MPI have arrived while a rank waits for its card. */
extern void (*card_progress)(void);
/* Called after a handler has failed. */
extern void (*card_failed)(const char *what);

void card_barrier(void);
/* Sends the bytes of the root's buffer to the buffers of all other ranks. After the return, the root's buffer may be
 * overwritten. */
void card_broadcast(void *buffer, size_t bytes, uint32_t root);
/* Reduces a vector of at most the length from card_set_up, with an operator and a type of collectives.h. */
void card_reduce(const void *from, void *to, size_t bytes, int op, int type);

#endif
