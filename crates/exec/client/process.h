/* This process, as one rank of the simulation. */

#ifndef NICETY_PROCESS_H
#define NICETY_PROCESS_H

#include "protocol.h"

#include <stddef.h>
#include <sys/types.h>

/* The shared pages, or NULL where nothing is simulated. */
extern struct nicety_header *nicety_shared;
/* This rank's page, or NULL. */
extern struct nicety_slot *nicety_slot;

uint32_t nicety_rank(void);

/* Whether this process takes part: it has the page of its rank. */
int nicety_attached(void);

/* Whether the clocks and waits of the calling thread are those of the simulation. Other threads have the machine's. */
int nicety_is_simulated(void);

/* Whether the calling thread has the time of the simulation, in whatever phase. */
int nicety_has_time(void);

/* What the calling thread does: it runs, or starts or ends an MPI that waits for its launcher by looking and sleeping. While it starts,
 * clocks go on as before it takes part, and waits are real. While it ends, it has the machine's time, and is outside between its
 * calls. */
enum { NICETY_RUNS, NICETY_STARTS, NICETY_ENDS };
void nicety_enter(int phase);
int nicety_starts(void);

/* Notes how the process ends, unless that is known or it has closed the network. */
void nicety_note_end(uint32_t how, int code);

/* Whether the simulator has gone. */
int nicety_is_alone(void);

/* Waits until all ranks have closed the network, if this one has. A launcher ends the others when one ends with a status that is not 0,
 * and they would seem to have died. */
void nicety_end_together(void);

/* Notes a name of shared memory, or of a file, that the simulator removes where the process ends badly. */
void nicety_note_shared(const char *name);

/* Notes the file that MPICH's launcher has made for its processes, where this is its answer to a question for that. */
void nicety_note_file(int file, const char *text, ssize_t bytes);

/* Whether nothing can come, as the calling thread starts or ends and has not communicated since. */
int nicety_is_idle(void);

/* Takes the page of this rank. 0, or an error of errno.h: EBUSY when another process of this rank has it. */
int nicety_attach(void);

/* Makes a call and waits for its reply: the result, negative for an error. The arguments are those that protocol.h names. */
int64_t nicety_call(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count);

/* Looks at the queue of completions without a call, where nothing can have come: whether that is so. */
int nicety_look(void);

/* How many calls and looks the process has made. */
uint64_t nicety_calls(void);

/* Whether several threads have used the network. */
int nicety_is_shared(void);

/* MPI's own function behind one of this library's. */
void *nicety_mpi_behind(const char *name, void *hiding);

/* Posts a call that has no reply. Of its first argument, an address, so many bytes are copied, at most NICETY_POST_BYTES, and may be
 * written over then; the others have to stay as they are until the call has ended. 0, or an error. */
int nicety_post(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count, size_t copied);

/* As above, for memory from malloc, which is freed when the simulator has read it. */
int nicety_post_freed(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count, void *memory);

/* Around a wait for something that is not simulated. The first returns whether the second has to follow. */
int nicety_leave(void);
void nicety_return(void);

/* The time of this rank, as a read of a clock sees and costs it, or as it is. */
uint64_t nicety_clock_ps(void);
uint64_t nicety_now_ps(void);

/* Lets time go on. */
void nicety_sleep_ps(uint64_t ps);

#endif
