/* A program with one completion queue for sends and one for receives, as most programs with libfabric have. Its first argument names
 * the test, and the second is the number of ranks. The requirements are in fi_cq(3), fi_endpoint(3), fi_msg(3) and fi_getinfo(3). */

#include "../../../shim/fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VERSION FI_VERSION(1, 17)

static struct fi_provider *provider;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_cq *sent, *received;
static struct fid_cntr *sends, *receives;
static uint64_t rank, ranks;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "rank %d: line %d: %s\n", (int)rank, __LINE__, #what);                                     \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { NO_QUEUES = 1, COUNTERS = 2, SELECTIVE = 4, MANY = 8, NOTHING = 16 };

static struct fi_info *info_for(uint64_t caps) {
    struct fi_domain_attr modes = {.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY};
    struct fi_rx_attr side = {0};
    struct fi_info hints = {.caps = caps, .domain_attr = &modes, .rx_attr = &side}, *info;
    CHECK(provider->getinfo(VERSION, NULL, NULL, 0, &hints, &info) == 0);
    return info;
}

static void open_endpoint(uint64_t caps, int how) {
    struct fi_info *info = info_for(caps);
    struct fid_fabric *fabric;
    struct fid_av *av;
    CHECK(!provider->fabric(info->fabric_attr, &fabric, NULL));
    CHECK(!fabric->ops->domain(fabric, info, &domain, NULL));
    info->rx_attr->op_flags = how & MANY ? FI_MULTI_RECV : 0;
    struct fi_cq_attr one = {.format = FI_CQ_FORMAT_DATA}, other = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr table = {.type = FI_AV_TABLE};
    struct fi_cntr_attr counts = {.wait_obj = FI_WAIT_UNSPEC};
    CHECK(!domain->ops->cq_open(domain, &one, &sent, NULL) && !domain->ops->cq_open(domain, &other, &received, NULL));
    CHECK(!domain->ops->cntr_open(domain, &counts, &sends, NULL) && !domain->ops->cntr_open(domain, &counts, &receives, NULL));
    CHECK(!domain->ops->av_open(domain, &table, &av, NULL) && !domain->ops->endpoint(domain, info, &ep, NULL));
    struct fi_ops *own = ep->fid.ops;
    CHECK(!own->bind(&ep->fid, &av->fid, 0));
    uint64_t more = how & SELECTIVE ? FI_SELECTIVE_COMPLETION : 0;
    if (!(how & NO_QUEUES)) {
        CHECK(!own->bind(&ep->fid, &sent->fid, FI_SEND | more) && !own->bind(&ep->fid, &received->fid, FI_RECV | more));
        CHECK(sent->fid.ops->close(&sent->fid) == -EBUSY);
    }
    if (how & COUNTERS)
        CHECK(!own->bind(&ep->fid, &sends->fid, FI_SEND) && !own->bind(&ep->fid, &receives->fid, FI_RECV));
    if (how & NOTHING) {
        CHECK(own->control(&ep->fid, FI_ENABLE, NULL) == -FI_ENOCQ);
        CHECK(!own->bind(&ep->fid, &sent->fid, FI_SEND) && own->control(&ep->fid, FI_ENABLE, NULL) == -FI_ENOCQ);
        CHECK(!own->bind(&ep->fid, &received->fid, FI_RECV));
    }
    CHECK(!own->control(&ep->fid, FI_ENABLE, NULL));
    for (uint64_t each = 0; each < ranks; each++)
        CHECK(av->ops->insert(av, &each, 1, NULL, 0, NULL) == 1);
}

static void close_all(void) {
    CHECK(!ep->fid.ops->close(&ep->fid) && !sent->fid.ops->close(&sent->fid) && !received->fid.ops->close(&received->fid));
}

/* Returns the next completion of a queue. */
static struct fi_cq_tagged_entry next(struct fid_cq *cq) {
    struct fi_cq_tagged_entry entry = {0};
    ssize_t read;
    while ((read = cq->ops->read(cq, &entry, 1)) == -EAGAIN)
        ;
    CHECK(read == 1);
    return entry;
}

static void has_none(struct fid_cq *cq) {
    struct fi_cq_tagged_entry entry;
    for (int look = 0; look < 40; look++)
        CHECK(cq->ops->read(cq, &entry, 1) == -EAGAIN);
}

static uint64_t now_ns(void) {
    struct timespec now;
    CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Each queue has its own completions, in order, even if the other queue is not read. A single read does not return all of them. */
static void apart(void) {
    enum { MESSAGES = 70 };
    static uint64_t out[MESSAGES], in[MESSAGES], answer;
    if (rank == 0) {
        CHECK(!ep->tagged->recv(ep, &answer, 8, NULL, 1, 1000, 0, &answer));
        for (uint64_t i = 0; i < MESSAGES; i++) {
            out[i] = i * i;
            CHECK(!ep->tagged->senddata(ep, &out[i], 8, NULL, 500 + i, 1, i, &out[i]));
        }
        struct fi_cq_tagged_entry done = next(received);
        CHECK(done.op_context == &answer && done.flags == (FI_TAGGED | FI_RECV) && done.tag == 1000 && answer == 77);
        CHECK(sent->ops->read(sent, NULL, 0) == 0 && received->ops->read(received, NULL, 0) == -EAGAIN);
        for (uint64_t i = 0; i < MESSAGES; i++) {
            done = next(sent);
            CHECK(done.op_context == &out[i] && done.flags == (FI_TAGGED | FI_SEND));
        }
    } else {
        for (uint64_t i = 0; i < MESSAGES; i++)
            CHECK(!ep->tagged->recv(ep, &in[i], 8, NULL, 0, i, 0, &in[i]));
        for (uint64_t i = 0; i < MESSAGES; i++) {
            struct fi_cq_tagged_entry done = next(received);
            CHECK(done.op_context == &in[i] && done.tag == i && done.data == 500 + i && in[i] == i * i);
            CHECK(done.flags == (FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA));
        }
        answer = 77;
        CHECK(!ep->tagged->send(ep, &answer, 8, NULL, 0, 1000, out));
        CHECK(next(sent).op_context == out);
    }
    has_none(sent);
    has_none(received);
}

/* An error goes to the queue of the failed operation. A wait lasts until its limit, even if a completion for the other queue arrives. */
static void waits(void) {
    static char in[8], out[64];
    struct fi_cq_tagged_entry done;
    struct fi_cq_err_entry error;
    if (rank == 0) {
        usleep(5000);
        CHECK(!ep->tagged->send(ep, out, sizeof out, NULL, 1, 1, out));
        CHECK(next(sent).op_context == out);
        return;
    }
    CHECK(!ep->tagged->recv(ep, in, sizeof in, NULL, 0, 1, 0, in));
    CHECK(!ep->tagged->send(ep, out, 8, NULL, 1, 2, out));
    uint64_t before = now_ns();
    CHECK(received->ops->sread(received, &done, 1, NULL, 1) == -EAGAIN);
    uint64_t took = now_ns() - before;
    CHECK(took >= 1000000 && took < 1001000);
    CHECK(received->ops->sread(received, &done, 1, NULL, -1) == -FI_EAVAIL && now_ns() - before > 4000000);
    CHECK(sent->ops->readerr(sent, &error, 0) == -EAGAIN);
    CHECK(received->ops->readerr(received, &error, 0) == 1 && error.err == 265 && error.olen == sizeof out - 8);
    CHECK(sent->ops->sread(sent, &done, 1, NULL, 0) == 1 && done.op_context == out);
    CHECK(!ep->tagged->recv(ep, in, sizeof in, NULL, 1, 2, 0, in));
    CHECK(next(received).op_context == in);
}

/* Counters count even if the endpoint has no queues. */
static void counts(int has_queues) {
    enum { MESSAGES = 30 };
    static char in[MESSAGES][100], out[100];
    if (rank == 1) {
        for (int i = 0; i < MESSAGES; i++)
            CHECK(!ep->msg->recv(ep, in[i], sizeof in[i], NULL, 0, in[i]));
        CHECK(!receives->ops->wait(receives, MESSAGES, -1) && receives->ops->read(receives) == MESSAGES);
        CHECK(in[MESSAGES - 1][99] == MESSAGES - 1 && sends->ops->read(sends) == 0);
        CHECK(!ep->msg->inject(ep, out, 1, 0));
    } else {
        for (int i = 0; i < MESSAGES; i++) {
            memset(out, i, sizeof out);
            CHECK(!ep->msg->send(ep, out, sizeof out, NULL, 1, out));
            CHECK(!sends->ops->wait(sends, (uint64_t)i + 1, 1000));
        }
        CHECK(!ep->msg->recv(ep, in[0], 1, NULL, 1, in) && !receives->ops->wait(receives, 1, -1));
    }
    if (has_queues) {
        has_none(sent);
        has_none(received);
    }
}

/* Two buffers are used in turn. Each takes messages until it is full, or until less than the minimum is left. */
static void many(void) {
    enum { BUFFER = 6400, ROUNDS = 6 };
    static const size_t lengths[] = {100, 64, 6400, 1500, 3200};
    static char in[2][BUFFER], out[BUFFER], last[8];
    for (unsigned length = 0; length < sizeof lengths / sizeof *lengths; length++) {
        size_t bytes = lengths[length];
        int messages = (int)(BUFFER / bytes) * ROUNDS;
        if (rank == 0) {
            CHECK(!ep->tagged->recv(ep, last, sizeof last, NULL, 1, 9, 0, last) && next(received).op_context == last);
            for (int i = 0; i < messages; i++) {
                memset(out, i, bytes);
                CHECK(!ep->msg->send(ep, out, bytes, NULL, 1, NULL));
                next(sent);
            }
            continue;
        }
        CHECK(!ep->ops->setopt(&ep->fid, 0, FI_OPT_MIN_MULTI_RECV, &bytes, sizeof bytes));
        for (int half = 0; half < 2; half++)
            CHECK(!ep->msg->recv(ep, in[half], BUFFER, NULL, 0, in[half]));
        CHECK(!ep->tagged->inject(ep, last, 1, 0, 9));
        for (int round = 0; round < ROUNDS; round++) {
            char *half = in[round % 2];
            for (size_t used = 0; used + bytes <= BUFFER; used += bytes) {
                struct fi_cq_tagged_entry done = next(received);
                int i = round * (int)(BUFFER / bytes) + (int)(used / bytes);
                CHECK(done.op_context == half && done.buf == half + used && done.len == bytes);
                CHECK(half[used] == (char)i && half[used + bytes - 1] == (char)i);
                CHECK(!(done.flags & FI_MULTI_RECV) == (used + 2 * bytes <= BUFFER));
            }
            if (round < ROUNDS - 2)
                CHECK(!ep->msg->recv(ep, half, BUFFER, NULL, 0, half));
        }
    }
}

/* A message that does not fit takes the rest of a buffer. Then the next receive is used, for one message or for many, in the order of
 * posting. A buffer may be cancelled. Its end is reported even if completions are not requested. */
static void behind(void) {
    static char first[100], single[50], then[100], out[80], last[1];
    struct fi_cq_tagged_entry done;
    struct fi_cq_err_entry error;
    size_t least = 10;
    if (rank == 0) {
        CHECK(!ep->tagged->recv(ep, last, 1, NULL, 1, 9, 0, last) && !receives->ops->wait(receives, 1, -1));
        for (int i = 0; i < 5; i++) {
            memset(out, i, sizeof out);
            CHECK(!ep->msg->inject(ep, out, i == 2 ? 50 : 60, 1));
        }
        return;
    }
    CHECK(!ep->ops->setopt(&ep->fid, 0, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
    struct iovec parts[] = {{first, sizeof first}, {single, sizeof single}, {then, sizeof then}};
    struct fi_msg msg = {.msg_iov = &parts[0], .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = first};
    CHECK(!ep->msg->recvmsg(ep, &msg, FI_MULTI_RECV));
    msg.msg_iov = &parts[1], msg.context = single;
    CHECK(!ep->msg->recvmsg(ep, &msg, FI_COMPLETION));
    CHECK(!ep->tagged->inject(ep, out, 1, 0, 9));
    /* The first message fits, and the second is truncated to 40 bytes. */
    while (received->ops->read(received, &done, 1) == -EAGAIN)
        ;
    CHECK(received->ops->readerr(received, &error, 0) == 1 && error.err == 265 && error.len == 40 && error.olen == 20);
    CHECK(error.op_context == first && error.buf == first + 60 && error.flags & FI_MULTI_RECV && first[59] == 0 && first[60] == 1);
    done = next(received);
    CHECK(done.op_context == single && done.len == 50 && single[49] == 2);
    /* Two more messages have arrived, and wait for a receive. */
    usleep(1000);
    msg.msg_iov = &parts[2], msg.context = then;
    CHECK(!ep->msg->recvmsg(ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
    CHECK(next(received).op_context == then && then[0] == 3);
    while (received->ops->read(received, &done, 1) == -EAGAIN)
        ;
    CHECK(received->ops->readerr(received, &error, 0) == 1 && error.flags & FI_MULTI_RECV && then[60] == 4);
    CHECK(!ep->msg->recvmsg(ep, &msg, FI_MULTI_RECV) && !ep->ops->cancel(&ep->fid, then));
    while (received->ops->read(received, &done, 1) == -EAGAIN)
        ;
    CHECK(received->ops->readerr(received, &error, 0) == 1 && error.err == ECANCELED && error.op_context == then);
}

/* Messages of the maximum length that a buffer for many messages accepts, and a longer message. */
static void long_ones(void) {
    enum { MOST = 1 << 20, BUFFER = 3 * MOST };
    static char in[BUFFER], out[MOST + 5], last[1];
    struct fi_cq_tagged_entry done;
    struct fi_cq_err_entry error;
    if (rank == 0) {
        CHECK(!ep->tagged->recv(ep, last, 1, NULL, 1, 9, 0, last) && next(received).op_context == last);
        for (int i = 0; i < 2; i++) {
            memset(out, 5 + i, sizeof out);
            CHECK(!ep->msg->send(ep, out, (size_t)MOST + (i ? 5 : 0), NULL, 1, out) && next(sent).op_context == out);
        }
        return;
    }
    CHECK(!ep->msg->recv(ep, in, sizeof in, NULL, 0, in) && !ep->tagged->inject(ep, last, 1, 0, 9));
    done = next(received);
    CHECK(done.buf == in && done.len == MOST && in[MOST - 1] == 5 && !(done.flags & FI_MULTI_RECV));
    while (received->ops->read(received, &done, 1) == -EAGAIN)
        ;
    CHECK(received->ops->readerr(received, &error, 0) == 1 && error.err == 265 && error.len + error.olen == MOST + 5);
    CHECK(error.flags & FI_MULTI_RECV && error.len >= MOST && in[2 * MOST - 1] == 6);
}

/* Accesses to memory of another rank complete in the queue of sends. Their data arrives in the target's queue of receives. */
static void accesses(int has_atomics) {
    static uint64_t memory[8], out[2] = {5, 6}, old, places[2];
    struct fid_mr *region;
    CHECK(!domain->mr->reg(&domain->fid, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 40 + rank, 0, &region, NULL));
    uint64_t own[] = {region->key, info_for(FI_TAGGED | FI_RMA)->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0};
    CHECK(!ep->tagged->recv(ep, places, sizeof places, NULL, 1 - rank, 1, 0, places));
    CHECK(!ep->tagged->inject(ep, own, sizeof own, 1 - rank, 1) && next(received).op_context == places);
    if (rank == 0) {
        CHECK(!ep->rma->writedata(ep, out, 16, NULL, 321, 1, places[1] + 8, places[0], out));
        struct fi_cq_tagged_entry done = next(sent);
        CHECK(done.op_context == out && done.flags == (FI_RMA | FI_WRITE));
        if (has_atomics) {
            CHECK(!ep->atomic->readwrite(ep, out, 1, NULL, &old, NULL, 1, places[1] + 8, places[0], 7, 2, &old));
            done = next(sent);
            CHECK(done.op_context == &old && done.flags == (FI_ATOMIC | FI_READ) && old == 5);
        }
        has_none(received);
        CHECK(!ep->tagged->inject(ep, out, 8, 1, 2));
    } else {
        struct fi_cq_tagged_entry done = next(received);
        CHECK(done.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA) && done.data == 321 && done.len == 16);
        CHECK(!ep->tagged->recv(ep, &old, 8, NULL, 0, 2, 0, &old) && next(received).op_context == &old);
        CHECK(memory[1] == (has_atomics ? 10 : 5) && memory[2] == 6);
        has_none(sent);
    }
}

/* A process is named by its rank or by its port. */
static void names(void) {
    struct fi_info *info;
    char own[32], other[32];
    snprintf(own, sizeof own, "nicety:%d", (int)rank);
    snprintf(other, sizeof other, "nicety:%d", (int)(1 - rank));
    CHECK(!provider->getinfo(VERSION, own, NULL, FI_SOURCE, NULL, &info) && *(uint64_t *)info->src_addr == rank && !info->dest_addr);
    CHECK(provider->getinfo(VERSION, other, NULL, FI_SOURCE, NULL, &info) == -ENODATA);
    CHECK(!provider->getinfo(VERSION, other, NULL, 0, NULL, &info) && info->dest_addrlen == 8);
    CHECK(*(uint64_t *)info->dest_addr == 1 - rank && *(uint64_t *)info->src_addr == rank);
    struct fi_info hints = {.dest_addr = info->dest_addr, .dest_addrlen = 8};
    CHECK(!provider->getinfo(VERSION, NULL, NULL, 0, &hints, &info) && *(uint64_t *)info->dest_addr == 1 - rank);
    for (const char *const *wrong = (const char *[]){"nicety:2", "7", "host", NULL}; *wrong; wrong++)
        CHECK(provider->getinfo(VERSION, *wrong, *wrong[0] == 'h' ? "http" : NULL, 0, NULL, &info) == -ENODATA);
    /* The owner of the port names the port late. */
    if (rank == 0) {
        struct timespec span = {.tv_nsec = 200000000};
        nanosleep(&span, NULL);
        CHECK(!provider->getinfo(VERSION, NULL, "9228", FI_SOURCE, NULL, &info));
    } else {
        CHECK(!provider->getinfo(VERSION, "127.0.0.1", "9228", 0, NULL, &info) && *(uint64_t *)info->dest_addr == 0);
    }
}

/* A server reads its queue while it waits outside the simulation, here for a file. The client starts only then. */
static void late(const char *path) {
    struct timespec span = {.tv_nsec = 1000000};
    struct fi_cq_tagged_entry done;
    uint64_t word = 5;
    if (rank == 0) {
        open_endpoint(FI_TAGGED | FI_DIRECTED_RECV, 0);
        CHECK(!ep->tagged->recv(ep, &word, 8, NULL, 1, 1, 0, &word));
        for (int look = 0; look < 3; look++)
            CHECK(received->ops->read(received, &done, 1) == -EAGAIN);
        FILE *file = fopen(path, "w");
        CHECK(file && !fclose(file));
        CHECK(next(received).op_context == &word && word == 6);
        return;
    }
    for (int look = 0; look < 30000 && access(path, F_OK); look++)
        nanosleep(&span, NULL);
    CHECK(!access(path, F_OK));
    open_endpoint(FI_TAGGED | FI_DIRECTED_RECV, 0);
    word = 6;
    CHECK(!ep->tagged->inject(ep, &word, 8, 0, 1));
}

/* Checks a table of operations: its size in bytes, and that no entry is missing. */
static void is_full(const void *table) {
    const size_t *words = table;
    for (size_t place = 1; place < words[0] / sizeof *words; place++)
        CHECK(words[place]);
}

/* Programs call the entries of a table without checking that they exist. */
static void tables(void) {
    struct fi_info *info = info_for(FI_MSG);
    struct fid_fabric *fabric;
    struct fid_av *av;
    struct fid_eq *eq;
    struct fid_mr *region;
    struct fi_av_attr table = {.type = FI_AV_MAP};
    CHECK(!provider->fabric(info->fabric_attr, &fabric, NULL) && !fabric->ops->eq_open(fabric, NULL, &eq, NULL));
    CHECK(!domain->ops->av_open(domain, &table, &av, NULL));
    CHECK(!domain->mr->reg(&domain->fid, &table, sizeof table, FI_SEND, 0, 7, 0, &region, NULL));
    const void *all[] = {fabric->ops, eq->ops, av->ops, domain->ops, domain->mr, sent->ops, sends->ops, ep->ops, ep->cm, ep->msg, ep->rma,
                         ep->tagged, ep->atomic, ep->collective, ep->fid.ops, sent->fid.ops, sends->fid.ops, av->fid.ops, eq->fid.ops,
                         domain->fid.ops, fabric->fid.ops, region->fid.ops};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        is_full(all[i]);
    CHECK(ep->cm->shutdown(ep, 0) == -ENOSYS && av->ops->insertsvc(av, "x", "1", NULL, 0, NULL) == -ENOSYS);
}

/* Files and threads of the operating system get no events from the simulation. */
static void objects(void) {
    struct fid_cq *cq;
    struct fid_cntr *counter;
    for (int object = FI_WAIT_NONE; object <= FI_WAIT_POLLFD + 1; object++) {
        int expected = object == FI_WAIT_NONE || object == FI_WAIT_UNSPEC || object == FI_WAIT_YIELD ? 0 : -ENOSYS;
        struct fi_cq_attr queue = {.wait_obj = object};
        struct fi_cntr_attr counts = {.wait_obj = object};
        CHECK(domain->ops->cq_open(domain, &queue, &cq, NULL) == expected);
        CHECK(domain->ops->cntr_open(domain, &counts, &counter, NULL) == expected);
    }
    size_t most = 0, bytes = sizeof most;
    CHECK(!ep->ops->getopt(&ep->fid, 0, FI_OPT_INJECT_MSG_SIZE, &most, &bytes) && most == 64);
    most = 65;
    CHECK(ep->ops->setopt(&ep->fid, 0, FI_OPT_INJECT_MSG_SIZE, &most, bytes) == -EINVAL);
    most = 8;
    CHECK(!ep->ops->setopt(&ep->fid, 0, FI_OPT_INJECT_MSG_SIZE, &most, bytes));
}

int main(int count, char **words) {
    CHECK(count == 3 || count == 4);
    const char *what = words[1];
    struct fi_provider *(*begin)(void);
    *(void **)&begin = dlsym(RTLD_DEFAULT, "fi_prov_ini");
    CHECK(begin);
    provider = begin();
    ranks = (uint64_t)atoi(words[2]);
    rank = (uint64_t)atoi(getenv("NICETY_RANK"));
    const uint64_t both = FI_MSG | FI_TAGGED, directed = both | FI_DIRECTED_RECV;
    if (!strcmp(what, "lacks")) {
        struct fi_info hints = {.caps = FI_MSG | FI_ATOMIC}, *none;
        return provider->getinfo(VERSION, NULL, NULL, 0, &hints, &none) == -ENODATA ? 61 : 0;
    }
    if (!strcmp(what, "late")) {
        late(words[3]);
        close_all();
        return 0;
    }
    if (!strcmp(what, "names"))
        names();
    int how = !strcmp(what, "many") || !strcmp(what, "long ones") ? MANY : !strcmp(what, "counts") ? COUNTERS | SELECTIVE : 0;
    how |= !strcmp(what, "counts alone") ? COUNTERS | NO_QUEUES : !strcmp(what, "behind") ? COUNTERS | SELECTIVE : 0;
    how |= !strcmp(what, "objects") ? NO_QUEUES | NOTHING : 0;
    int is_access = !strncmp(what, "access", 6), has_atomics = !strcmp(what, "access atomics");
    uint64_t more = is_access ? FI_RMA | (has_atomics ? FI_ATOMIC : 0) : 0;
    open_endpoint((how & MANY ? both | FI_MULTI_RECV : directed | FI_MULTI_RECV) | more, how);
    if (!strcmp(what, "apart"))
        apart();
    else if (!strcmp(what, "waits"))
        waits();
    else if (how & COUNTERS && strcmp(what, "behind"))
        counts(!(how & NO_QUEUES));
    else if (!strcmp(what, "many"))
        many();
    else if (!strcmp(what, "behind"))
        behind();
    else if (!strcmp(what, "long ones"))
        long_ones();
    else if (is_access)
        accesses(has_atomics);
    else if (!strcmp(what, "objects"))
        objects();
    else if (!strcmp(what, "tables"))
        tables();
    close_all();
    return 0;
}
