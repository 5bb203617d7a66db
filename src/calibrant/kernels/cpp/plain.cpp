// The kernels with the instructions that every machine has; and which levels this one can run.
#include "level.hpp"

KERNEL(runs)(int level) {
#if defined(__x86_64__)
    if (level == 1) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (level == 2)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
    return level == 0;
}
