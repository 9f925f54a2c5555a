/* A program that uses the provider as libfabric does. Its first argument names the test. */

#include "../../../shim/fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct fid_ep *ep;
static struct fid_cq *cq;
static uint64_t rank;
/* The maximum number of operations of the endpoint in flight; 0 for the provider's maximum. */
static size_t room;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "rank %d: line %d: %s\n", (int)rank, __LINE__, #what);                                     \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void open_all(unsigned ranks) {
    struct fi_provider *(*begin)(void);
    *(void **)&begin = dlsym(RTLD_DEFAULT, "fi_prov_ini");
    CHECK(begin);
    struct fi_provider *provider = begin();
    struct fi_info *info;
    CHECK(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info) == 0);
    CHECK(info->ep_attr->type == FI_EP_RDM && info->domain_attr->cq_data_size == 4);
    struct fi_info wrong = {.caps = BIT(5) /* FI_MULTICAST */}, *none;
    CHECK(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &wrong, &none) == -ENODATA);
    if (room) {
        struct fi_tx_attr sends = {.size = room};
        struct fi_rx_attr receives = {.size = room};
        struct fi_info wanted = {.tx_attr = &sends, .rx_attr = &receives};
        CHECK(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &wanted, &info) == 0);
        CHECK(info->tx_attr->size == room && info->rx_attr->size == room);
        sends.size = (size_t)1 << 40;
        CHECK(provider->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &wanted, &none) == -ENODATA);
    }
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    CHECK(!provider->fabric(info->fabric_attr, &fabric, NULL));
    CHECK(!fabric->ops->domain(fabric, info, &domain, NULL));
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr table = {.type = FI_AV_TABLE};
    CHECK(!domain->ops->cq_open(domain, &queue, &cq, NULL) && !domain->ops->av_open(domain, &table, &av, NULL));
    CHECK(!domain->ops->endpoint(domain, info, &ep, NULL));
    CHECK(!ep->fid.ops->bind(&ep->fid, &av->fid, 0) && !ep->fid.ops->bind(&ep->fid, &cq->fid, FI_SEND | FI_RECV));
    CHECK(!ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL));
    size_t bytes = sizeof rank;
    CHECK(!ep->cm->getname(&ep->fid, &rank, &bytes) && bytes == 8 && rank < ranks);
    for (uint64_t each = 0; each < ranks; each++) {
        fi_addr_t number;
        CHECK(av->ops->insert(av, &each, 1, &number, 0, NULL) == 1 && number == each);
    }
    uint64_t beyond = ranks;
    CHECK(av->ops->insert(av, &beyond, 1, NULL, 0, NULL) == 0);
}

static struct fi_cq_tagged_entry next(void) {
    struct fi_cq_tagged_entry entry;
    for (;;) {
        ssize_t read = cq->ops->read(cq, &entry, 1);
        CHECK(read == 1 || read == -EAGAIN);
        if (read == 1)
            return entry;
    }
}

static void close_all(void) {
    CHECK(!ep->fid.ops->close(&ep->fid));
}

/* Rank 1 gets messages of many lengths from rank 0, adds 1 to each byte, and sends them back. */
static void echo(void) {
    static unsigned char out[70000], in[70000];
    for (size_t bytes = 0; bytes < sizeof out; bytes = bytes * 3 + 1) {
        for (size_t at = 0; at < bytes; at++)
            out[at] = (unsigned char)(at * 7 + bytes);
        if (rank == 0)
            CHECK(!ep->tagged->senddata(ep, out, bytes, NULL, 0xabcd + bytes, 1, bytes, out));
        CHECK(!ep->tagged->recv(ep, in, sizeof in, NULL, 1 - rank, bytes, 0, in));
        for (int left = rank == 0 ? 2 : 1; left; left--) {
            struct fi_cq_tagged_entry done = next();
            if (done.op_context == out)
                continue;
            CHECK(done.op_context == in && done.len == bytes && done.tag == bytes && done.flags & FI_RECV);
            CHECK(done.data == 0xabcd + bytes && done.flags & FI_REMOTE_CQ_DATA);
        }
        for (size_t at = 0; at < bytes; at++)
            CHECK(in[at] == (unsigned char)(at * 7 + bytes + (rank == 0)));
        if (rank == 1) {
            for (size_t at = 0; at < bytes; at++)
                in[at]++;
            CHECK(!ep->tagged->senddata(ep, in, bytes, NULL, 0xabcd + bytes, 0, bytes, out));
            CHECK(next().op_context == out);
        }
    }
}

/* Receives match messages by source, by tag and by bits of a tag, in the order of receives. Tagged and untagged ones are separate. */
static void match(void) {
    static uint64_t in[5];
    uint64_t words[] = {10, 11, 12, 13, 14};
    if (rank == 0) {
        CHECK(!ep->tagged->recv(ep, &in[0], 8, NULL, FI_ADDR_UNSPEC, 0x10, 0x0f, &in[0]));
        CHECK(!ep->tagged->recv(ep, &in[1], 8, NULL, 2, 0, ~0ull, &in[1]));
        CHECK(!ep->tagged->recv(ep, &in[2], 8, NULL, 1, 0, ~0ull, &in[2]));
        CHECK(!ep->msg->recv(ep, &in[3], 8, NULL, FI_ADDR_UNSPEC, &in[3]));
        for (int left = 4; left; left--) {
            struct fi_cq_tagged_entry done;
            fi_addr_t from;
            while (cq->ops->readfrom(cq, &done, 1, &from) == -EAGAIN)
                ;
            CHECK(from == (done.op_context == &in[1] ? 2 : 1));
        }
        CHECK(in[0] == 11 && in[1] == 20 && in[2] == 12 && in[3] == 13);
    } else if (rank == 1) {
        usleep(10);
        CHECK(!ep->tagged->inject(ep, &words[1], 8, 0, 0x17));
        CHECK(!ep->tagged->inject(ep, &words[2], 8, 0, 0x15));
        CHECK(!ep->msg->inject(ep, &words[3], 8, 0));
    } else {
        uint64_t word = 20;
        usleep(20);
        CHECK(!ep->tagged->inject(ep, &word, 8, 0, 0x27));
    }
}

/* More operations than the endpoint has room for, so each is retried. Rank 1 reads its queue between retries. Rank 0 does not, so its
 * retries must let virtual time advance. */
static void full(void) {
    enum { ALL = 100 };
    static unsigned char bytes[ALL][4096];
    int refused = 0, left = ALL;
    /* The receives that the endpoint has room for are posted before the first message arrives. */
    if (rank == 0)
        usleep(20);
    for (int at = 0; at < ALL; at++) {
        ssize_t error;
        memset(bytes[at], rank == 0 ? at : 0, sizeof bytes[at]);
        for (;;) {
            error = rank == 0 ? ep->tagged->send(ep, bytes[at], sizeof bytes[at], NULL, 1, 7, bytes[at])
                              : ep->tagged->recv(ep, bytes[at], sizeof bytes[at], NULL, 0, 7, 0, bytes[at]);
            CHECK(!error || error == -EAGAIN);
            if (!error)
                break;
            CHECK(at >= (int)room);
            refused++;
            struct fi_cq_tagged_entry done;
            left -= rank == 1 && cq->ops->read(cq, &done, 1) == 1;
        }
    }
    CHECK(refused);
    for (; left; left--)
        next();
    for (int at = 0; at < ALL; at++)
        CHECK(bytes[at][0] == at && bytes[at][4095] == at);
}

/* More calls than a ring holds, without a read of the queue between them. Some bytes are overwritten at once, and some come from
 * several places. */
static void burst(void) {
    enum { MESSAGES = 200, PARTS = 3 };
    static uint64_t in[MESSAGES][PARTS];
    if (rank == 0) {
        for (uint64_t i = 0; i < MESSAGES; i++) {
            uint64_t words[PARTS] = {i, i * i, ~i};
            struct iovec parts[PARTS] = {{&words[0], 8}, {&words[1], 8}, {&words[2], 8}}, one = {words, sizeof words};
            struct fi_msg_tagged msg = {.msg_iov = &one, .iov_count = 1, .addr = 1, .tag = i};
            if (i % 3 == 0)
                CHECK(!ep->tagged->inject(ep, words, sizeof words, 1, i));
            else if (i % 3 == 1)
                CHECK(!ep->tagged->sendmsg(ep, &msg, FI_INJECT));
            else
                CHECK(!ep->tagged->sendv(ep, parts, NULL, PARTS, 1, i, NULL));
            memset(words, 0xee, sizeof words);
        }
        static char longer[65];
        CHECK(ep->tagged->inject(ep, longer, sizeof longer, 1, 0) == -EMSGSIZE);
        for (int left = MESSAGES - (MESSAGES + 2) / 3; left; left--)
            next();
    } else {
        for (uint64_t i = 0; i < MESSAGES; i++)
            CHECK(!ep->tagged->recv(ep, in[i], sizeof in[i], NULL, 0, i, 0, in[i]));
        for (int left = MESSAGES; left; left--)
            next();
        for (uint64_t i = 0; i < MESSAGES; i++)
            CHECK(in[i][0] == i && in[i][1] == i * i && in[i][2] == ~i);
    }
}

/* A message that is longer than its receive. */
static void cut(void) {
    char bytes[100] = "0123456789";
    if (rank == 0) {
        CHECK(!ep->tagged->inject(ep, bytes, 30, 1, 3));
        return;
    }
    char in[8];
    CHECK(!ep->tagged->recv(ep, in, sizeof in, NULL, 0, 3, 0, in));
    struct fi_cq_tagged_entry none;
    ssize_t read;
    while ((read = cq->ops->read(cq, &none, 1)) == -EAGAIN)
        ;
    struct fi_cq_err_entry entry;
    CHECK(read == -FI_EAVAIL && cq->ops->readerr(cq, &entry, 0) == 1);
    CHECK(entry.err == 265 && entry.len == 8 && entry.olen == 22 && entry.op_context == in && !memcmp(in, "01234567", 8));
}

/* A buffer for many messages, until it is full. */
static void many(void) {
    enum { MESSAGES = 40, BYTES = 100 };
    static char in[4096], out[BYTES];
    if (rank == 0) {
        for (int i = 0; i < MESSAGES; i++) {
            memset(out, i, BYTES);
            CHECK(!ep->msg->send(ep, out, BYTES, NULL, 1, NULL));
            next();
        }
        return;
    }
    size_t least = 512;
    CHECK(!ep->ops->setopt(&ep->fid, 0, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
    struct iovec part = {in, sizeof in};
    struct fi_msg msg = {.msg_iov = &part, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in};
    CHECK(!ep->msg->recvmsg(ep, &msg, FI_MULTI_RECV));
    char *place = in;
    for (int i = 0; i < MESSAGES; i++) {
        struct fi_cq_tagged_entry done = next();
        CHECK(done.buf == place && done.len == BYTES && place[0] == i && place[BYTES - 1] == i);
        place += BYTES;
        if (done.flags & FI_MULTI_RECV) {
            CHECK(i < MESSAGES - 1);
            place = in;
            CHECK(!ep->msg->recvmsg(ep, &msg, FI_MULTI_RECV));
        }
    }
}

/* A cancelled receive takes no message. The next receive takes it, whether that is posted before or after the cancellation. */
static void cancel(void) {
    uint64_t word = 7, in[4] = {0};
    if (rank == 0) {
        usleep(1000);
        for (uint64_t i = 0; i < 3; i++, word++)
            CHECK(!ep->tagged->inject(ep, &word, 8, 1, 3));
        return;
    }
    for (int i = 0; i < 3; i++)
        CHECK(!ep->tagged->recv(ep, &in[i], 8, NULL, 0, 3, 0, &in[i]));
    for (int i = 0; i < 3; i += 2) {
        CHECK(!ep->ops->cancel(&ep->fid, &in[i]));
        struct fi_cq_tagged_entry none;
        ssize_t read;
        while ((read = cq->ops->read(cq, &none, 1)) == -EAGAIN)
            ;
        struct fi_cq_err_entry entry;
        CHECK(read == -FI_EAVAIL && cq->ops->readerr(cq, &entry, 0) == 1);
        CHECK(entry.err == ECANCELED && entry.op_context == &in[i]);
    }
    CHECK(next().op_context == &in[1] && in[1] == 7);
    usleep(2000);
    CHECK(!ep->tagged->recv(ep, &in[3], 8, NULL, 0, 3, 0, &in[3]));
    CHECK(next().op_context == &in[3] && in[3] == 8);
    /* The cancellation is too late, because the message has arrived. It is received. */
    CHECK(!ep->tagged->recv(ep, &in[0], 8, NULL, 0, 3, 0, &in[0]));
    usleep(2000);
    CHECK(!ep->ops->cancel(&ep->fid, &in[0]));
    CHECK(next().op_context == &in[0] && in[0] == 9);
}

/* Probes for unexpected messages. A discarded message is gone, and a claimed message waits for the receive that names its claim. */
static void discard(void) {
    if (rank == 0) {
        for (uint64_t word = 0; word < 5; word++)
            CHECK(!ep->tagged->injectdata(ep, &word, 8, 100 + word, 1, 3));
        return;
    }
    uint64_t in = 99;
    struct iovec part = {&in, 8};
    struct fi_msg_tagged msg = {.msg_iov = &part, .iov_count = 1, .addr = 0, .tag = 3, .context = &in};
    usleep(1000);
    CHECK(ep->tagged->recvmsg(ep, &msg, FI_DISCARD) == -EINVAL);
    const uint64_t flags[] = {FI_PEEK, FI_PEEK | FI_DISCARD, FI_PEEK | FI_CLAIM, FI_PEEK};
    const uint64_t words[] = {0, 0, 1, 2};
    for (int i = 0; i < 4; i++) {
        msg.context = i == 3 ? NULL : &in;
        CHECK(!ep->tagged->recvmsg(ep, &msg, flags[i]));
        struct fi_cq_tagged_entry done = next();
        CHECK(done.op_context == msg.context && done.len == 8 && done.data == 100 + words[i]);
    }
    msg.context = &in;
    CHECK(!ep->tagged->recvmsg(ep, &msg, FI_CLAIM));
    CHECK(next().data == 101 && in == 1);
    CHECK(!ep->tagged->recvmsg(ep, &msg, FI_PEEK | FI_CLAIM));
    CHECK(next().data == 102);
    CHECK(!ep->tagged->recvmsg(ep, &msg, FI_CLAIM | FI_DISCARD));
    CHECK(next().op_context == &in && in == 1);
    for (uint64_t word = 3; word < 5; word++) {
        CHECK(!ep->tagged->recv(ep, &in, 8, NULL, 0, 3, 0, &in));
        CHECK(next().data == 100 + word && in == word);
    }
    CHECK(!ep->tagged->recvmsg(ep, &msg, FI_PEEK));
    struct fi_cq_tagged_entry none;
    ssize_t read;
    while ((read = cq->ops->read(cq, &none, 1)) == -EAGAIN)
        ;
    struct fi_cq_err_entry entry;
    CHECK(read == -FI_EAVAIL && cq->ops->readerr(cq, &entry, 0) == 1 && entry.err == ENOMSG);
}

static uint64_t now_ns(clockid_t clock) {
    struct timespec now;
    CHECK(!clock_gettime(clock, &now));
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* All clocks have the same time. Reading one costs time, and a sleep advances all. */
static void clocks(void) {
    usleep(1);
    uint64_t first = now_ns(CLOCK_MONOTONIC), second = now_ns(CLOCK_MONOTONIC);
    CHECK(second - first == 25);
    CHECK(now_ns(CLOCK_REALTIME) / 1000000000u == 1767225601u && time(NULL) == 1767225601);
    uint64_t before = now_ns(CLOCK_MONOTONIC);
    struct timespec span = {.tv_sec = 3600, .tv_nsec = 5};
    CHECK(!nanosleep(&span, NULL));
    CHECK(now_ns(CLOCK_MONOTONIC) - before == 3600000000005u + 25);
    span.tv_nsec = 1000000000;
    CHECK(nanosleep(&span, NULL) == -1 && errno == EINVAL);
    while (now_ns(CLOCK_MONOTONIC) < before + 3600100000000u)
        ;
    /* The library takes 65 ns to post a receive, and the next read of a clock includes them. A send proceeds in parallel with the
     * process. */
    char in[8];
    before = now_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < 3; i++)
        CHECK(!ep->tagged->recv(ep, in, sizeof in, NULL, 1 - rank, 5, 0, in));
    CHECK(now_ns(CLOCK_MONOTONIC) - before == 3 * 65 + 25);
    if (rank == 0)
        printf("%llu\n", (unsigned long long)now_ns(CLOCK_MONOTONIC));
}

/* Waits 20 ms for a byte that never arrives, and checks the duration. */
static void *waits(void *file) {
    struct pollfd look = {.fd = *(int *)file, .events = POLLIN};
    uint64_t before = now_ns(CLOCK_MONOTONIC);
    CHECK(poll(&look, 1, 20) == 0);
    CHECK(now_ns(CLOCK_MONOTONIC) - before >= 20000000u);
    return NULL;
}

/* A thread that does not use the network has real time, in clocks and in waits. */
static void threads(void) {
    int ends[2];
    CHECK(!pipe(ends));
    pthread_t other;
    CHECK(!pthread_create(&other, NULL, waits, ends) && !pthread_join(other, NULL));
}

static unsigned all_ranks;

static void open_of_mpi(void) {
    open_all(all_ranks);
}

static void look_of_mpi(void) {
    struct fi_cq_tagged_entry entry;
    CHECK(cq->ops->read(cq, &entry, 1) == -EAGAIN);
}

static void *in(void *mpi, const char *name) {
    void *found = dlsym(mpi, name);
    CHECK(found);
    return found;
}

/* Calls with names of MPI functions that wait. They read the queue 100 times while rank 0 sleeps. */
static void look_often(void) {
    static const char *const names[] = {"MPI_Barrier", "MPI_Bcast", "MPI_Scan"};
    if (rank == 0) {
        usleep(1000);
        return;
    }
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        int (*call)(void *);
        *(void **)&call = in(RTLD_DEFAULT, names[i]);
        uint64_t before = now_ns(CLOCK_MONOTONIC);
        CHECK(!call(NULL));
        CHECK(now_ns(CLOCK_MONOTONIC) - before == 100 * 25 + 25);
    }
}

/* An MPI that waits for its launcher at its start and its end. In between, rank 0 sends to rank 1, which may wait for one more
 * message. */
static void waits_for_launcher(const char *library, const char *folder, int looks, int for_more) {
    void *mpi = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    CHECK(mpi);
    *(void (**)(void))in(mpi, "waiting_open") = open_of_mpi;
    *(void (**)(void))in(mpi, "waiting_look") = look_of_mpi;
    *(void (**)(void))in(mpi, "waiting_close") = close_all;
    *(const char **)in(mpi, "waiting_folder") = folder;
    *(unsigned *)in(mpi, "waiting_rank") = (unsigned)rank;
    *(unsigned *)in(mpi, "waiting_ranks") = all_ranks;
    int (*start)(int *, char ***), (*end)(void);
    *(void **)&start = in(RTLD_DEFAULT, "MPI_Init");
    *(void **)&end = in(RTLD_DEFAULT, "MPI_Finalize");
    CHECK((void *)start != dlsym(mpi, "MPI_Init"));
    CHECK(!start(NULL, NULL));
    static char bytes[8];
    uint64_t before = now_ns(CLOCK_MONOTONIC);
    if (looks) {
        look_often();
    } else if (rank == 0) {
        usleep(30);
        CHECK(now_ns(CLOCK_MONOTONIC) - before == 30000 + 25);
        CHECK(!ep->tagged->send(ep, bytes, sizeof bytes, NULL, 1, 7, bytes));
        next();
    } else if (rank == 1) {
        for (int messages = for_more ? 2 : 1; messages; messages--) {
            CHECK(!ep->tagged->recv(ep, bytes, sizeof bytes, NULL, 0, 7, 0, bytes));
            next();
        }
        uint64_t took = now_ns(CLOCK_MONOTONIC) - before;
        CHECK(took > 30000 && took < 33000);
    }
    CHECK(!end());
}

int main(int count, char **words) {
    CHECK(count > 2);
    const char *what = words[1];
    if (!strcmp(what, "nothing"))
        return 0;
    if (!strcmp(what, "fails"))
        return 7;
    all_ranks = (unsigned)atoi(words[2]);
    if (count > 4) {
        rank = (uint64_t)atoi(getenv("NICETY_RANK"));
        waits_for_launcher(words[3], words[4], !strcmp(what, "looks"), !strcmp(what, "waits for more"));
        return 0;
    }
    room = strcmp(what, "full") ? 0 : 16;
    open_all(all_ranks);
    if (!strcmp(what, "echo"))
        echo();
    else if (!strcmp(what, "match"))
        match();
    else if (!strcmp(what, "full"))
        full();
    else if (!strcmp(what, "burst"))
        burst();
    else if (!strcmp(what, "cut"))
        cut();
    else if (!strcmp(what, "many"))
        many();
    else if (!strcmp(what, "cancel"))
        cancel();
    else if (!strcmp(what, "discard"))
        discard();
    else if (!strcmp(what, "clocks"))
        clocks();
    else if (!strcmp(what, "threads"))
        threads();
    else if (!strcmp(what, "stuck")) {
        char in[8];
        CHECK(!ep->tagged->recv(ep, in, sizeof in, NULL, 1 - rank, 5 + rank, 0x100, in));
        next();
    } else if (!strcmp(what, "killed") && rank == 1) {
        usleep(1);
        raise(SIGKILL);
    } else if (!strcmp(what, "leaves") && rank == 1) {
        usleep(1);
        return 0;
    } else {
        next();
    }
    close_all();
    return 0;
}
