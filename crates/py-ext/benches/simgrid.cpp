// Ping-pong and all-to-all on SimGrid, for `simgrid.py`, which compiles this, writes the platform and reads the output:
// SimGrid's version, the simulated time, and the CPU time of this process, in seconds.
//
// `simgrid PLATFORM ping-pong|alltoall HOSTS BYTES ROUNDS OVERHEAD [--cfg=...]`; hosts are named 0, 1 and so on. The calls
// exist in versions 3 and 4 of SimGrid.

#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

// A message's payload; its size is simulated.
static int payload;

// A message in each direction, with a CPU's overhead at each end.
static void ping_pong(bool first, int rounds, unsigned long bytes, double overhead)
{
    auto* own = s4u::Mailbox::by_name(first ? "0" : "1");
    auto* other = s4u::Mailbox::by_name(first ? "1" : "0");
    for (int turn = 0; turn < 2 * rounds; turn++) {
        if ((turn % 2 == 0) == first) {
            s4u::this_actor::sleep_for(overhead);
            other->put(&payload, bytes);
        } else {
            own->get<int>();
            s4u::this_actor::sleep_for(overhead);
        }
    }
}

// A message to each other host, all in flight at once.
static void alltoall(int rank, int hosts, int rounds, unsigned long bytes, double overhead)
{
    auto mailbox = [](int from, int to) {
        return s4u::Mailbox::by_name(std::to_string(from) + " to " + std::to_string(to));
    };
    std::vector<int*> came(hosts);
    for (int round = 0; round < rounds; round++) {
        std::vector<s4u::CommPtr> receives, sends;
        for (int step = 1; step < hosts; step++) {
            int from = (rank + hosts - step) % hosts;
            receives.push_back(mailbox(from, rank)->get_async(&came[from]));
        }
        for (int step = 1; step < hosts; step++) {
            s4u::this_actor::sleep_for(overhead);
            sends.push_back(mailbox(rank, (rank + step) % hosts)->put_async(&payload, bytes));
        }
        for (auto& receive : receives) {
            receive->wait();
            s4u::this_actor::sleep_for(overhead);
        }
        for (auto& send : sends)
            send->wait();
    }
}

int main(int argc, char** argv)
{
    s4u::Engine engine(&argc, argv);
    if (argc != 7) {
        std::fprintf(stderr, "usage: %s PLATFORM ping-pong|alltoall HOSTS BYTES ROUNDS OVERHEAD\n", argv[0]);
        return 2;
    }
    const std::string pattern = argv[2];
    const int hosts = std::atoi(argv[3]), rounds = std::atoi(argv[5]);
    const unsigned long bytes = std::strtoul(argv[4], nullptr, 10);
    const double overhead = std::atof(argv[6]);
    engine.load_platform(argv[1]);
    for (int rank = 0; rank < hosts; rank++) {
        auto* host = s4u::Host::by_name(std::to_string(rank));
        s4u::Actor::create("rank", host, [=] {
            if (pattern == "ping-pong")
                ping_pong(rank == 0, rounds, bytes, overhead);
            else
                alltoall(rank, hosts, rounds, bytes, overhead);
        });
    }
    engine.run();
    timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    int major, minor, patch;
    sg_version_get(&major, &minor, &patch);
    std::printf("%d.%d.%d %.12f %.6f\n", major, minor, patch, s4u::Engine::get_clock(), used.tv_sec + 1e-9 * used.tv_nsec);
    return 0;
}
