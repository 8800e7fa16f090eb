/* CUDA's driver library of a machine whose driver is of the version FAKE_CUDA, for tests. */
#include <stdlib.h>

int cuDriverGetVersion(int *version) {
    *version = atoi(getenv("FAKE_CUDA"));
    return 0;
}
