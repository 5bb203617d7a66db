"""Compile every Triton kernel for an H100 or H200, as it is launched for some shapes and types; no GPU is needed.

    python scripts/compile_for_gpu.py

The interpreter, which runs the kernels in tests, accepts what a compiler refuses.
"""

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from calibrant.kernels import along_rows, down_columns

TARGET = GPUTarget("cuda", 90, 32)
TYPES = {
    torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float64: "*fp64",
    torch.int64: "*i64", torch.int32: "*i32",
}  # fmt: skip
OPTIONS = ("num_warps", "enable_fp_fusion")
ALIGNED = [["tt.divisibility", 16]]
SEEN = set()
"""What was compiled."""


class Compiled:
    """A kernel that is compiled where it would be launched."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return self.compile

    def compile(self, *arguments, **named):
        names = self.kernel.arg_names
        free = {parameter.name for parameter in self.kernel.params if parameter.do_not_specialize}
        types, fixed, aligned = {}, {name: named[name] for name in named if name not in OPTIONS}, {}
        for place, (name, argument) in enumerate(zip(names, arguments, strict=False)):
            if isinstance(argument, torch.Tensor):
                types[name] = TYPES[argument.dtype]
                aligned[place,] = ALIGNED
            elif isinstance(argument, float):
                types[name] = "fp32"
            elif argument == 1 and name not in free:
                fixed[name] = 1
            else:
                types[name] = "i32" if argument < 1 << 31 else "i64"
                if argument % 16 == 0 and name not in free:
                    aligned[place,] = ALIGNED
        options = {name: named[name] for name in OPTIONS if name in named}
        key = self.kernel.__name__, *map(str, (types, fixed, aligned, options))
        if key not in SEEN:
            SEEN.add(key)
            signature = {name: types.get(name, "constexpr") for name in names}
            constants = {(names.index(name),): value for name, value in fixed.items()}
            triton.compile(ASTSource(self.kernel, signature, constants, aligned), target=TARGET, options=options)


def main():
    """All kernels, probabilities and logits of few and many columns, in whole tiles and not."""
    along_rows.launched = down_columns.launched = Compiled
    shapes = [(40, 1), (40, 10), (40, 64), (33, 1000), (2, 128_000)]
    for dtype in (torch.float32, torch.bfloat16):
        for n, width in shapes:
            values = torch.zeros((n, width), dtype=dtype)
            labels = torch.zeros(n, dtype=torch.int64)
            for beside in (labels, None):
                along_rows.tops(values, beside)
                along_rows.exponentials(values, beside)
            along_rows.squared_errors(values, labels)
            along_rows.tempered(values, torch.zeros(n, dtype=torch.float64), 0.5)
            edges, ranks = torch.tensor([0.25, 0.5]), torch.zeros((width, 15))
            down_columns.add_columns(torch.zeros((5, 3 * width), dtype=torch.int64), values, edges, True)
            down_columns.below(values, ranks)
            for shift, bits in ((18, 12), (9, 9), (0, 9), (24, 6)):
                down_columns.counted_digits(values, ranks.int()[:, :3], shift, bits)
        for right in (True, False):
            table = torch.zeros((5, 15), dtype=torch.int64)
            down_columns.add_events(table, values[:, 0], labels, torch.linspace(0.1, 0.9, 14), right)
    scores, edges = torch.zeros((40, 1), dtype=torch.float64), torch.zeros(14, dtype=torch.float64)
    along_rows.add_scores(torch.zeros((4, 1), dtype=torch.int64), scores, 1e10)
    down_columns.add_events(table, scores[:, 0], torch.zeros(40, dtype=torch.int64), edges, True)
    print(f"{len(SEEN)} variants, Triton {triton.__version__}")


if __name__ == "__main__":
    main()
