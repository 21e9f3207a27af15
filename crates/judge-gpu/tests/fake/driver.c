/* A driver that runs nothing: what cubecl and judge-gpu ask of NVIDIA's driver, on the host's memory, as one GPU would answer.
 *
 * Kernels are compiled by the real NVRTC and never run. Copies are real, so what a product by the library beside this one (cublaslt.c)
 * reads is what a test has put there. Every call that orders work is written to the file FAKE_CUDA_CALLS, a line each. Where a file of
 * that name with .most behind it has a number, an allocation of more bytes finds no memory.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

typedef int Result;
typedef unsigned long long Address;

static void *fresh(void) {
    static long next = 0x1000;
    return (void *)__sync_add_and_fetch(&next, 16);
}

void fake_record(const char *line) {
    const char *path = getenv("FAKE_CUDA_CALLS");
    if (!path) return;
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0) abort();
    char text[256];
    int length = snprintf(text, sizeof text, "%s\n", line);
    if (write(file, text, length) != length) abort();
    close(file);
}

#define SUCCEEDS(name, ...) Result name(__VA_ARGS__) { return 0; }

SUCCEEDS(cuInit, unsigned flags)
Result cuDriverGetVersion(int *version) { *version = 13000; return 0; }
Result cuDeviceGetCount(int *count) { *count = 1; return 0; }
Result cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal == 0 ? 0 : 101; }
Result cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "a driver that runs nothing"); return 0; }
Result cuDeviceGetPCIBusId(char *id, int size, int device) { snprintf(id, size, "0000:01:00.0"); return 0; }
Result cuDeviceGetUuid(void *uuid, int device) { memset(uuid, 7, 16); return 0; }
Result cuDeviceGetUuid_v2(void *uuid, int device) { memset(uuid, 7, 16); return 0; }
Result cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)80 << 30; return 0; }
Result cuMemGetInfo_v2(size_t *left, size_t *all) { *left = (size_t)78 << 30; *all = (size_t)80 << 30; return 0; }

/* An H100's, by the numbers of CUdevice_attribute in NVIDIA's header cuda.h; 1 for all others. */
Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 1: case 2: case 3: *value = 1024; break;       /* threads of a block; its width and height */
    case 4: *value = 64; break;                         /* its depth */
    case 5: *value = 2147483647; break;                 /* the grid's width */
    case 6: case 7: *value = 65535; break;              /* its height and depth */
    case 8: *value = 49152; break;                      /* shared memory of a block */
    case 10: *value = 32; break;                        /* threads of a warp */
    case 12: case 82: *value = 65536; break;            /* registers of a block and of a multiprocessor */
    case 16: *value = 132; break;                       /* multiprocessors */
    case 38: *value = 50 << 20; break;                  /* second-level cache */
    case 39: *value = 2048; break;                      /* threads of a multiprocessor */
    case 75: *value = 9; break;                         /* compute capability, major */
    case 76: *value = 0; break;                         /* minor */
    case 81: *value = 233472; break;                    /* shared memory of a multiprocessor */
    case 97: *value = 232448; break;                    /* shared memory of a block that asks for it */
    case 106: *value = 32; break;                       /* blocks of a multiprocessor */
    case 111: *value = 1024; break;                     /* reserved shared memory */
    default: *value = 1;
    }
    return 0;
}

static __thread void *current;
Result cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)0x800; return 0; }
SUCCEEDS(cuDevicePrimaryCtxRelease_v2, int device)
Result cuCtxSetCurrent(void *context) { current = context; return 0; }
Result cuCtxGetCurrent(void **context) { *context = current; return 0; }
Result cuCtxPushCurrent_v2(void *context) { current = context; return 0; }
Result cuCtxPopCurrent_v2(void **context) { *context = current; return 0; }
Result cuCtxGetDevice(int *device) { *device = 0; return 0; }
SUCCEEDS(cuCtxSynchronize, void)
Result cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return 0; }
Result cuCtxRecordEvent(void *context, void *event) { fake_record("record of the context"); return 0; }
Result cuCtxWaitEvent(void *context, void *event) { fake_record("the context waits"); return 0; }

Result cuStreamCreate(void **stream, unsigned flags) { *stream = fresh(); return 0; }
Result cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { *stream = fresh(); return 0; }
SUCCEEDS(cuStreamDestroy_v2, void *stream)
SUCCEEDS(cuStreamSynchronize, void *stream)
SUCCEEDS(cuStreamQuery, void *stream)
Result cuStreamWaitEvent(void *stream, void *event, unsigned flags) { fake_record("a stream waits"); return 0; }
Result cuEventCreate(void **event, unsigned flags) { *event = fresh(); return 0; }
SUCCEEDS(cuEventDestroy_v2, void *event)
Result cuEventRecord(void *event, void *stream) { fake_record("record of a stream"); return 0; }
SUCCEEDS(cuEventQuery, void *event)
SUCCEEDS(cuEventSynchronize, void *event)
Result cuEventElapsedTime(float *time, void *from, void *to) { *time = 0.01f; return 0; }
Result cuEventElapsedTime_v2(float *time, void *from, void *to) { *time = 0.01f; return 0; }

static int is_full(size_t bytes) {
    char path[4096];
    const char *calls = getenv("FAKE_CUDA_CALLS");
    if (!calls) return 0;
    snprintf(path, sizeof path, "%s.most", calls);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    size_t most = 0;
    int found = fscanf(file, "%zu", &most);
    fclose(file);
    return found == 1 && bytes > most;
}
/* CUDA_ERROR_OUT_OF_MEMORY is 2. */
Result cuMemAlloc_v2(Address *place, size_t bytes) {
    if (is_full(bytes)) return 2;
    *place = (Address)(uintptr_t)aligned_alloc(512, (bytes + 511) / 512 * 512);
    return *place ? 0 : 2;
}
Result cuMemAllocAsync(Address *place, size_t bytes, void *stream) { return cuMemAlloc_v2(place, bytes); }
Result cuMemFree_v2(Address place) { free((void *)(uintptr_t)place); return 0; }
Result cuMemFreeAsync(Address place, void *stream) { return cuMemFree_v2(place); }
Result cuMemAllocHost_v2(void **place, size_t bytes) { *place = aligned_alloc(512, (bytes + 511) / 512 * 512); return *place ? 0 : 2; }
Result cuMemHostAlloc(void **place, size_t bytes, unsigned flags) { return cuMemAllocHost_v2(place, bytes); }
Result cuMemFreeHost(void *place) { free(place); return 0; }

static Result copy(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); return 0; }
#define AT(address) ((void *)(uintptr_t)(address))
Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *stream) { return copy(AT(to), from, bytes); }
Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *stream) { return copy(to, AT(from), bytes); }
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *stream) { return copy(AT(to), AT(from), bytes); }
Result cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) { return copy(AT(to), from, bytes); }
Result cuMemcpyDtoH_v2(void *to, Address from, size_t bytes) { return copy(to, AT(from), bytes); }
Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void *stream) { memset(AT(to), value, bytes); return 0; }
Result cuMemsetD32Async(Address to, unsigned value, size_t count, void *stream) {
    for (size_t i = 0; i < count; i++) ((unsigned *)AT(to))[i] = value;
    return 0;
}

/* CUDA_MEMCPY2D of cuda.h. */
typedef struct {
    size_t from_x, from_y; int from_kind; const void *from_host; Address from_device; void *from_array; size_t from_pitch;
    size_t to_x, to_y; int to_kind; void *to_host; Address to_device; void *to_array; size_t to_pitch;
    size_t bytes, rows;
} Plane;
Result cuMemcpy2DAsync_v2(const Plane *plane, void *stream) {
    const char *from = plane->from_kind == 1 ? plane->from_host : AT(plane->from_device);
    char *to = plane->to_kind == 1 ? plane->to_host : AT(plane->to_device);
    for (size_t i = 0; i < plane->rows; i++) memcpy(to + i * plane->to_pitch, from + i * plane->from_pitch, plane->bytes);
    return 0;
}

Result cuModuleLoadData(void **module, const void *image) { *module = fresh(); return 0; }
SUCCEEDS(cuModuleUnload, void *module)
Result cuModuleGetFunction(void **function, void *module, const char *name) { *function = fresh(); return 0; }
SUCCEEDS(cuFuncSetAttribute, void *function, int attribute, int value)
Result cuFuncGetAttribute(int *value, int attribute, void *function) { *value = 1024; return 0; }
Result cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                      void *stream, void **arguments, void **extra) {
    char line[128];
    snprintf(line, sizeof line, "kernel of %u x %u x %u blocks of %u x %u x %u", gx, gy, gz, bx, by, bz);
    fake_record(line);
    return !gx || !gy || !gz || bx * by * bz > 1024 || shared > 232448;
}
Result cuLaunchKernelEx(void *config, void *function, void **arguments, void **extra) { fake_record("kernel"); return 0; }
SUCCEEDS(cuTensorMapEncodeTiled, void *map, int type, unsigned rank, void *a, void *b, void *c, void *d, void *e, int f, int g, int h, int i)
SUCCEEDS(cuTensorMapEncodeIm2col, void *map)
SUCCEEDS(cuGraphDestroy, void *graph)
SUCCEEDS(cuGraphExecDestroy, void *graph)
Result cuGetErrorName(int error, const char **name) { *name = "FAKE"; return 0; }
Result cuGetErrorString(int error, const char **text) { *text = "an error of the driver that runs nothing"; return 0; }
Result cuDeviceCanAccessPeer(int *can, int from, int to) { *can = 0; return 0; }
Result cuDeviceGetDefaultMemPool(void **pool, int device) { *pool = fresh(); return 0; }
SUCCEEDS(cuMemPoolSetAttribute, void *pool, int attribute, void *value)
SUCCEEDS(cuMemPoolGetAttribute, void *pool, int attribute, void *value)
SUCCEEDS(cuMemPoolTrimTo, void *pool, size_t bytes)
