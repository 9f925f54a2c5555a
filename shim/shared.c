/* Named shared memory of a process. The names are recorded, so that the simulator can remove the memory after a
 * crash. */

#define _GNU_SOURCE

#include "process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
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
        /* The store of the first byte makes the name valid. */
        __atomic_store_n(place, *name, __ATOMIC_RELEASE);
        atomic_fetch_add(&nicety_slot->names, 1);
        break;
    }
    pthread_mutex_unlock(&lock);
}

static void forget(const char *name) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < NICETY_SHARED; i++)
        if (!strncmp(nicety_slot->shared[i], name, NICETY_SHARED_BYTES)) {
            __atomic_store_n(nicety_slot->shared[i], 0, __ATOMIC_RELEASE);
            atomic_fetch_add(&nicety_slot->names, 1);
        }
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

/* Computes the name of a semaphore's shared memory. */
static int semaphore(const char *name, char *own, size_t bytes) {
    return nicety_slot && snprintf(own, bytes, "/sem.%s", *name == '/' ? name + 1 : name) < (int)bytes;
}

EXPORT sem_t *sem_open(const char *name, int flags, ...) {
    static sem_t *(*real)(const char *, int, ...);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sem_open");
    if (!(flags & O_CREAT))
        return real(name, flags);
    va_list more;
    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t);
    unsigned value = va_arg(more, unsigned);
    va_end(more);
    char own[NICETY_SHARED_BYTES];
    sem_t *semaphore_of = real(name, flags, mode, value);
    if (semaphore_of != SEM_FAILED && semaphore(name, own, sizeof own))
        nicety_note_shared(own);
    return semaphore_of;
}

EXPORT int sem_unlink(const char *name) {
    static __typeof__(sem_unlink) *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sem_unlink");
    char own[NICETY_SHARED_BYTES];
    int error = real(name);
    if (!error && semaphore(name, own, sizeof own))
        forget(own);
    return error;
}
