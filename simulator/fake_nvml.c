/* A libnvidia-ml.so.1 that says what a script tells it to: cards, their numbers, and their faults.
 *
 * The script is the file that FAKE_NVML names; it is read again whenever it changed. One `key=value` per line:
 *
 *     count=2                    gpu0.uuid=GPU-a            gpu0.temperature=41
 *     init=!18                   gpu1.all=!15               gpu0.mig0.memory_total=10
 *     gpu0.power=~3600           events=GPU-a:79,GPU-a:79   (each event is told once)
 *
 * A value `!N` makes the call answer error N; `~S` makes it hang for S seconds; a missing key is "not supported".
 * `\xHH` stands for a byte, so that a value can hold any. Compiled with -DOLD it lacks what drivers before 510 lacked.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int ret;
typedef struct { int gpu, mig; } device;
typedef unsigned long long u64;

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMED_OUT = 10, MAX_GPUS = 256, MAX_MIG = 8 };

static device cards[MAX_GPUS], parts[MAX_GPUS][MAX_MIG];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *script;
static struct timespec read_at;
static off_t read_size = -1;

static void load(void) {
    const char *path = getenv("FAKE_NVML");
    struct stat now;
    if (!path || stat(path, &now)) return;
    if (now.st_size == read_size && now.st_mtim.tv_sec == read_at.tv_sec && now.st_mtim.tv_nsec == read_at.tv_nsec) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    char *text = malloc(now.st_size + 2);
    size_t size = fread(text + 1, 1, now.st_size, file);
    fclose(file);
    text[0] = '\n';
    text[size + 1] = 0;
    free(script);
    script = text;
    read_at = now.st_mtim;
    read_size = now.st_size;
}

static void unescape(char *value) {
    char *to = value;
    for (const char *from = value; *from; to++) {
        unsigned byte;
        if (from[0] == '\\' && from[1] == 'x' && sscanf(from + 2, "%2x", &byte) == 1) {
            *to = (char)byte;
            from += 4;
        } else *to = *from++;
    }
    *to = 0;
}

/* Copies the value of a key; its faults happen here. */
static ret find(const char *key, char *value, size_t room) {
    char line[128];
    value[0] = 0;
    pthread_mutex_lock(&lock);
    load();
    snprintf(line, sizeof line, "\n%s=", key);
    const char *at = script ? strstr(script, line) : NULL;
    if (at) {
        at += strlen(line);
        size_t size = strcspn(at, "\n");
        if (size >= room) size = room - 1;
        memcpy(value, at, size);
        value[size] = 0;
    }
    pthread_mutex_unlock(&lock);
    if (!at) return UNSUPPORTED;
    if (value[0] == '!') return atoi(value + 1);
    if (value[0] == '~') sleep(atoi(value + 1));
    unescape(value);
    return OK;
}

static void place(const device *of, const char *field, char *key, size_t room) {
    if (of->mig < 0) snprintf(key, room, "gpu%d.%s", of->gpu, field);
    else snprintf(key, room, "gpu%d.mig%d.%s", of->gpu, of->mig, field);
}

static ret text(const device *of, const char *field, char *value, unsigned room) {
    char key[96], all[32];
    snprintf(key, sizeof key, "gpu%d.all", of->gpu);
    ret fault = find(key, all, sizeof all);
    if (fault != UNSUPPORTED && fault != OK) return fault;
    place(of, field, key, sizeof key);
    return find(key, value, room);
}

static ret number(const device *of, const char *field, u64 *value) {
    char word[64];
    ret answer = text(of, field, word, sizeof word);
    if (answer == OK) *value = strtoull(word, NULL, 10);
    return answer;
}

static ret small(const device *of, const char *field, unsigned *value) {
    u64 wide = 0;
    ret answer = number(of, field, &wide);
    if (answer == OK) *value = (unsigned)wide;
    return answer;
}

ret nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    for (int gpu = 0; gpu < MAX_GPUS; gpu++) {
        cards[gpu] = (device){gpu, -1};
        for (int mig = 0; mig < MAX_MIG; mig++) parts[gpu][mig] = (device){gpu, mig};
    }
    char word[16];
    ret answer = find("init", word, sizeof word);
    return answer == UNSUPPORTED ? OK : answer;
}
ret nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(ret code) {
    static char words[32];
    snprintf(words, sizeof words, "Fake error %d", code);
    return words;
}
ret nvmlSystemGetDriverVersion(char *value, unsigned room) { return find("driver", value, room); }
ret nvmlDeviceGetCount_v2(unsigned *count) {
    char word[16];
    ret answer = find("count", word, sizeof word);
    if (answer == OK) *count = atoi(word);
    return answer;
}
ret nvmlDeviceGetHandleByIndex_v2(unsigned index, device **handle) {
    char key[32], word[16];
    if (index >= MAX_GPUS) return INVALID;
    snprintf(key, sizeof key, "gpu%u.handle", index);
    ret fault = find(key, word, sizeof word);
    if (fault != OK && fault != UNSUPPORTED) return fault;
    *handle = &cards[index];
    return OK;
}
ret nvmlDeviceGetUUID(device *of, char *value, unsigned room) { return text(of, "uuid", value, room); }
ret nvmlDeviceGetName(device *of, char *value, unsigned room) { return text(of, "name", value, room); }

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; } pci;
ret nvmlDeviceGetPciInfo_v3(device *of, pci *info) {
    memset(info, 0, sizeof *info);
    return text(of, "pci", info->address, sizeof info->address);
}

ret nvmlDeviceGetUtilizationRates(device *of, unsigned rates[2]) {
    ret answer = small(of, "utilization", &rates[0]);
    return answer == OK ? small(of, "memory_utilization", &rates[1]) : answer;
}

typedef struct { unsigned version; u64 total, reserved, free, used; } memory;
static ret memory_of(device *of, memory *info) {
    ret answer = number(of, "memory_total", &info->total);
    if (answer == OK) answer = number(of, "memory_used", &info->used);
    if (answer == OK) answer = number(of, "memory_free", &info->free);
    info->reserved = info->total - info->used - info->free;
    return answer;
}
#ifdef OLD
ret nvmlDeviceGetMemoryInfo(device *of, u64 info[3]) {
    memory all;
    ret answer = memory_of(of, &all);
    info[0] = all.total, info[1] = all.free, info[2] = all.used + all.reserved;
    return answer;
}
#else
ret nvmlDeviceGetMemoryInfo_v2(device *of, memory *info) { return memory_of(of, info); }
#endif
ret nvmlDeviceGetTemperature(device *of, int sensor, unsigned *value) { (void)sensor; return small(of, "temperature", value); }
ret nvmlDeviceGetPowerUsage(device *of, unsigned *value) { return small(of, "power", value); }
ret nvmlDeviceGetEnforcedPowerLimit(device *of, unsigned *value) { return small(of, "power_limit", value); }
ret nvmlDeviceGetTotalEnergyConsumption(device *of, u64 *value) { return number(of, "energy", value); }
ret nvmlDeviceGetClockInfo(device *of, int kind, unsigned *value) { (void)kind; return small(of, "sm_clock", value); }
#ifdef OLD
#define nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons
#define nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2
#endif
ret nvmlDeviceGetCurrentClocksEventReasons(device *of, u64 *value) { return number(of, "throttle", value); }
ret nvmlDeviceGetTotalEccErrors(device *of, int kind, int counter, u64 *value) {
    (void)counter;
    return number(of, kind ? "ecc_uncorrected" : "ecc_corrected", value);
}
ret nvmlDeviceGetRemappedRows(device *of, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    ret answer = small(of, "rows_corrected", corrected);
    if (answer == OK) answer = small(of, "rows_uncorrected", uncorrected);
    if (answer == OK) answer = small(of, "rows_pending", pending);
    return answer == OK ? small(of, "rows_failed", failed) : answer;
}
ret nvmlDeviceGetPcieReplayCounter(device *of, unsigned *value) { return small(of, "pcie_replays", value); }

typedef struct { unsigned field, scope; long long at, took; int kind; ret answer; u64 value; } field;
ret nvmlDeviceGetFieldValues(device *of, int count, field *fields) {
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "field%u", fields[i].field);
        fields[i].answer = number(of, name, &fields[i].value);
    }
    return OK;
}

ret nvmlDeviceGetMigMode(device *of, unsigned *current, unsigned *pending) {
    *pending = 0;
    return small(of, "mig_mode", current);
}
ret nvmlDeviceGetMaxMigDeviceCount(device *of, unsigned *count) { (void)of; *count = MAX_MIG; return OK; }
ret nvmlDeviceGetMigDeviceHandleByIndex(device *of, unsigned index, device **handle) {
    u64 instance;
    if (index >= MAX_MIG || number(&parts[of->gpu][index], "instance", &instance) != OK) return NOT_FOUND;
    *handle = &parts[of->gpu][index];
    return OK;
}
ret nvmlDeviceGetGpuInstanceId(device *of, unsigned *value) { return small(of, "instance", value); }

/* processes=PID:BYTES,PID:BYTES */
typedef struct { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; } process;
ret nvmlDeviceGetComputeRunningProcesses_v3(device *of, unsigned *count, process *found) {
    char list[4096];
    unsigned number_of = 0, room = *count;
    ret fault = text(of, "processes", list, sizeof list);
    if (fault != OK && fault != UNSUPPORTED) return fault;
    if (fault == UNSUPPORTED) list[0] = 0;
    for (char *at = list; *at; number_of++) {
        unsigned pid = strtoul(at, &at, 10);
        u64 bytes = *at == ':' ? strtoull(at + 1, &at, 10) : 0;
        if (found && number_of < room) found[number_of] = (process){pid, bytes, ~0u, ~0u};
        if (*at) at++;
    }
    *count = number_of;
    return number_of > room ? TOO_SMALL : OK;
}

static unsigned told;
ret nvmlEventSetCreate(void **set) { *set = &told; return OK; }
ret nvmlEventSetFree(void *set) { (void)set; return OK; }
ret nvmlDeviceRegisterEvents(device *of, u64 kinds, void *set) {
    char word[16];
    (void)kinds;
    (void)set;
    ret answer = text(of, "register", word, sizeof word);
    return answer == UNSUPPORTED ? OK : answer;
}

typedef struct { device *of; u64 kind, data; unsigned gpu_instance, compute_instance; } event;
static int next_event(event *found) {
    char list[4096], uuid[96];
    if (find("events", list, sizeof list) != OK) return 0;
    char *rest = list, *one = NULL;
    for (unsigned i = 0; i <= told; i++)
        if (!(one = strsep(&rest, ",")) || !*one) return 0;
    char *colon = strchr(one, ':');
    if (!colon) return 0;
    *colon = 0;
    for (int gpu = 0; gpu < MAX_GPUS; gpu++) {
        char key[32];
        snprintf(key, sizeof key, "gpu%d.uuid", gpu);
        if (find(key, uuid, sizeof uuid) == OK && !strcmp(uuid, one)) {
            *found = (event){&cards[gpu], 8, strtoull(colon + 1, NULL, 10), ~0u, ~0u};
            told++;
            return 1;
        }
    }
    return 0;
}
ret nvmlEventSetWait_v2(void *set, event *found, unsigned milliseconds) {
    char word[16];
    (void)set;
    ret fault = find("wait", word, sizeof word);
    if (fault != UNSUPPORTED && fault != OK) return fault;
    for (unsigned waited = 0; waited < milliseconds; waited += 10) {
        if (next_event(found)) return OK;
        usleep(10000);
    }
    return TIMED_OUT;
}
