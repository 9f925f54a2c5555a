/* Output of a rank's processes goes into pipes of the simulator. A launcher does not read all of it if it ends the processes. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Redirects a standard stream that the launcher reads to this path. Another one, such as a terminal, stays unchanged. */
static void divert(int stream, const char *path) {
    struct stat status;
    if (fstat(stream, &status) || !(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
        return;
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    dup2(file, stream);
    close(file);
}

/* NICETY_WORDS has two paths, separated by a colon. The first process of a rank takes them, and its children inherit its streams, also
 * if it is a shell that redirects a program. */
__attribute__((constructor)) static void begin(void) {
    const char *paths = getenv("NICETY_WORDS"), *second = paths ? strchr(paths, ':') : NULL;
    char first[64];
    if (!second || (size_t)(second - paths) >= sizeof first)
        return;
    memcpy(first, paths, (size_t)(second - paths));
    first[second - paths] = 0;
    divert(STDOUT_FILENO, first);
    divert(STDERR_FILENO, second + 1);
    unsetenv("NICETY_WORDS");
}
