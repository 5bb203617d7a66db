// The kernels with AVX-512.
#include "level.hpp"
