/* A driver library with two GPUs and a MIG instance, for tests of what is read from NVML. */
#include <string.h>
#include <stdlib.h>

typedef struct { unsigned long long total, free, used; } memory;
static const char *names[] = {"NVIDIA H100 80GB HBM3", "NVIDIA L4", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"};
static const char *uuids[] = {"GPU-aaaa-1111", "GPU-bbbb-2222", "MIG-cccc-3333"};
enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

int nvmlInitWithFlags(unsigned flags) { return getenv("FAKE_NO_DRIVER") ? DRIVER_NOT_LOADED : OK; }
int nvmlShutdown(void) { return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, const char ***gpu) {
    if (getenv("FAKE_LOST")) return GPU_IS_LOST;
    *gpu = &names[index];
    return OK;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, const char ***gpu) {
    for (int i = 0; i < 3; i++)
        if (!strcmp(uuid, uuids[i])) { *gpu = &names[i]; return OK; }
    return NOT_FOUND;
}
int nvmlDeviceGetName(const char **gpu, char *name, unsigned length) {
    strncpy(name, *gpu, length);
    return OK;
}
int nvmlDeviceGetUUID(const char **gpu, char *uuid, unsigned length) {
    strncpy(uuid, uuids[gpu - names], length);
    return OK;
}
int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    strncpy(version, "580.65.06", length);
    return OK;
}
int nvmlDeviceGetMemoryInfo(const char **gpu, memory *found) {
    if (getenv("FAKE_NO_MEMORY")) return NOT_SUPPORTED;
    found->total = 80ull << 30; found->used = 10ull << 30; found->free = 70ull << 30;
    return OK;
}
