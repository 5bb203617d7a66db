// The kernels with AVX2.
#include "level.hpp"
