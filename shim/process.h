/* This process, as one rank of the simulation. */

#ifndef NICETY_PROCESS_H
#define NICETY_PROCESS_H

#include "protocol.h"

#include <stddef.h>
#include <sys/types.h>

/* The shared pages, or NULL without a simulation. */
extern struct nicety_header *nicety_shared;
/* This rank's page, or NULL. */
extern struct nicety_slot *nicety_slot;

uint32_t nicety_rank(void);

/* Returns whether this process takes part: it has the page of its rank. */
int nicety_attached(void);

/* Returns whether the clocks and waits of the calling thread are those of the simulation. Other threads have the machine's. */
int nicety_is_simulated(void);

/* Returns whether the calling thread has virtual time, in any phase. */
int nicety_has_time(void);

/* The phase of the calling thread: it runs, or starts or ends an MPI that waits for its launcher by looking and sleeping. In the start
 * phase, clocks advance as before it takes part, and waits are real. In the end phase, it has the machine's time, and is outside between
 * its calls. */
enum { NICETY_RUNS, NICETY_STARTS, NICETY_ENDS };
void nicety_enter(int phase);
int nicety_starts(void);

/* Notes the end of the process, unless it is known or the process has closed the network. */
void nicety_note_end(uint32_t how, int code);

/* Returns whether the simulator has gone. */
int nicety_is_alone(void);

/* Waits until all ranks have closed the network, if this one has. A launcher ends the others when one ends with a status that is not 0,
 * and they would seem to have died. */
void nicety_end_together(void);

/* Notes a name of shared memory, or of a file, that the simulator removes if the process fails. */
void nicety_note_shared(const char *name);

/* Notes the file that MPICH's launcher has made for its processes, if `text` is its answer to a request for that. */
void nicety_note_file(int file, const char *text, ssize_t bytes);

/* Returns whether nothing can arrive, since the calling thread starts or ends and has not communicated since. */
int nicety_is_idle(void);

/* Takes the page of this rank. Returns 0, or an error of errno.h: EBUSY if another process of this rank has it. */
int nicety_attach(void);

/* Makes a call and waits for its reply. Returns the result, negative for an error. protocol.h names the arguments. */
int64_t nicety_call(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count);

/* Looks at the queue of completions without a call, if nothing can have arrived. Returns whether that is so. */
int nicety_look(void);

/* Returns the number of calls and looks of the process. */
uint64_t nicety_calls(void);

/* Records that the process uses a file, and returns the number of such uses. */
void nicety_use_file(void);
uint64_t nicety_uses_of_files(void);

/* Returns whether several threads have used the network. */
int nicety_is_shared(void);

/* Returns MPI's own function behind one of this library's. */
void *nicety_mpi_behind(const char *name, void *hiding);

/* Posts a call without a reply. `copied` bytes at its first argument, an address, are copied, at most NICETY_POST_BYTES. They may be
 * overwritten then; other memory must not change until the call has ended. Returns 0 or an error. */
int nicety_post(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count, size_t copied);

/* As above, for memory from malloc, which is freed when the simulator has read it. */
int nicety_post_freed(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count, void *memory);

/* These enclose a wait outside the simulation. The first returns whether the second has to follow. */
int nicety_leave(void);
void nicety_return(void);

/* The time of this rank: by a read of a clock, with its cost, or without. */
uint64_t nicety_clock_ps(void);
uint64_t nicety_now_ps(void);

/* Lets virtual time pass. */
void nicety_sleep_ps(uint64_t ps);

#endif
