// Pairs: similarity of points times the inner product of residuals, summed over all pairs.
#pragma once
#include "lanes.hpp"

namespace {

constexpr Whole TILE = 32;  // rows that are compared with each other while they are near
constexpr int ROWS = 4, OTHERS = 2;

// What is summed over coordinates of a pair: |p - q|, or its square; and the product of residuals.
template <bool squared> struct Apart {
    static constexpr bool residuals = true;
    static Doubles far(Doubles p, Doubles q) {
        Doubles gap = p - q;
        return squared ? gap * gap : same_bits<Doubles>(same_bits<Naturals>(gap) & Naturals(~(Bits(1) << 63)));
    }
};

// The smaller of p and q, and their product: enough for distributions of which one coordinate came true.
struct Shared {
    static constexpr bool residuals = false;
    static Doubles far(Doubles p, Doubles q) {
        EACH(p.part[i] = p.part[i] < q.part[i] ? p.part[i] : q.part[i])
        return p;
    }
};

// Sums over coordinates of some rows with some others, which share their reading.
template <class Kind> struct Block {
    double far[ROWS][OTHERS], inner[ROWS][OTHERS];

    void add(const double* const (&p)[ROWS], const double* const (&r)[ROWS], const double* const (&q)[OTHERS],
             const double* const (&s)[OTHERS], Whole d) {
        Doubles fars[ROWS][OTHERS], inners[ROWS][OTHERS];
        for (int a = 0; a < ROWS; ++a)
            for (int b = 0; b < OTHERS; ++b) fars[a][b] = inners[a][b] = 0.0;
        auto step = [&](auto at) {
            Doubles y[OTHERS], w[OTHERS];
            _Pragma("GCC unroll 8") for (int b = 0; b < OTHERS; ++b) y[b] = at(q[b]), w[b] = Kind::residuals ? at(s[b]) : y[b];
            _Pragma("GCC unroll 8") for (int a = 0; a < ROWS; ++a) {
                Doubles x = at(p[a]), v = Kind::residuals ? at(r[a]) : x;
                _Pragma("GCC unroll 8") for (int b = 0; b < OTHERS; ++b) {
                    fars[a][b] += Kind::far(x, y[b]);
                    inners[a][b] = fused(v, w[b], inners[a][b]);
                }
            }
        };
        Whole j = 0;
        for (; j + 8 <= d; j += 8) step([j](const double* row) { return eight(row + j); });
        if (j < d)
            step([j, d](const double* row) {
                double last[8] = {0, 0, 0, 0, 0, 0, 0, 0};
                std::copy(row + j, row + d, last);
                return Doubles::at(last);
            });
        for (int a = 0; a < ROWS; ++a)
            for (int b = 0; b < OTHERS; ++b) far[a][b] = added(fars[a][b]), inner[a][b] = added(inners[a][b]);
    }
};

// Points, how far they miss, how often each is there; and where the truth is one coordinate, which.
struct Sample {
    Matrix<double> points;
    const double* residuals;
    const double* counts;
    const Whole* truth;
};

// What similarity and inner product follow from the sums of a pair.
template <bool squared> struct Terms {
    typedef Apart<squared> Kind;
    const Sample& sample;
    double scale, halves;

    Terms(const Sample& sample, double scale)
        : sample(sample), scale(scale), halves(squared ? 2.0 : double(std::min<Whole>(2, sample.points.width))) {}
    double operator()(Whole, Whole, double far, double inner) const {
        double power = squared ? far / (scale * scale) / halves : far / halves / scale;
        return std::exp(-power) * inner;
    }
};

struct SharedTerms {
    typedef Shared Kind;
    const Sample& sample;
    double scale;
    std::vector<double> sums;

    SharedTerms(const Sample& sample, double scale) : sample(sample), scale(scale), sums(sample.points.n) {
        for (Whole i = 0; i < sample.points.n; ++i) {
            Doubles sum = 0.0;
            Whole j = 0;
            for (; j + 8 <= sample.points.width; j += 8) sum += eight(sample.points.row(i) + j);
            sums[i] = added(sum);
            for (; j < sample.points.width; ++j) sums[i] += sample.points.row(i)[j];
        }
    }
    double operator()(Whole i, Whole j, double shared, double inner) const {
        double far = i == j ? 0.0 : std::max((sums[i] + sums[j]) / 2 - shared, 0.0);
        Whole own = sample.truth[i], other = sample.truth[j];
        double product = inner - sample.points.row(i)[other] - sample.points.row(j)[own] + (own == other);
        return std::exp(-far / scale) * product;
    }
};

// Of each row from begin to end, the sum over itself and, twice, over the rows behind it; and the term with itself.
template <class Term>
void pair_sums(const Sample& sample, const Term& term, Whole begin, Whole end, double* sums, double* selves,
               Whole threads) {
    Whole n = sample.points.n, d = sample.points.width, tiles = (end - begin + TILE - 1) / TILE;
    in_shares(threads, threads, [&](Whole share, Whole, Whole) {
        for (Whole tile = share; tile < tiles; tile += threads) {  // the first tiles have the most rows behind them
            Whole first = begin + tile * TILE, last = std::min(end, first + TILE);
            std::fill(sums + first - begin, sums + last - begin, 0.0);
            for (Whole j = first; j < n; j += OTHERS)
                for (Whole i = first; i < std::min(last, j + OTHERS); i += ROWS) {
                    const double *p[ROWS], *r[ROWS], *q[OTHERS], *s[OTHERS];
                    for (int a = 0; a < ROWS; ++a) {
                        Whole row = std::min(i + a, n - 1);
                        p[a] = sample.points.row(row), r[a] = sample.residuals + row * d;
                    }
                    for (int b = 0; b < OTHERS; ++b) {
                        Whole row = std::min(j + b, n - 1);
                        q[b] = sample.points.row(row), s[b] = sample.residuals + row * d;
                    }
                    Block<typename Term::Kind> block;
                    block.add(p, r, q, s, d);
                    for (int a = 0; a < ROWS && i + a < last; ++a)
                        for (int b = 0; b < OTHERS && j + b < n; ++b) {
                            if (j + b < i + a) continue;
                            double each = term(i + a, j + b, block.far[a][b], block.inner[a][b]) * sample.counts[i + a];
                            if (i + a == j + b) selves[i + a - begin] = each;
                            sums[i + a - begin] += (i + a == j + b ? 1.0 : 2.0) * each * sample.counts[j + b];
                        }
                }
        }
    });
}

// Whether residuals are those of one coordinate that came true in each row; and which.
inline bool one_true(Matrix<double> points, const double* residuals, Whole* truth, Whole threads) {
    Whole d = points.width;
    std::vector<char> all(threads, d > 1);
    in_shares(points.n, threads, [&](Whole share, Whole begin, Whole end) {
        for (Whole i = begin; i < end && all[share]; ++i) {
            const double *p = points.row(i), *r = residuals + i * d;
            truth[i] = -1;
            for (Whole j = 0; j < d; ++j) {
                if (r[j] == -p[j]) continue;
                all[share] &= truth[i] < 0 && r[j] == 1.0 - p[j];
                truth[i] = j;
            }
            all[share] &= truth[i] >= 0;
        }
    });
    return std::find(all.begin(), all.end(), 0) == all.end();
}

}  // namespace
