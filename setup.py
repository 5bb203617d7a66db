"""Build the compiled kernels where a C++17 compiler is at hand; without one, calibrant is installed with NumPy alone.

CALIBRANT_REQUIRE_NATIVE=1 makes an installation without them fail, as a release must.
"""

import glob
import os
import platform
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = "src/calibrant/kernels/cpp"
LEVELS = {
    "plain": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mfma", "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mprefer-vector-width=512"],
}
"""Instructions of each library; the best that the machine has is loaded."""
FLAGS = ["-std=c++17", "-O3", "-g0", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden"]
FLAGS += ["-Wno-psabi", "-pthread"]
WITH_LEVELS = platform.machine() in ("x86_64", "AMD64")
if WITH_LEVELS:
    LEVELS["plain"] = ["-O1"]  # it tells which level runs, and serves machines without AVX2; -O3 compiles twice as long
REQUIRED = os.environ.get("CALIBRANT_REQUIRE_NATIVE") == "1"


class BuildKernels(build_ext):
    """Shared libraries that know nothing of Python, so their names carry no version."""

    def get_ext_filename(self, fullname):
        return os.path.join(*fullname.split(".")) + ".kernels"  # ".so" would look like a module to import

    def get_export_symbols(self, ext):
        return []

    def build_extension(self, ext):
        try:
            super().build_extension(ext)
        except Exception as reason:
            if REQUIRED:
                raise
            level = ext.name.rpartition(".")[2]
            print(f"calibrant: the compiled kernels ({level}) were not built: {reason}", file=sys.stderr)
            print("calibrant: NumPy serves in their place; large data take longer", file=sys.stderr)


levels = [level for level in LEVELS if level == "plain" or WITH_LEVELS]
setup(
    ext_modules=[
        Extension(
            f"calibrant.kernels.cpp.{level}",
            [f"{FOLDER}/{level}.cpp"],
            depends=sorted(glob.glob(f"{FOLDER}/*.hpp")),
            extra_compile_args=[*FLAGS, *LEVELS[level]],
            extra_link_args=["-pthread"],
            language="c++",
            optional=not REQUIRED,
        )
        for level in levels
    ],
    cmdclass={"build_ext": BuildKernels},
    options={"build_ext": {"parallel": len(levels)}},
)
