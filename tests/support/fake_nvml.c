/* A driver library with two GPUs and a MIG instance, for tests of what is read from NVML. */
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct { unsigned long long total, free, used; } memory;
static const char *names[] = {"NVIDIA H100 80GB HBM3", "NVIDIA L4", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"};
static const char *uuids[] = {"GPU-aaaa-1111", "GPU-bbbb-2222", "MIG-cccc-3333"};
enum {
    OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9,
    FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15
};

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
    strncpy(name, getenv("FAKE_ALIKE") && gpu == &names[1] ? names[0] : *gpu, length);
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
    unsigned long long gib = gpu == &names[2] ? 10 : 80; /* of a MIG instance, not of its GPU */
    found->total = gib << 30; found->used = (gib / 8) << 30; found->free = found->total - found->used;
    return OK;
}

/* With FAKE_MIG the first GPU is divided, into the instances that it counts: one, in the second place. */
int nvmlDeviceGetMigMode(const char **gpu, unsigned *current, unsigned *pending) {
    *current = *pending = getenv("FAKE_MIG") && gpu == &names[0];
    return gpu == &names[1] ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetMaxMigDeviceCount(const char **gpu, unsigned *count) { *count = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(const char **gpu, unsigned index, const char ***instance) {
    if (index != 1 || !atoi(getenv("FAKE_MIG"))) return NOT_FOUND;
    *instance = &names[2];
    return OK;
}

/* A MIG instance has a memory and processes of its own, but no clocks and no energy. */
static int whole(const char **gpu) { return gpu != &names[2]; }
static int number(const char *variable, int otherwise) {
    return getenv(variable) ? atoi(getenv(variable)) : otherwise;
}

int nvmlDeviceGetTotalEnergyConsumption(const char **gpu, unsigned long long *millijoules) {
    static unsigned long long counted = 5000;
    if (getenv("FAKE_NO_ENERGY") || !whole(gpu)) return NOT_SUPPORTED;
    *millijoules = counted;
    counted += 1500; /* of each call, so that a test knows it */
    return OK;
}
int nvmlDeviceGetComputeMode(const char **gpu, unsigned *mode) {
    *mode = number("FAKE_MODE", 0);
    return whole(gpu) ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetClockInfo(const char **gpu, unsigned type, unsigned *megahertz) {
    *megahertz = type == 1 ? 1980 : 2619;
    return whole(gpu) ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetTemperature(const char **gpu, unsigned sensor, unsigned *celsius) {
    *celsius = 61;
    return whole(gpu) ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetPowerUsage(const char **gpu, unsigned *milliwatts) {
    *milliwatts = 412345;
    return whole(gpu) ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(const char **gpu, unsigned long long *bits) {
    *bits = number("FAKE_LIMITS", 1);
    return whole(gpu) ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetCurrentClocksEventReasons(const char **gpu, unsigned long long *bits) {
    if (getenv("FAKE_OLD_DRIVER")) return FUNCTION_NOT_FOUND;
    return nvmlDeviceGetCurrentClocksThrottleReasons(gpu, bits);
}

typedef struct { unsigned pid; unsigned long long used; unsigned gpu, compute; } process;
/* The caller, its parent, and a process of another program, as far as the test asks for them. */
int nvmlDeviceGetComputeRunningProcesses_v3(const char **gpu, unsigned *count, process *found) {
    process all[3] = {{getpid(), 3ull << 30}, {getppid(), 1ull << 30}, {1 << 23, 1ull << 30}};
    unsigned first = getenv("FAKE_CONTAINER") ? 2 : 0, last = getenv("FAKE_SHARED") ? 3 : 2;
    unsigned size = *count;
    *count = last - first;
    if (size < *count) return INSUFFICIENT_SIZE;
    if (getenv("FAKE_HIDDEN_MEMORY")) all[0].used = ~0ull;
    memcpy(found, all + first, *count * sizeof(process));
    return OK;
}

typedef struct { unsigned pid; unsigned long long at_us; unsigned sm, memory, encoder, decoder; } used;
/* Of the caller and the other program, which runs kernels for FAKE_COMPUTING percent of the time. */
int nvmlDeviceGetProcessUtilization(const char **gpu, used *found, unsigned *count, unsigned long long since) {
    used all[2] = {{getpid(), since + 1, 90}, {1 << 23, since + 1, number("FAKE_COMPUTING", 0)}};
    if (!whole(gpu)) return NOT_SUPPORTED;
    if (!getenv("FAKE_COMPUTING")) return NOT_FOUND;
    if (*count < 2) { *count = 2; return INSUFFICIENT_SIZE; }
    memcpy(found, all, sizeof(all));
    return OK;
}
