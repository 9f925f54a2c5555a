/* A program that accesses registered memory by libfabric. Its first argument names the test, and the second the kind of card: portals,
 * rdma or none. Ranks exchange the addresses and keys of their regions by messages. */

#include "../../../shim/fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 100000, WORDS = BYTES / 8, MOST_RANKS = 8 };

static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_cntr *counter;
static uint64_t rank, ranks;
static int is_portals;

/* The memory of a rank, as other ranks name it. */
static struct place {
    uint64_t address, key;
} places[MOST_RANKS];
static uint64_t window[WORDS];

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "rank %d: line %d: %s\n", (int)rank, __LINE__, #what);                                     \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

static struct fi_provider *provider(void) {
    struct fi_provider *(*begin)(void);
    *(void **)&begin = dlsym(RTLD_DEFAULT, "fi_prov_ini");
    CHECK(begin);
    return begin();
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

/* Returns the error of the next completion. */
static struct fi_cq_err_entry failure(void) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    ssize_t read;
    while ((read = cq->ops->read(cq, &entry, 1)) == -EAGAIN)
        ;
    CHECK(read == -FI_EAVAIL && cq->ops->readerr(cq, &error, 0) == 1);
    return error;
}

static void send_to(uint64_t to, uint64_t tag, const void *bytes, size_t length) {
    CHECK(!ep->tagged->inject(ep, bytes, length, to, tag));
}

static void receive_from(uint64_t from, uint64_t tag, void *bytes, size_t length) {
    CHECK(!ep->tagged->recv(ep, bytes, length, NULL, from, tag, 0, bytes));
    CHECK(next().op_context == bytes);
}

/* Waits for all ranks. No other operation may complete during the wait. */
static void barrier(void) {
    char none;
    for (uint64_t other = 1; other < ranks; other++)
        if (rank == 0)
            receive_from(other, 1000, &none, 1);
    for (uint64_t other = 1; other < ranks; other++)
        if (rank == 0)
            send_to(other, 1001, &none, 1);
    if (rank) {
        send_to(0, 1000, &none, 1);
        receive_from(0, 1001, &none, 1);
    }
}

static void open_all(uint64_t more) {
    struct fi_provider *own = provider();
    struct fi_domain_attr modes = {.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT};
    struct fi_info hints = {.caps = FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | more, .domain_attr = &modes}, *info;
    CHECK(own->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, &hints, &info) == 0);
    is_portals = !info->domain_attr->mr_mode;
    struct fid_fabric *fabric;
    struct fid_av *av;
    CHECK(!own->fabric(info->fabric_attr, &fabric, NULL));
    CHECK(!fabric->ops->domain(fabric, info, &domain, NULL));
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr table = {.type = FI_AV_TABLE};
    CHECK(!domain->ops->cq_open(domain, &queue, &cq, NULL) && !domain->ops->av_open(domain, &table, &av, NULL));
    CHECK(!domain->ops->cntr_open(domain, NULL, &counter, NULL));
    CHECK(!domain->ops->endpoint(domain, info, &ep, NULL));
    CHECK(!ep->fid.ops->bind(&ep->fid, &av->fid, 0));
    CHECK(!ep->fid.ops->bind(&ep->fid, &cq->fid, FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION));
    CHECK(!ep->fid.ops->bind(&ep->fid, &counter->fid, FI_READ | FI_WRITE));
    CHECK(ep->fid.ops->bind(&ep->fid, &counter->fid, FI_REMOTE_WRITE) == (more & FI_RMA_EVENT ? 0 : -ENOSYS));
    /* In this test, messages have completions by default, and accesses have them on request. */
    uint64_t flags = FI_SEND | FI_COMPLETION;
    CHECK(!ep->fid.ops->control(&ep->fid, FI_SETOPSFLAG, &flags));
    flags = FI_RECV | FI_COMPLETION;
    CHECK(!ep->fid.ops->control(&ep->fid, FI_SETOPSFLAG, &flags));
    CHECK(!ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL));
    size_t bytes = sizeof rank;
    CHECK(!ep->cm->getname(&ep->fid, &rank, &bytes));
    for (uint64_t each = 0; each < ranks; each++)
        CHECK(av->ops->insert(av, &each, 1, NULL, 0, NULL) == 1);
}

static struct fid_mr *register_memory(void *bytes, size_t length, uint64_t access, uint64_t key) {
    struct fid_mr *mr;
    CHECK(!domain->mr->reg(&domain->fid, bytes, length, access, 0, key, 0, &mr, NULL));
    CHECK(!is_portals || mr->key == key);
    return mr;
}

static struct place place_of(const struct fid_mr *mr, const void *bytes) {
    return (struct place){is_portals ? 0 : (uintptr_t)bytes, mr->key};
}

static void tell_all(struct place own) {
    places[rank] = own;
    for (uint64_t other = 0; other < ranks; other++)
        if (other != rank)
            send_to(other, 7, &own, sizeof own);
    for (uint64_t other = 0; other < ranks; other++)
        if (other != rank)
            receive_from(other, 7, &places[other], sizeof *places);
}

static ssize_t write_to(uint64_t to, const void *bytes, size_t length, uint64_t offset, uint64_t flags, void *context) {
    struct iovec part = {(void *)bytes, length};
    struct fi_rma_iov there = {places[to].address + offset, length, places[to].key};
    struct fi_msg_rma msg = {&part, NULL, 1, to, &there, 1, context, 0};
    return ep->rma->writemsg(ep, &msg, flags);
}

static void close_all(struct fid_mr *mr) {
    barrier();
    CHECK(!mr->fid.ops->close(&mr->fid));
    CHECK(!ep->fid.ops->close(&ep->fid));
}

/* Rank 0 writes and reads memory of rank 1. Rank 1 only reads its queue. */
static void access_all(void) {
    static unsigned char out[BYTES], in[BYTES];
    struct fid_mr *early = NULL;
    open_all(0);
    early = register_memory(window, sizeof window, FI_REMOTE_READ | FI_REMOTE_WRITE, 0x1234567890abcdefull);
    tell_all(place_of(early, window));
    uint64_t done = 0;
    for (size_t bytes = 0; bytes <= BYTES && rank == 0; bytes = bytes * 5 + 1) {
        for (size_t at = 0; at < bytes; at++)
            out[at] = (unsigned char)(at * 7 + bytes);
        CHECK(!write_to(1, out, bytes, BYTES - bytes, FI_COMPLETION | FI_DELIVERY_COMPLETE, out));
        struct fi_cq_tagged_entry entry = next();
        CHECK(entry.op_context == out && entry.flags == (FI_RMA | FI_WRITE));
        CHECK(!ep->rma->read(ep, in, bytes, NULL, 1, places[1].address + BYTES - bytes, places[1].key, in));
        entry = next();
        CHECK(entry.op_context == in && entry.flags == (FI_RMA | FI_READ));
        CHECK(!memcmp(in, out, bytes));
        done += 2;
    }
    if (rank == 0) {
        CHECK(counter->ops->read(counter) == done);
        /* Injected bytes may be overwritten at once. An access may have several parts. */
        uint64_t words[3] = {1, 2, 3}, back[4] = {0};
        CHECK(!ep->rma->inject(ep, words, 24, 1, places[1].address, places[1].key));
        memset(words, 0, sizeof words);
        uint64_t more[2] = {4, 5};
        struct iovec parts[] = {{&more[0], 8}, {&more[1], 8}}, backs[] = {{&back[3], 8}, {&back[0], 16}};
        CHECK(!ep->rma->writev(ep, parts, NULL, 2, 1, places[1].address + 8, places[1].key, parts));
        memset(more, 0, sizeof more);
        CHECK(next().op_context == parts);
        CHECK(!ep->rma->readv(ep, backs, NULL, 2, 1, places[1].address, places[1].key, backs));
        CHECK(next().op_context == backs);
        CHECK(back[3] == 1 && back[0] == 4 && back[1] == 5 && back[2] == 0);
        /* It fails to inject more bytes than the maximum, or if both ends have different lengths. */
        CHECK(ep->rma->inject(ep, out, 65, 1, places[1].address, places[1].key) == -EMSGSIZE);
        struct fi_rma_iov short_one = {places[1].address, 8, places[1].key};
        struct fi_msg_rma msg = {&backs[1], NULL, 1, 1, &short_one, 1, NULL, 0};
        CHECK(ep->rma->writemsg(ep, &msg, 0) == -EINVAL && ep->rma->readmsg(ep, &msg, 0) == -EINVAL);
        CHECK(ep->rma->write(ep, out, 8, NULL, 99, 0, places[1].key, NULL) == -EINVAL);
        /* The write has data for the target's queue. When the target gets the data, the bytes are in memory. */
        for (size_t at = 0; at < BYTES; at++)
            out[at] = (unsigned char)(at * 7 + 1);
        CHECK(!ep->rma->writedata(ep, out, BYTES, NULL, 0xfeedbeef, 1, places[1].address, places[1].key, out));
        CHECK(next().op_context == out);
        CHECK(!ep->rma->injectdata(ep, "x", 1, 7, 1, places[1].address, places[1].key));
        CHECK(!counter->ops->wait(counter, done + 5, -1));
        /* The write completes when its bytes may be overwritten, which is before they arrive. */
        CHECK(!write_to(1, out, BYTES, 0, FI_COMPLETION | FI_INJECT_COMPLETE, out));
        CHECK(next().op_context == out);
    } else {
        struct fi_cq_tagged_entry entry;
        fi_addr_t from;
        while (cq->ops->readfrom(cq, &entry, 1, &from) == -EAGAIN)
            ;
        CHECK(entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA) && entry.data == 0xfeedbeef && from == 0);
        CHECK(entry.len == BYTES);
        for (size_t at = 0; at < BYTES; at++)
            CHECK(((unsigned char *)window)[at] == (unsigned char)(at * 7 + 1));
        entry = next();
        CHECK(entry.data == 7 && entry.len == 1 && *(char *)window == 'x');
    }
    close_all(early);
}

/* Forbidden accesses have no effect, and the initiator gets an error. */
static void bounds(void) {
    static uint64_t closed[8], unread[8] = {42}, unwritten[8];
    open_all(0);
    struct fid_mr *mr = register_memory(window, 64, FI_REMOTE_READ | FI_REMOTE_WRITE, 1);
    /* If the program chooses keys, a second region with the same key is refused. */
    struct fid_mr *again;
    if (is_portals)
        CHECK(domain->mr->reg(&domain->fid, window, 8, FI_REMOTE_READ, 0, 1, 0, &again, NULL) == -266 /* FI_ENOKEY */);
    CHECK(domain->mr->reg(&domain->fid, window, 8, FI_REMOTE_READ, 8, 2, 0, &again, NULL) == -EINVAL);
    struct fid_mr *gone = register_memory(closed, sizeof closed, FI_REMOTE_READ | FI_REMOTE_WRITE, 2);
    struct fid_mr *reads = register_memory(unwritten, sizeof unwritten, FI_REMOTE_READ, 3);
    struct fid_mr *writes = register_memory(unread, sizeof unread, FI_REMOTE_WRITE, 4);
    struct place of_gone = place_of(gone, closed), of_reads = place_of(reads, unwritten), of_writes = place_of(writes, unread);
    CHECK(!gone->fid.ops->close(&gone->fid));
    struct place others[] = {place_of(mr, window), of_gone, of_reads, of_writes};
    if (rank == 1)
        send_to(0, 8, others, sizeof others);
    uint64_t word = 7, errors = 0;
    if (rank == 0) {
        receive_from(1, 8, others, sizeof others);
        struct {
            struct place place;
            uint64_t offset, bytes;
            int reads, reason;
        } wrong[] = {
            {others[0], 57, 8, 0, 1024}, {others[0], 64, 1, 0, 1024},  {others[0], 57, 8, 1, 1024},
            {others[0], ~0ull, 8, 0, 1024}, {others[1], 0, 8, 0, 1024}, {others[1], 0, 8, 1, 1024},
            {others[2], 0, 8, 0, 1025}, {others[3], 0, 8, 1, 1025},    {{others[0].address, others[0].key + 64}, 0, 8, 0, 1024},
        };
        for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            struct place to = wrong[i].place;
            /* A card with RDMA checks addresses. The library checks keys, which contain the rights. */
            if (!is_portals && i == 8)
                continue;
            ssize_t posted = wrong[i].reads
                                 ? ep->rma->read(ep, &word, wrong[i].bytes, NULL, 1, to.address + wrong[i].offset, to.key, &word)
                                 : ep->rma->write(ep, &word, wrong[i].bytes, NULL, 1, to.address + wrong[i].offset, to.key, &word);
            if (!is_portals && wrong[i].reason == 1025) {
                CHECK(posted == -EACCES);
                continue;
            }
            CHECK(!posted);
            struct fi_cq_err_entry error = failure();
            CHECK(error.err == EACCES && error.op_context == &word && error.prov_errno == wrong[i].reason);
            CHECK(strstr(cq->ops->strerror(cq, error.prov_errno, NULL, NULL, 0), "registered memory"));
            errors++;
        }
        CHECK(word == 7);
        CHECK(counter->ops->read(counter) == 0 && counter->ops->readerr(counter) == errors);
        /* The last byte is in the region. An error is reported even if no completion is requested. */
        places[1] = others[0];
        CHECK(!write_to(1, &word, 1, 63, FI_COMPLETION, NULL));
        next();
        CHECK(!write_to(1, &word, 8, 60, 0, &word));
        CHECK(counter->ops->wait(counter, 2, -1) == -FI_EAVAIL);
        CHECK(failure().op_context == &word && counter->ops->readerr(counter) == errors + 1);
    }
    barrier();
    if (rank == 1) {
        for (int i = 0; i < 7; i++)
            CHECK(window[i] == 0);
        CHECK(window[7] == 7ull << 56 && unread[0] == 42);
        for (int i = 0; i < 8; i++)
            CHECK(window[8 + i] == 0 && closed[i] == 0 && unwritten[i] == 0);
    }
    CHECK(!reads->fid.ops->close(&reads->fid) && !writes->fid.ops->close(&writes->fid));
    close_all(mr);
}

enum { MIN, MAX, SUM, PROD, LOR, LAND, BOR, BAND, LXOR, BXOR, READ, WRITE, CSWAP, CSWAP_NE, CSWAP_LE, CSWAP_LT, CSWAP_GE, CSWAP_GT, MSWAP };
enum { INT32 = 4, UINT64 = 7, DOUBLE = 9 };

/* Rank 0 executes each operation on memory of rank 1, and checks the values before and after. */
static void each_atomic(void) {
    static const struct {
        int op;
        int64_t before, own, compared, behind;
    } all[] = {
        {MIN, -5, 3, 0, -5}, {MIN, 5, -3, 0, -3}, {MAX, -5, 3, 0, 3}, {SUM, 40, 2, 0, 42}, {PROD, -6, 7, 0, -42},
        {LOR, 0, 9, 0, 1}, {LAND, 4, 0, 0, 0}, {BOR, 12, 10, 0, 14}, {BAND, 12, 10, 0, 8}, {LXOR, 3, 5, 0, 0},
        {BXOR, 12, 10, 0, 6}, {READ, 77, 0, 0, 77}, {WRITE, 77, 78, 0, 78},
        {CSWAP, 5, 9, 5, 9}, {CSWAP, 5, 9, 6, 5}, {CSWAP_NE, 5, 9, 6, 9}, {CSWAP_NE, 5, 9, 5, 5},
        {CSWAP_LE, 5, 9, 5, 9}, {CSWAP_LE, 5, 9, 6, 5}, {CSWAP_LT, 5, 9, 4, 9}, {CSWAP_LT, 5, 9, 5, 5},
        {CSWAP_GE, 5, 9, 6, 9}, {CSWAP_GE, 5, 9, 4, 5}, {CSWAP_GT, 5, 9, 6, 9}, {CSWAP_GT, 5, 9, 5, 5},
        {MSWAP, 0xf0f, 0x123, 0xff, 0xf23},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        int32_t before = (int32_t)all[i].before, own = (int32_t)all[i].own, compared = (int32_t)all[i].compared, found = -1;
        for (int fetches = 0; fetches < 2; fetches++) {
            if (!fetches && (all[i].op == READ || all[i].op >= CSWAP))
                continue;
            CHECK(!write_to(1, &before, 4, 12, FI_COMPLETION, NULL));
            next();
            uint64_t address = places[1].address + 12, key = places[1].key;
            if (all[i].op >= CSWAP)
                CHECK(!ep->atomic->compwrite(ep, &own, 1, NULL, &compared, NULL, &found, NULL, 1, address, key, INT32, all[i].op, &own));
            else if (fetches)
                CHECK(!ep->atomic->readwrite(ep, &own, 1, NULL, &found, NULL, 1, address, key, INT32, all[i].op, &own));
            else
                CHECK(!ep->atomic->write(ep, &own, 1, NULL, 1, address, key, INT32, all[i].op, &own));
            struct fi_cq_tagged_entry entry = next();
            CHECK(entry.op_context == &own && entry.flags == (FI_ATOMIC | (fetches ? FI_READ : FI_WRITE)));
            CHECK(!fetches || found == before);
            CHECK(!ep->rma->read(ep, &found, 4, NULL, 1, address, key, NULL));
            next();
            if (found != (int32_t)all[i].behind)
                fprintf(stderr, "operation %d: %d\n", i, found);
            CHECK(found == (int32_t)all[i].behind);
        }
    }
}

static void atomics(void) {
    open_all(FI_ATOMIC);
    struct fid_mr *mr = register_memory(window, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE, 9);
    tell_all(place_of(mr, window));
    struct fi_atomic_attr attr;
    CHECK(!domain->ops->query_atomic(domain, DOUBLE, SUM, &attr, 0) && attr.size == 8 && attr.count == 512);
    CHECK(!domain->ops->query_atomic(domain, UINT64, CSWAP, &attr, FI_COMPARE_ATOMIC) && attr.count == 1);
    CHECK(!domain->ops->query_atomic(domain, UINT64, READ, &attr, FI_FETCH_ATOMIC) && attr.count == 512);
    /* Invalid: long double, bitwise operators on floating-point numbers, a minimum of complex numbers, a comparison, a tagged
     * operation. */
    CHECK(domain->ops->query_atomic(domain, 12, SUM, &attr, 0) == -EOPNOTSUPP);
    CHECK(domain->ops->query_atomic(domain, DOUBLE, BOR, &attr, 0) == -EOPNOTSUPP);
    CHECK(domain->ops->query_atomic(domain, 11, MIN, &attr, FI_FETCH_ATOMIC) == -EOPNOTSUPP);
    CHECK(domain->ops->query_atomic(domain, UINT64, CSWAP, &attr, 0) == -EOPNOTSUPP);
    CHECK(domain->ops->query_atomic(domain, UINT64, READ, &attr, 0) == -EOPNOTSUPP);
    CHECK(domain->ops->query_atomic(domain, UINT64, SUM, &attr, FI_TAGGED) == -EOPNOTSUPP);
    size_t count;
    CHECK(!ep->atomic->compwritevalid(ep, UINT64, MSWAP, &count) && count == 1);
    CHECK(ep->atomic->writevalid(ep, UINT64, MSWAP, &count) == -EOPNOTSUPP);
    uint64_t one = 1, address = places[0].address, key = places[0].key;
    CHECK(ep->atomic->write(ep, &one, 1, NULL, 0, address, key, DOUBLE, BOR, NULL) == -EOPNOTSUPP);
    CHECK(ep->atomic->write(ep, &one, 513, NULL, 0, address, key, UINT64, SUM, NULL) == -EINVAL);
    if (rank == 0)
        each_atomic();
    barrier();
    /* All ranks fetch and increment a counter of rank 0 at the same time. No number occurs twice. */
    enum { DRAWS = 20 };
    window[0] = rank == 0 ? 0 : window[0];
    barrier();
    static uint64_t drawn[DRAWS];
    for (int i = 0; i < DRAWS; i++)
        CHECK(!ep->atomic->readwrite(ep, &one, 1, NULL, &drawn[i], NULL, 0, address, key, UINT64, SUM, NULL));
    for (int i = 0; i < DRAWS; i++)
        next();
    for (int i = 0; i < DRAWS; i++) {
        CHECK(i == 0 || drawn[i] > drawn[i - 1]);
        CHECK(drawn[i] < ranks * DRAWS);
        uint64_t mark = 1;
        CHECK(!ep->atomic->inject(ep, &mark, 1, 0, address + 64 + 8 * drawn[i], key, UINT64, SUM));
        mark = 1000;
    }
    /* An operation on several items. Each item has two numbers. */
    double numbers[4] = {1.5, -2, 0.25, 3};
    CHECK(!ep->atomic->write(ep, numbers, 4, NULL, 0, address + 2048, key, DOUBLE, SUM, numbers));
    CHECK(next().op_context == numbers);
    barrier();
    if (rank == 0) {
        CHECK(window[0] == ranks * DRAWS);
        double *sums = (double *)window + 256;
        CHECK(sums[0] == 1.5 * (double)ranks && sums[1] == -2.0 * (double)ranks && sums[3] == 3.0 * (double)ranks);
        for (uint64_t i = 0; i < ranks * DRAWS; i++)
            CHECK(window[8 + i] == 1);
    }
    close_all(mr);
}

/* Accesses of other ranks to memory of a rank are counted on request. A wait for this count ends. */
static void counts(void) {
    struct fid_cntr *reads;
    open_all(FI_RMA_EVENT | FI_ATOMIC);
    CHECK(!domain->ops->cntr_open(domain, NULL, &reads, NULL));
    CHECK(!ep->fid.ops->bind(&ep->fid, &reads->fid, FI_REMOTE_READ));
    struct fid_mr *mr = register_memory(window, sizeof window, FI_REMOTE_READ | FI_REMOTE_WRITE, 9);
    tell_all(place_of(mr, window));
    uint64_t word = 5, address = places[1].address, key = places[1].key;
    if (rank == 0) {
        CHECK(counter->ops->wait(counter, 1, 0) == -ETIMEDOUT);
        for (int i = 0; i < 3; i++)
            CHECK(!ep->rma->inject(ep, &word, 8, 1, address + 8 * (uint64_t)i, key));
        CHECK(!ep->atomic->inject(ep, &word, 1, 1, address, key, UINT64, SUM));
        CHECK(!counter->ops->wait(counter, 4, -1) && counter->ops->read(counter) == 4);
        CHECK(!ep->rma->read(ep, &word, 8, NULL, 1, address, key, NULL));
        next();
        CHECK(word == 10);
        CHECK(!counter->ops->set(counter, 100) && counter->ops->read(counter) == 100);
        CHECK(!counter->ops->add(counter, 2) && counter->ops->read(counter) == 102);
        CHECK(!counter->ops->wait(counter, 102, 0));
    } else {
        /* The counter of the endpoint counts the accesses of this rank, and those of other ranks. */
        while (counter->ops->read(counter) < 4)
            ;
        CHECK(window[0] == 10 && window[2] == 5);
        CHECK(!reads->ops->wait(reads, 1, -1) && reads->ops->read(reads) == 1);
        CHECK(reads->ops->wait(reads, 2, 1) == -ETIMEDOUT);
    }
    close_all(mr);
}

/* A rank polls a word of its memory, and reads its queue between the polls. */
static void watched(void) {
    open_all(0);
    struct fid_mr *mr = register_memory(window, 64, FI_REMOTE_WRITE, 9);
    tell_all(place_of(mr, window));
    struct fi_cq_tagged_entry entry;
    uint64_t word = 1;
    if (rank == 0)
        CHECK(!ep->rma->inject(ep, &word, 8, 1, places[1].address, places[1].key));
    while (rank == 1 && *(volatile uint64_t *)window == 0)
        CHECK(cq->ops->read(cq, &entry, 1) == -EAGAIN);
    close_all(mr);
}

/* More accesses than a card has room for, without a read of the queue between them. */
static void burst(void) {
    open_all(0);
    struct fid_mr *mr = register_memory(window, sizeof window, FI_REMOTE_READ | FI_REMOTE_WRITE, 9);
    tell_all(place_of(mr, window));
    uint64_t many = is_portals ? 3000 : 300, back = 0;
    for (uint64_t i = 0; rank == 0 && i < many; i++)
        CHECK(!ep->rma->inject(ep, &i, 8, 1, places[1].address + 8 * i, places[1].key));
    if (rank == 0) {
        CHECK(!counter->ops->wait(counter, many, -1));
        CHECK(!ep->rma->read(ep, &back, 8, NULL, 1, places[1].address + 8 * (many - 1), places[1].key, NULL));
        next();
        CHECK(back == many - 1);
    }
    close_all(mr);
}

/* The capabilities that a card offers, to programs with both ways to register memory. */
static void offers(const char *card) {
    struct fi_provider *own = provider();
    struct fi_info *info;
    static const uint64_t rma = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    int has_rma = strcmp(card, "none") != 0, has_atomics = !strcmp(card, "portals");
    CHECK(!own->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info));
    CHECK((info->caps & rma) == (has_rma ? rma : 0) && !(info->caps & FI_ATOMIC) == !has_atomics);
    CHECK(!(info->tx_attr->msg_order & FI_ORDER_ATOMIC_WAW) == !has_atomics && !(info->caps & FI_RMA_EVENT));
    int by_address = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    CHECK(info->domain_attr->mr_mode == (has_rma && !has_atomics ? by_address : 0));
    struct fi_domain_attr modes = {0};
    struct fi_info hints = {.caps = FI_RMA, .domain_attr = &modes};
    CHECK(own->getinfo(FI_VERSION(2, 5), NULL, NULL, 0, &hints, &info) == (has_atomics ? 0 : -ENODATA));
    modes.mr_mode = by_address;
    CHECK(own->getinfo(FI_VERSION(2, 5), NULL, NULL, 0, &hints, &info) == (has_rma ? 0 : -ENODATA));
    CHECK(!has_rma || (info->caps & rma) == rma);
    /* The way of programs that were written for the first versions of libfabric. */
    modes.mr_mode = FI_MR_BASIC;
    CHECK(own->getinfo(FI_VERSION(1, 4), NULL, NULL, 0, &hints, &info) == (has_rma && !has_atomics ? 0 : -ENODATA));
    modes.mr_mode = FI_MR_SCALABLE;
    CHECK(own->getinfo(FI_VERSION(1, 4), NULL, NULL, 0, &hints, &info) == (has_atomics ? 0 : -ENODATA));
    hints.caps = FI_ATOMIC;
    CHECK(own->getinfo(FI_VERSION(1, 4), NULL, NULL, 0, &hints, &info) == (has_atomics ? 0 : -ENODATA));
    hints.caps = FI_RMA | FI_RMA_EVENT;
    CHECK(own->getinfo(FI_VERSION(1, 4), NULL, NULL, 0, &hints, &info) == (has_atomics ? 0 : -ENODATA));
    /* Without registered memory, the other capabilities are still offered. */
    hints.caps = 0, modes.mr_mode = 0;
    CHECK(!own->getinfo(FI_VERSION(2, 5), NULL, NULL, 0, &hints, &info));
    CHECK(!(info->caps & FI_RMA) == !has_atomics && info->caps & FI_TAGGED);
    struct fid_fabric *fabric;
    struct fid_av *av;
    struct fi_cq_attr queue = {0};
    struct fi_av_attr table = {0};
    CHECK(!own->fabric(info->fabric_attr, &fabric, NULL) && !fabric->ops->domain(fabric, info, &domain, NULL));
    CHECK(!domain->ops->cq_open(domain, &queue, &cq, NULL) && !domain->ops->av_open(domain, &table, &av, NULL));
    CHECK(!domain->ops->endpoint(domain, info, &ep, NULL));
    /* Memory that is registered before the endpoint exists is bound to the endpoint later. */
    struct fid_mr *mr;
    CHECK(!domain->mr->reg(&domain->fid, window, 64, FI_REMOTE_READ, 0, 5, 0, &mr, NULL));
    CHECK(!ep->fid.ops->bind(&ep->fid, &av->fid, 0) && !ep->fid.ops->bind(&ep->fid, &cq->fid, FI_SEND | FI_RECV));
    CHECK(!ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL));
    uint64_t zero = 0, word = 1;
    CHECK(av->ops->insert(av, &zero, 1, NULL, 0, NULL) == 1);
    window[0] = 11;
    if (!has_rma) {
        CHECK(ep->rma->read(ep, &word, 8, NULL, 0, 0, 5, NULL) == -EOPNOTSUPP);
    } else {
        uint64_t address = has_atomics ? 0 : (uintptr_t)window;
        CHECK(!ep->rma->read(ep, &word, 8, NULL, 0, address, mr->key, NULL));
        next();
        CHECK(word == 11);
    }
    if (!has_atomics)
        CHECK(ep->atomic->write(ep, &word, 1, NULL, 0, 0, mr->key | 3, UINT64, SUM, NULL) == -EOPNOTSUPP);
    CHECK(!mr->fid.ops->close(&mr->fid) && !ep->fid.ops->close(&ep->fid));
}

int main(int count, char **words) {
    CHECK(count == 4);
    const char *what = words[1];
    ranks = strtoul(words[3], NULL, 10);
    if (!strcmp(what, "offers"))
        offers(words[2]);
    else if (!strcmp(what, "access"))
        access_all();
    else if (!strcmp(what, "bounds"))
        bounds();
    else if (!strcmp(what, "atomics"))
        atomics();
    else if (!strcmp(what, "counts"))
        counts();
    else if (!strcmp(what, "watched"))
        watched();
    else if (!strcmp(what, "burst"))
        burst();
    else
        CHECK(!"known");
    return 0;
}
