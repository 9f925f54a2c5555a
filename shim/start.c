/* MPI_Init and MPI_Finalize in front of MPI's own functions. Open MPI waits there for its launcher by looks and sleeps.
 * These depend on the machine's speed, so they take no virtual time. Other MPIs wait in reads of sockets, which clock.c
 * handles, and by looks as in their other calls. With each MPI, the ranks end together. */

#define _GNU_SOURCE

#include "offload_base.h"
#include "process.h"
#include "waits.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MOST_LIBRARIES 4096

/* Returns a function of a loaded library, or NULL. `library` is the library's name. */
static void *in(const char *library, const char *name) {
    void *file = *library ? dlopen(library, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = file ? dlsym(file, name) : NULL;
    if (file)
        dlclose(file);
    return found;
}

struct names {
    char *all[MOST_LIBRARIES];
    int count;
};

static int note(struct dl_phdr_info *info, size_t bytes, void *into) {
    (void)bytes;
    struct names *names = into;
    char *name = names->count < MOST_LIBRARIES && *info->dlpi_name ? strdup(info->dlpi_name) : NULL;
    if (name)
        names->all[names->count++] = name;
    return 0;
}

/* A program may have loaded MPI itself, as Python does. MPI is then in a library without global visibility. */
void *nicety_mpi_function(const char *name, void *hiding) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found)
        return found;
    struct names names = {.count = 0};
    dl_iterate_phdr(note, &names);
    for (int i = 0; i < names.count; i++) {
        void *own = found ? NULL : in(names.all[i], name);
        if (own && own != hiding)
            found = own;
        free(names.all[i]);
    }
    return found;
}

void *nicety_mpi_behind(const char *name, void *hiding) {
    void *found = nicety_mpi_function(name, hiding);
    if (!found) {
        fprintf(stderr, "nicety: the program calls %s, but no MPI with this function is loaded\n", name);
        _exit(126);
    }
    return found;
}

static int is_of_open_mpi(void *function) {
    Dl_info info;
    return dladdr(function, &info) && info.dli_fname && in(info.dli_fname, "ompi_mpi_comm_world");
}

/* Processes of one MPI do not find each other by the launcher of another MPI. Each process would be a program of its
 * own. */
static void check_launcher(void *function, int is_open_mpi) {
    Dl_info info;
    uint32_t own = is_open_mpi ? MPI_OF_OPENMPI : MPI_OF_MPICH;
    if (!nicety_slot || nicety_shared->launcher == MPI_UNKNOWN || nicety_shared->launcher == own)
        return;
    if (dladdr(function, &info) && info.dli_fname)
        snprintf(nicety_slot->library_path, sizeof nicety_slot->library_path, "%s", info.dli_fname);
    nicety_slot->library = own;
    _exit(126);
}

#define WITHIN(phase, name, ...)                                                                                       \
    static __typeof__(name) *own;                                                                                      \
    static int counts;                                                                                                 \
    if (!own) {                                                                                                        \
        *(void **)&own = nicety_mpi_behind(#name, (void *)name);                                                                  \
        counts = !is_of_open_mpi(*(void **)&own);                                                                      \
        check_launcher(*(void **)&own, !counts);                                                                       \
    }                                                                                                                  \
    int waits = !counts && nicety_is_simulated();                                                                      \
    if (waits)                                                                                                         \
        nicety_enter(phase);                                                                                           \
    const void *before = counts ? nicety_begin_wait(__builtin_frame_address(0), LOOKS_START) : NULL;                                \
    int code = own(__VA_ARGS__);                                                                                       \
    if (counts)                                                                                                        \
        nicety_end_wait(before);                                                                                       \
    if (waits)                                                                                                         \
        nicety_enter(NICETY_RUNS)

static int begun(int code) {
    if (!code && nicety_offload_begin)
        nicety_offload_begin();
    return code;
}

EXPORT int MPI_Init(int *count, char ***words) {
    WITHIN(NICETY_STARTS, MPI_Init, count, words);
    return begun(code);
}

EXPORT int MPI_Init_thread(int *count, char ***words, int required, int *provided) {
    WITHIN(NICETY_STARTS, MPI_Init_thread, count, words, required, provided);
    return begun(code);
}

EXPORT int MPI_Finalize(void) {
    WITHIN(NICETY_ENDS, MPI_Finalize);
    nicety_end_together();
    return code;
}

/* The communicator is a number or an address. The call ends all processes. The launcher may end other processes
 * first. */
EXPORT int MPI_Abort(uintptr_t communicator, int code);

int MPI_Abort(uintptr_t communicator, int code) {
    static int (*own)(uintptr_t, int);
    if (!own)
        *(void **)&own = nicety_mpi_behind("MPI_Abort", (void *)MPI_Abort);
    nicety_note_end(END_ABORT, code);
    /* The output is flushed as by exit, because the launcher may end the process before. */
    fflush(NULL);
    return own(communicator, code);
}

/* Processes that the program starts have no host. The types of handles differ between MPIs, and are not used here. */
static int refuse(const char *name) {
    if (nicety_slot) {
        fprintf(stderr, "nicety: rank %u calls %s, but processes that it starts have no host; start all processes by nicety exec -n\n",
                nicety_rank(), name);
        _exit(126);
    }
    return 1;
}

EXPORT int MPI_Comm_spawn(void);
EXPORT int MPI_Comm_spawn_multiple(void);

int MPI_Comm_spawn(void) {
    return refuse("MPI_Comm_spawn");
}

int MPI_Comm_spawn_multiple(void) {
    return refuse("MPI_Comm_spawn_multiple");
}
