// Pairs: similarity of points times the inner product of residuals, summed over all pairs.
#pragma once
#include "lanes.hpp"

namespace {

constexpr Whole TILE = 16;  // rows that are compared with each other while they are near

// Distance and inner product of a row with two others, which share its reading.
template <bool squared> struct Pair {
    Doubles far[2] = {0.0, 0.0}, inner[2] = {0.0, 0.0};
    double last_far[2] = {0, 0}, last_inner[2] = {0, 0};

    void add(const double* p, const double* r, const double* const q[2], const double* const s[2], Whole d) {
        const Naturals positive = ~(Bits(1) << 63);
        Whole j = 0;
        for (; j + 8 <= d; j += 8) {
            Doubles x = eight(p + j), y = eight(r + j);
            for (int other = 0; other < 2; ++other) {
                Doubles gap = x - eight(q[other] + j);
                far[other] += squared ? gap * gap : same_bits<Doubles>(same_bits<Naturals>(gap) & positive);
                inner[other] += y * eight(s[other] + j);
            }
        }
        for (; j < d; ++j)
            for (int other = 0; other < 2; ++other) {
                double gap = p[j] - q[other][j];
                last_far[other] += squared ? gap * gap : std::abs(gap);
                last_inner[other] += r[j] * s[other][j];
            }
    }
    double distance(int other) const { return added(far[other]) + last_far[other]; }
    double product(int other) const { return added(inner[other]) + last_inner[other]; }
};

// Of each row, the sum over itself and, twice, over the rows behind it; and the term with itself, once. Residuals are
// those of all samples of a row.
template <bool squared>
void pair_sums(Matrix<double> points, const double* residuals, const double* counts, double scale, double* sums,
               double* selves, Whole threads) {
    Whole n = points.n, d = points.width, tiles = (n + TILE - 1) / TILE;
    const double halves = squared ? 2.0 : double(std::min<Whole>(2, d));
    auto term = [&](const Pair<squared>& pair, int other) {
        double distance = pair.distance(other);
        double power = squared ? distance / (scale * scale) / halves : distance / halves / scale;
        return std::exp(-power) * pair.product(other);
    };
    in_shares(threads, threads, [&](Whole share, Whole, Whole) {
        for (Whole tile = share; tile < tiles; tile += threads) {  // the first tiles have the most rows behind them
            Whole begin = tile * TILE, end = std::min(n, begin + TILE);
            for (Whole i = begin; i < end; ++i) sums[i] = 0.0;
            for (Whole start = begin; start < n; start += TILE) {
                Whole stop = std::min(n, start + TILE);
                for (Whole i = begin; i < end; ++i) {
                    for (Whole j = std::max(start, i); j < stop; j += 2) {
                        Whole next = std::min(j + 1, stop - 1);
                        const double* q[2] = {points.row(j), points.row(next)};
                        const double* s[2] = {residuals + j * d, residuals + next * d};
                        Pair<squared> pair;
                        pair.add(points.row(i), residuals + i * d, q, s, d);
                        double first = term(pair, 0);
                        if (j == i) selves[i] = first / counts[i];
                        sums[i] += j == i ? first : 2 * first;
                        if (next > j) sums[i] += 2 * term(pair, 1);
                    }
                }
            }
        }
    });
}

}  // namespace
