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

/* Returns whether this process takes part in the simulation. It then has the page of its rank. */
int nicety_attached(void);

/* Returns whether the clocks and waits of the calling thread are those of the simulation. Other threads have the
 * machine's clocks and waits. */
int nicety_is_simulated(void);

/* Returns whether the calling thread has virtual time, in any phase. */
int nicety_has_time(void);

/* The phase of the calling thread. The thread runs, or starts or ends an MPI that waits for its launcher by looks and
 * sleeps. In the start phase, clocks advance as before the process takes part, and waits are real. In the end phase,
 * the thread has the machine's time, and is outside the simulation between its calls. */
enum { NICETY_RUNS, NICETY_STARTS, NICETY_ENDS };
void nicety_enter(int phase);
int nicety_starts(void);

/* Records the end of the process, unless an end is already recorded or the process has closed the network. */
void nicety_note_end(uint32_t how, int code);

/* Returns whether the simulator has ended. */
int nicety_is_alone(void);

/* Waits until all ranks have closed the network, if this rank has closed it. If a process ends with a status other than
 * 0, a launcher ends the other processes, and these would seem to have failed. */
void nicety_end_together(void);

/* Records a name of shared memory or of a file. The simulator removes it if the process fails. */
void nicety_note_shared(const char *name);

/* Records the file that MPICH's launcher has made for its processes, if `text` is the launcher's answer to a request
 * for this file. */
void nicety_note_file(int file, const char *text, ssize_t bytes);

/* Returns whether nothing can arrive. This is so if the calling thread starts or ends MPI and has not communicated in
 * this phase. */
int nicety_is_idle(void);

/* Takes the page of this rank. Returns 0, or an error of errno.h. The error is EBUSY if another process of this rank
 * has the page. */
int nicety_attach(void);

/* Makes a call and waits for its reply. Returns the result, which is negative for an error. protocol.h names the
 * arguments. */
int64_t nicety_call(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count);

/* Has deferred looks carried out (waits.h). This precedes each call of the simulator, each post, and each read of the time
 * or of numbers that the simulator writes. */
void nicety_catch_up(void);

/* Counts a look at the queue of completions without a call, if nothing can have arrived. Returns whether the look was
 * counted. */
int nicety_look(void);

/* Counts a deferred look among the calls of the process. */
void nicety_count_look(void);

/* Returns the number of calls and looks of the process. */
uint64_t nicety_calls(void);

/* Record that the process uses a file, and return the number of such uses. */
void nicety_use_file(void);
uint64_t nicety_uses_of_files(void);

/* Returns whether several threads have used the network. */
int nicety_is_shared(void);

/* Returns MPI's own function behind a function of this library. */
void *nicety_mpi_behind(const char *name, void *hiding);

/* Posts a call without a reply. `copied` bytes, at most NICETY_POST_BYTES, are copied from the address in the first
 * argument. The program may overwrite these bytes after the return. Other memory must not change until the call has
 * ended. Returns 0 or an error. */
int nicety_post(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count, size_t copied);

/* Posts a call with memory from malloc, which is freed when the simulator has read it. Returns 0 or an error. */
int nicety_post_freed(uint32_t call, uint32_t flags, const uint64_t *args, unsigned count, void *memory);

/* These functions enclose a wait outside the simulation. The first returns whether the second has to follow. */
int nicety_leave(void);
void nicety_return(void);

/* Return the time of this rank. The first function reads a clock and charges the cost of the read. The second has no
 * cost. */
uint64_t nicety_clock_ps(void);
uint64_t nicety_now_ps(void);

/* Lets virtual time pass. */
void nicety_sleep_ps(uint64_t ps);

#endif
