/* Counters. The simulator counts ended operations by kind. The value of a counter is the sum over the kinds to which
 * the counter is bound. */

#include "provider.h"
#include "waits.h"

#include <errno.h>
#include <stdlib.h>

struct counter {
    struct fid_cntr cntr;
    uint32_t kinds;
    /* The amounts that the program has set or added, besides the counts. */
    uint64_t value, errors;
    /* The number of counted failures that the program has read. */
    uint64_t told;
    /* The number of calls and looks of the process when the program last read the counter. */
    uint64_t looked;
};

static uint64_t sum(const struct counter *counter, const uint64_t *by_kind) {
    uint64_t all = 0;
    for (unsigned kind = 0; nicety_slot && kind < NICETY_KINDS; kind++)
        all += counter->kinds >> kind & 1 ? by_kind[kind] : 0;
    return all;
}

static uint64_t counted(const struct counter *counter) {
    return sum(counter, nicety_slot->counts.done);
}

static uint64_t failures(const struct counter *counter) {
    return sum(counter, nicety_slot->counts.failed);
}

/* Waits for a count or a new failure, at most for `ps` picoseconds. With 0, this is a look. */
static void await(struct counter *counter, uint64_t wanted, uint64_t ps) {
    uint64_t args[] = {counter->kinds, wanted, failures(counter), ps, nicety_kind_of_look()};
    if (nicety_attached() && !nicety_is_idle() && !nicety_slot->ended)
        nicety_call(CALL_COUNT, 0, args, 5);
    counter->looked = nicety_calls();
}

/* The counts of the last reply are current, because time stands still or nothing can arrive. A second read without a
 * call in between lets time advance. */
static void look(struct counter *counter) {
    nicety_catch_up();
    if (counter->looked == nicety_calls() && !nicety_look())
        await(counter, counted(counter) + 1, 0);
    counter->looked = nicety_calls();
}

static uint64_t counter_read(struct fid_cntr *cntr) {
    struct counter *counter = (struct counter *)cntr;
    look(counter);
    return counter->value + counted(counter);
}

static uint64_t counter_readerr(struct fid_cntr *cntr) {
    struct counter *counter = (struct counter *)cntr;
    look(counter);
    counter->told = failures(counter);
    return counter->errors + counter->told;
}

static int counter_set(struct fid_cntr *cntr, uint64_t value) {
    struct counter *counter = (struct counter *)cntr;
    counter->value = value - counted(counter);
    return 0;
}

static int counter_add(struct fid_cntr *cntr, uint64_t value) {
    ((struct counter *)cntr)->value += value;
    return 0;
}

static int counter_seterr(struct fid_cntr *cntr, uint64_t value) {
    struct counter *counter = (struct counter *)cntr;
    counter->errors = value - failures(counter);
    return 0;
}

static int counter_adderr(struct fid_cntr *cntr, uint64_t value) {
    ((struct counter *)cntr)->errors += value;
    return 0;
}

static int counter_wait(struct fid_cntr *cntr, uint64_t threshold, int ms) {
    struct counter *counter = (struct counter *)cntr;
    uint64_t wanted = threshold - counter->value;
    if (threshold < counter->value)
        return 0;
    if (counted(counter) < wanted && failures(counter) == counter->told)
        await(counter, wanted, ms < 0 ? NICETY_ANY : (uint64_t)ms * 1000000000ull);
    if (counted(counter) >= wanted)
        return 0;
    if (failures(counter) != counter->told) {
        counter->told = failures(counter);
        return -FI_EAVAIL;
    }
    return -ETIMEDOUT;
}

static struct fi_ops_cntr counter_ops = {
    .size = sizeof(struct fi_ops_cntr),
    .read = counter_read,
    .readerr = counter_readerr,
    .add = counter_add,
    .set = counter_set,
    .wait = counter_wait,
    .adderr = counter_adderr,
    .seterr = counter_seterr,
};

int open_counter(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context) {
    (void)domain;
    if (attr && !is_wait_known("a counter", attr->wait_obj))
        return -ENOSYS;
    struct counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        return -ENOMEM;
    counter->cntr = (struct fid_cntr){.fid = {FI_CLASS_CNTR, context, &plain_ops}, .ops = &counter_ops};
    *cntr = &counter->cntr;
    return 0;
}

int bind_counter(const struct endpoint *endpoint, struct fid *fid, uint64_t flags) {
    static const uint64_t of_kind[NICETY_KINDS] = {
        [KIND_SEND] = FI_SEND,
        [KIND_RECV] = FI_RECV,
        [KIND_READ] = FI_READ,
        [KIND_WRITE] = FI_WRITE,
        [KIND_REMOTE_READ] = FI_REMOTE_READ,
        [KIND_REMOTE_WRITE] = FI_REMOTE_WRITE,
    };
    struct counter *counter = (struct counter *)fid;
    if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) && !endpoint->has_events)
        return -ENOSYS;
    uint64_t value = counter->value + counted(counter), errors = counter->errors + failures(counter);
    for (unsigned kind = 0; kind < NICETY_KINDS; kind++)
        counter->kinds |= flags & of_kind[kind] ? 1u << kind : 0;
    counter->told = failures(counter);
    counter->value = value - counted(counter);
    counter->errors = errors - counter->told;
    return 0;
}
