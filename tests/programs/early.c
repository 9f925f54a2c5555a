/* A host's program with Portals 4. Rank 1 does the argument's action before it opens the network, and rank 0 waits for
 * it then. */
#include <portals4.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct;
    ptl_ct_event_t never;
    const char *does = count > 1 ? words[1] : "";
    int goes_on = !strcmp(does, "go");
    if (!strcmp(getenv("NICETY_RANK"), "1") && !goes_on) {
        if (!strcmp(does, "crash"))
            abort();
        _exit(atoi(does));
    }
    if (PtlInit() || PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni) || PtlCTAlloc(ni, &ct))
        return 3;
    if (!goes_on)
        PtlCTWait(ct, 1, &never);
    PtlFini();
    return 0;
}
