/* Shared memory with a name that a process makes: noted, so that the simulator removes what one that crashes has left. */

#define _GNU_SOURCE

#include "process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void nicety_note_shared(const char *name) {
    size_t bytes = strlen(name);
    pthread_mutex_lock(&lock);
    for (int i = 0; bytes < NICETY_SHARED_BYTES && i < NICETY_SHARED; i++) {
        char *place = nicety_slot->shared[i];
        if (*place)
            continue;
        memcpy(place + 1, name + 1, bytes);
        /* With this it is a name. */
        __atomic_store_n(place, *name, __ATOMIC_RELEASE);
        break;
    }
    pthread_mutex_unlock(&lock);
}

static void forget(const char *name) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < NICETY_SHARED; i++)
        if (!strncmp(nicety_slot->shared[i], name, NICETY_SHARED_BYTES))
            __atomic_store_n(nicety_slot->shared[i], 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

EXPORT int shm_open(const char *name, int flags, mode_t mode) {
    static __typeof__(shm_open) *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "shm_open");
    int file = real(name, flags, mode);
    if (file >= 0 && flags & O_CREAT && nicety_slot && *name)
        nicety_note_shared(name);
    return file;
}

EXPORT int shm_unlink(const char *name) {
    static __typeof__(shm_unlink) *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "shm_unlink");
    int error = real(name);
    if (!error && nicety_slot && *name)
        forget(name);
    return error;
}
