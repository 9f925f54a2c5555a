/* Measures calls of a real program in real time, for processes.py. It calls the provider as libfabric does. */

#define _GNU_SOURCE

#include "fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                                         \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

static struct fid_ep *ep;
static struct fid_cq *cq;
static uint64_t rank;

/* Reads the clock of the kernel, not that of the preloaded library. */
static double real_ns(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void told(const char *what, double since, int count) {
    printf("%s %.1f\n", what, (real_ns() - since) / count);
}

static void wait_for(_Atomic uint32_t *word, uint32_t value) {
    while (atomic_load(word) != value)
        syscall(SYS_futex, word, FUTEX_WAIT, value - 1, NULL, NULL, 0);
}

static void put(_Atomic uint32_t *word, uint32_t value) {
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Round trips between two processes. While a process waits, it sleeps in the kernel. */
static int futexes(int count) {
    _Atomic uint32_t *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(words != MAP_FAILED);
    pid_t child = fork();
    for (int i = 1; child == 0 && i <= count; i++) {
        wait_for(&words[0], (uint32_t)i);
        put(&words[32], (uint32_t)i);
    }
    if (child == 0)
        _exit(0);
    double since = real_ns();
    for (int i = 1; i <= count; i++) {
        put(&words[0], (uint32_t)i);
        wait_for(&words[32], (uint32_t)i);
    }
    told("futex", since, count);
    CHECK(waitpid(child, NULL, 0) == child);
    return 0;
}

static void open_all(uint64_t ranks) {
    struct fi_provider *(*begin)(void);
    *(void **)&begin = dlsym(RTLD_DEFAULT, "fi_prov_ini");
    CHECK(begin);
    struct fi_provider *provider = begin();
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    CHECK(!provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info));
    CHECK(!provider->fabric(info->fabric_attr, &fabric, NULL) && !fabric->ops->domain(fabric, info, &domain, NULL));
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr table = {.type = FI_AV_TABLE};
    CHECK(!domain->ops->cq_open(domain, &queue, &cq, NULL) && !domain->ops->av_open(domain, &table, &av, NULL));
    CHECK(!domain->ops->endpoint(domain, info, &ep, NULL));
    CHECK(!ep->fid.ops->bind(&ep->fid, &av->fid, 0) && !ep->fid.ops->bind(&ep->fid, &cq->fid, FI_SEND | FI_RECV));
    CHECK(!ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL));
    size_t bytes = sizeof rank;
    CHECK(!ep->cm->getname(&ep->fid, &rank, &bytes));
    for (uint64_t each = 0; each < ranks; each++)
        CHECK(av->ops->insert(av, &each, 1, NULL, 0, NULL) == 1);
}

static struct fi_cq_tagged_entry entry;

static void completions(int left) {
    while (left)
        left -= cq->ops->read(cq, &entry, 1) == 1;
}

/* Calls that do not wait. A cancel without effect ends the cheap polls, so that the next poll has its full cost. */
static void alone(int count) {
    struct timespec now;
    char in[8], none;
    double since = real_ns();
    for (int i = 0; i < count; i++)
        clock_gettime(CLOCK_MONOTONIC, &now);
    told("clock", since, count);
    since = real_ns();
    for (int i = 0; i < count; i++)
        CHECK(!ep->ops->cancel(&ep->fid, &none));
    cq->ops->read(cq, &entry, 1);
    told("post", since, count);
    since = real_ns();
    for (int i = 0; i < count; i++) {
        if (i % 8 == 0)
            CHECK(!ep->ops->cancel(&ep->fid, &none));
        CHECK(cq->ops->read(cq, &entry, 1) == -EAGAIN);
    }
    told("look", since, count);
    since = real_ns();
    for (int i = 0; i < count / 4; i++) {
        CHECK(!ep->tagged->recv(ep, in, sizeof in, NULL, rank, 3, 0, in));
        CHECK(!ep->tagged->inject(ep, in, sizeof in, rank, 3));
        completions(1);
    }
    told("message", since, count / 4);
}

static void pingpong(int count) {
    char in[8];
    double since = real_ns();
    for (int i = 0; i < count; i++) {
        CHECK(!ep->tagged->recv(ep, in, sizeof in, NULL, 1 - rank, 5, 0, in));
        if (rank == 0)
            CHECK(!ep->tagged->inject(ep, in, sizeof in, 1, 5));
        completions(1);
        if (rank == 1)
            CHECK(!ep->tagged->inject(ep, in, sizeof in, 0, 5));
    }
    if (rank == 0)
        told("ping-pong", since, count);
}

int main(int count, char **words) {
    CHECK(count > 1);
    int times = atoi(words[1]);
    if (!getenv("NICETY_EXEC"))
        return futexes(times);
    char in[8];
    open_all(2);
    /* The other process waits, so it does not poll. */
    CHECK(!ep->tagged->recv(ep, in, sizeof in, NULL, 1 - rank, 9, 0, in));
    if (rank == 0) {
        alone(times);
        CHECK(!ep->tagged->inject(ep, in, sizeof in, 1, 9));
    } else {
        while (cq->ops->sread(cq, &entry, 1, NULL, -1) != 1)
            ;
        CHECK(!ep->tagged->inject(ep, in, sizeof in, 0, 9));
    }
    if (rank == 0)
        completions(1);
    pingpong(times / 4);
    CHECK(!ep->fid.ops->close(&ep->fid));
    return 0;
}
