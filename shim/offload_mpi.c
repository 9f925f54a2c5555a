/* The MPI of the process: addresses of its functions, and tests of its handles. */

#define _GNU_SOURCE

#include "offload_mpi.h"

#include "collectives.h"
#include "offload_base.h"

#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>

struct mpi_functions mpi;

static const struct {
    const char *name;
    size_t at;
} functions[] = {
#define FUNCTION(name) {"PMPI_" #name, offsetof(struct mpi_functions, name)}
    FUNCTION(Bcast),       FUNCTION(Bcast_c),   FUNCTION(Barrier),      FUNCTION(Allreduce), FUNCTION(Allreduce_c),
    FUNCTION(Comm_rank),   FUNCTION(Comm_size), FUNCTION(Comm_compare), FUNCTION(Type_size), FUNCTION(Type_size_c),
    FUNCTION(Pack),        FUNCTION(Pack_c),    FUNCTION(Unpack),       FUNCTION(Unpack_c),  FUNCTION(Iprobe),
    FUNCTION(Abort),       FUNCTION(Abi_get_version),
#undef FUNCTION
};

/* A handle in each MPI. It is a number in MPICH and in MPI's standard binary interface (MPI 5.0, appendix A), and an
 * object in Open MPI. */
enum { MPICH, STANDARD, OPEN_MPI };
struct name {
    uint32_t mpich, standard;
    const char *open_mpi;
    handle value;
};

enum { WORLD, NO_COMMUNICATOR, NO_TYPE };
static struct name objects[] = {
    [WORLD] = {0x44000000, 0x101, "ompi_mpi_comm_world", 0},
    [NO_COMMUNICATOR] = {0x04000000, 0x100, "ompi_mpi_comm_null", 0},
    [NO_TYPE] = {0x0c000000, 0x200, "ompi_mpi_datatype_null", 0},
};

static struct name operators[] = {
    [COLLECTIVE_SUM] = {0x58000003, 0x21, "ompi_mpi_op_sum", 0},
    [COLLECTIVE_PROD] = {0x58000004, 0x24, "ompi_mpi_op_prod", 0},
    [COLLECTIVE_MIN] = {0x58000002, 0x22, "ompi_mpi_op_min", 0},
    [COLLECTIVE_MAX] = {0x58000001, 0x23, "ompi_mpi_op_max", 0},
    [COLLECTIVE_BAND] = {0x58000006, 0x28, "ompi_mpi_op_band", 0},
    [COLLECTIVE_BOR] = {0x58000008, 0x29, "ompi_mpi_op_bor", 0},
    [COLLECTIVE_BXOR] = {0x5800000a, 0x2a, "ompi_mpi_op_bxor", 0},
    [COLLECTIVE_LAND] = {0x58000005, 0x30, "ompi_mpi_op_land", 0},
    [COLLECTIVE_LOR] = {0x58000007, 0x31, "ompi_mpi_op_lor", 0},
    [COLLECTIVE_LXOR] = {0x58000009, 0x32, "ompi_mpi_op_lxor", 0},
};

/* Types without gaps. MPI reduces bytes only with bitwise operators, and does not reduce characters. */
enum { CHARACTER, BYTES, SIGNED, UNSIGNED, REAL };
static struct {
    struct name name;
    int kind;
} types[] = {
    {{0x4c000101, 0x243, "ompi_mpi_char", 0}, CHARACTER},
    {{0x4c00011a, 0x21e, "ompi_mpi_character", 0}, CHARACTER},
    {{0x4c00010d, 0x247, "ompi_mpi_byte", 0}, BYTES},
    {{0x4c000118, 0x244, "ompi_mpi_signed_char", 0}, SIGNED},
    {{0x4c000102, 0x245, "ompi_mpi_unsigned_char", 0}, UNSIGNED},
    {{0x4c000203, 0x208, "ompi_mpi_short", 0}, SIGNED},
    {{0x4c000204, 0x20c, "ompi_mpi_unsigned_short", 0}, UNSIGNED},
    {{0x4c000405, 0x209, "ompi_mpi_int", 0}, SIGNED},
    {{0x4c000406, 0x20d, "ompi_mpi_unsigned", 0}, UNSIGNED},
    {{0x4c000807, 0x20a, "ompi_mpi_long", 0}, SIGNED},
    {{0x4c000808, 0x20e, "ompi_mpi_unsigned_long", 0}, UNSIGNED},
    {{0x4c000809, 0x20b, "ompi_mpi_long_long_int", 0}, SIGNED},
    {{0x4c000819, 0x20f, "ompi_mpi_unsigned_long_long", 0}, UNSIGNED},
    {{0x4c00040a, 0x210, "ompi_mpi_float", 0}, REAL},
    {{0x4c00080b, 0x214, "ompi_mpi_double", 0}, REAL},
    {{0x4c000137, 0x240, "ompi_mpi_int8_t", 0}, SIGNED},
    {{0x4c00013b, 0x241, "ompi_mpi_uint8_t", 0}, UNSIGNED},
    {{0x4c000238, 0x248, "ompi_mpi_int16_t", 0}, SIGNED},
    {{0x4c00023c, 0x249, "ompi_mpi_uint16_t", 0}, UNSIGNED},
    {{0x4c000439, 0x250, "ompi_mpi_int32_t", 0}, SIGNED},
    {{0x4c00043d, 0x251, "ompi_mpi_uint32_t", 0}, UNSIGNED},
    {{0x4c00083a, 0x258, "ompi_mpi_int64_t", 0}, SIGNED},
    {{0x4c00083e, 0x259, "ompi_mpi_uint64_t", 0}, UNSIGNED},
    {{0x4c000843, 0x201, "ompi_mpi_aint", 0}, SIGNED},
    {{0x4c000844, 0x203, "ompi_mpi_offset", 0}, SIGNED},
    {{0x4c000845, 0x202, "ompi_mpi_count", 0}, SIGNED},
    {{0x4c00041b, 0x219, "ompi_mpi_integer", 0}, SIGNED},
    {{0x4c00041c, 0x21a, "ompi_mpi_real", 0}, REAL},
    {{0x4c00081f, 0x21c, "ompi_mpi_dblprec", 0}, REAL},
};
#define COUNT(list) (sizeof(list) / sizeof *(list))
enum { INT32 = 7, MIN_OF_ALL = COLLECTIVE_MIN };

static int flavour;

/* Returns an object of Open MPI. This is the globally visible object, possibly a copy in the program's file, or
 * otherwise the library's object. */
static handle object(const char *name) {
    void *seen = dlsym(RTLD_DEFAULT, name);
    return (handle)(seen ? seen : nicety_mpi_function(name, NULL));
}

static void name(struct name *own) {
    own->value = flavour == MPICH ? own->mpich : flavour == STANDARD ? own->standard : object(own->open_mpi);
}

/* A handle of MPICH is the lower half of a register. */
static int is(handle given, const struct name *own) {
    return own->value && (flavour == MPICH ? (uint32_t)given == own->value : given == own->value);
}

int mpi_find(void) {
    for (unsigned i = 0; i < COUNT(functions); i++)
        *(void **)((char *)&mpi + functions[i].at) = nicety_mpi_function(functions[i].name, NULL);
    int major = 0, minor = 0;
    if (!mpi.Bcast || !mpi.Barrier || !mpi.Allreduce || !mpi.Comm_rank || !mpi.Comm_size || !mpi.Comm_compare ||
        !mpi.Type_size || !mpi.Pack || !mpi.Unpack || !mpi.Iprobe || !mpi.Abort)
        return 0;
    if (object(objects[WORLD].open_mpi))
        flavour = OPEN_MPI;
    else if (mpi.Abi_get_version && !mpi.Abi_get_version(&major, &minor) && major > 0)
        flavour = STANDARD;
    for (unsigned i = 0; i < COUNT(objects); i++)
        name(&objects[i]);
    for (unsigned i = 0; i < COUNT(operators); i++)
        name(&operators[i]);
    for (unsigned i = 0; i < COUNT(types); i++)
        name(&types[i].name);
    return 1;
}

handle mpi_world(void) {
    return objects[WORLD].value;
}

int mpi_is_null_communicator(handle comm) {
    return is(comm, &objects[NO_COMMUNICATOR]) || !comm;
}

int mpi_is_null_type(handle type) {
    return is(type, &objects[NO_TYPE]) || !type;
}

int mpi_is_in_place(const void *buffer) {
    return (intptr_t)buffer == (flavour == MPICH ? -1 : 1);
}

int mpi_is_of_all(handle comm) {
    int result = -1;
    if (is(comm, &objects[WORLD]))
        return 1;
    if (mpi.Comm_compare(comm, mpi_world(), &result))
        return 0;
    /* These are the numbers of MPI_IDENT and MPI_CONGRUENT. */
    return flavour == STANDARD ? result == 201 || result == 202 : result == 0 || result == 1;
}

int mpi_operator(handle op) {
    for (unsigned i = 0; i < COUNT(operators); i++)
        if (is(op, &operators[i]))
            return (int)i;
    return -1;
}

static int place_of(handle type) {
    for (unsigned i = 0; i < COUNT(types); i++)
        if (is(type, &types[i].name))
            return (int)i;
    return -1;
}

int mpi_is_packed(handle type) {
    return place_of(type) >= 0;
}

int mpi_type(handle type) {
    int place = place_of(type);
    if (place < 0)
        return -1;
    int64_t bytes = mpi_type_bytes(type);
    switch (types[place].kind) {
    case REAL:
        return bytes == 4 ? COLLECTIVE_FLOAT : bytes == 8 ? COLLECTIVE_DOUBLE : -1;
    case CHARACTER:
        return -1;
    default:
        for (int log = 0; log < 4; log++)
            if (bytes == 1 << log)
                return COLLECTIVE_INT8 + 2 * log + (types[place].kind != SIGNED);
        return -1;
    }
}

int mpi_reduces(handle op, handle type) {
    int what = mpi_operator(op), place = place_of(type);
    if (what < 0 || place < 0)
        return 0;
    int is_bitwise = what >= COLLECTIVE_BAND && what <= COLLECTIVE_BXOR;
    switch (types[place].kind) {
    case BYTES:
        return is_bitwise;
    case REAL:
        return what <= COLLECTIVE_MAX;
    default:
        return 1;
    }
}

int64_t mpi_type_bytes(handle type) {
    int64_t long_size = -1;
    int size = -1;
    if (mpi.Type_size_c)
        return mpi.Type_size_c(type, &long_size) ? -1 : long_size;
    return mpi.Type_size(type, &size) ? -1 : size;
}

int mpi_pack(const void *from, int64_t count, handle type, void *bytes, int64_t length, handle comm) {
    int64_t long_at = 0;
    int at = 0;
    if (mpi.Pack_c)
        return mpi.Pack_c(from, count, type, bytes, length, &long_at, comm);
    return mpi.Pack(from, (int)count, type, bytes, (int)length, &at, comm);
}

int mpi_unpack(const void *bytes, int64_t length, void *to, int64_t count, handle type, handle comm) {
    int64_t long_at = 0;
    int at = 0;
    if (mpi.Unpack_c)
        return mpi.Unpack_c(bytes, length, &long_at, to, count, type, comm);
    return mpi.Unpack(bytes, (int)length, &at, to, (int)count, type, comm);
}

int mpi_least(int value) {
    int least = 0;
    mpi.Allreduce(&value, &least, 1, types[INT32].name.value, operators[MIN_OF_ALL].value, mpi_world());
    return least;
}

void mpi_progress(void) {
    /* These are the numbers of MPI_ANY_SOURCE and MPI_ANY_TAG. */
    static const int any[][2] = {[MPICH] = {-2, -1}, [STANDARD] = {-1, -2}, [OPEN_MPI] = {-1, -1}};
    int found = 0;
    char status[128];
    /* One look takes a message from the queue, and in the next look the one-sided operations of Open MPI handle the
     * message. */
    for (int looks = 0; looks < 4; looks++)
        mpi.Iprobe(any[flavour][0], any[flavour][1], mpi_world(), &found, status);
}
