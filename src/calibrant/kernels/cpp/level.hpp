// The functions that Python calls; every level of instructions is a library with all of them.
#pragma once
#include "cells.hpp"
#include "cuts.hpp"
#include "logits.hpp"
#include "pairs.hpp"
#include "rows.hpp"
#include "sorting.hpp"
#include "tables.hpp"
#include "totals.hpp"

#define KERNEL(name) extern "C" __attribute__((visibility("default"))) int calibrant_##name

namespace {

struct Given {  // a matrix of float32 or float64
    const void* first;
    Whole n, width, stride, wide;

    template <class T> Matrix<T> of() const { return {static_cast<const T*>(first), n, width, stride}; }
};

// Run what a kernel does, in the type of its matrix; 1 where memory is short.
template <class Work> int in_type(Whole wide, Work work) {
    try {
        if (wide)
            work(double());
        else
            work(float());
    } catch (const std::bad_alloc&) {
        return 1;
    }
    return 0;
}

}  // namespace

#define MATRIX const void *first, Whole n, Whole width, Whole stride, Whole wide
#define GIVEN (Given{first, n, width, stride, wide})
#define EDGES const double *inner, Whole edges, Whole right, double grain

// Whether a product and a sum are one instruction; without it, what is fused takes long.
KERNEL(fuses)() {
#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
    return 1;
#else
    return 0;
#endif
}

KERNEL(extremes)(MATRIX, Whole whole, void* ends, Whole threads) {
    if (whole) {
        extremes(static_cast<const Whole*>(first), n, stride, static_cast<Whole*>(ends), threads);
        return 0;
    }
    return in_type(wide, [&](auto type) {
        decltype(type) each[2];
        extremes(GIVEN.of<decltype(type)>().first, n, stride, each, threads);
        std::copy(each, each + 2, static_cast<double*>(ends));
    });
}

// The entry of each row that stands in the row's column.
KERNEL(taken)(MATRIX, const Whole* columns, void* entries) {
    return in_type(wide, [&](auto type) {
        auto values = GIVEN.of<decltype(type)>();
        for (Whole i = 0; i < n; ++i) static_cast<decltype(type)*>(entries)[i] = values.row(i)[columns[i]];
    });
}

KERNEL(survey)(MATRIX, double* extremes, Whole* top, void* largest, Whole threads) {
    return in_type(wide, [&](auto type) {
        typedef decltype(type) T;
        survey(GIVEN.of<T>(), extremes, top, static_cast<T*>(largest), threads);
    });
}

KERNEL(leaders)(MATRIX, Whole k, Whole* order, Whole threads) {
    return in_type(wide, [&](auto type) { leaders(GIVEN.of<decltype(type)>(), k, order, threads); });
}

KERNEL(row_sums)(MATRIX, double* sums, Whole threads) {
    return in_type(wide, [&](auto type) { row_sums(GIVEN.of<decltype(type)>(), sums, threads); });
}

KERNEL(brier)(MATRIX, Whole v, const Whole* hard, const double* soft, double* scores, Whole threads) {
    return in_type(wide, [&](auto type) {
        auto outputs = GIVEN.of<decltype(type)>();
        if (hard)
            brier(outputs, v, hard, scores, threads);
        else
            soft_brier(outputs, v, Matrix<double>{soft, n, width, width}, scores, threads);
    });
}

KERNEL(scalar_totals)(MATRIX, const Whole* hard, const std::int8_t* short_hard, const double* soft,
                      const std::uint8_t* keep, const Whole* group, Whole groups, EDGES, Whole* totals, Whole threads) {
    return in_type(wide, [&](auto type) {
        typedef decltype(type) T;
        scalar_totals(GIVEN.of<T>(), hard, short_hard, Matrix<double>{soft, n, width, width}, Counted{keep, group},
                      groups, Edges<T>(inner, edges, right, grain), totals, threads);
    });
}

KERNEL(scalar_codes)(MATRIX, EDGES, std::uint8_t* narrow, Whole* codes, Whole threads) {
    return in_type(wide, [&](auto type) {
        typedef decltype(type) T;
        scalar_codes(GIVEN.of<T>(), Edges<T>(inner, edges, right, grain), narrow, codes, threads);
    });
}

KERNEL(column_sums)(MATRIX, const Whole* rows, Whole count, Whole square, Whole* sums, Whole threads) {
    return in_type(wide, [&](auto type) {
        typedef decltype(type) T;
        if (square)
            column_sums<T, true>(GIVEN.of<T>(), rows, count, sums, threads);
        else
            column_sums<T, false>(GIVEN.of<T>(), rows, count, sums, threads);
    });
}

KERNEL(ordered)(MATRIX, const std::uint8_t* hits, void* sorted, Whole* came, Whole threads) {
    return in_type(wide, [&](auto type) {
        typedef decltype(type) T;
        ordered(GIVEN.of<T>(), hits, static_cast<T*>(sorted), came, threads);
    });
}

KERNEL(packed)(MATRIX, const std::uint8_t* hits, void* keys) {
    return in_type(wide, [&](auto type) {
        typedef decltype(type) T;
        auto values = GIVEN.of<T>();
        for (Whole i = 0; i < n; ++i)
            static_cast<typename Key<T>::Bits*>(keys)[i] = packed(*values.row(i), hits[i] != 0);
    });
}

// Which of the two arrays holds the keys in order: 0 or 1.
KERNEL(in_order)(void* keys, void* spare, Whole n, Whole wide, Whole* other) {
    return in_type(wide, [&](auto type) {
        typedef typename Key<decltype(type)>::Bits K;
        *other = in_order(static_cast<K*>(keys), static_cast<K*>(spare), n) != keys;
    });
}

KERNEL(count_values)(const void* keys, Whole n, Whole wide, Whole* found) {
    return in_type(wide, [&](auto type) {
        count_values(static_cast<const typename Key<decltype(type)>::Bits*>(keys), n, found);
    });
}

KERNEL(distinct)(const void* keys, Whole n, Whole wide, Whole many, void* levels, void* counts, void* positives) {
    return in_type(wide, [&](auto type) {
        typedef decltype(type) T;
        auto work = [&](auto count) {
            typedef decltype(count) C;
            distinct(static_cast<const typename Key<T>::Bits*>(keys), n, static_cast<T*>(levels),
                     static_cast<C*>(counts), static_cast<C*>(positives));
        };
        if (many)
            work(std::uint32_t());
        else
            work(std::uint8_t());
    });
}

KERNEL(survey_logits)(MATRIX, Whole narrow, double* extremes, Whole* top, double* largest, double* rest,
                      double* squares, Whole threads) {
    return in_type(wide, [&](auto type) {
        survey_logits(GIVEN.of<decltype(type)>(), narrow, extremes, top, largest, rest, squares, threads);
    });
}

KERNEL(softmax)(MATRIX, const double* top, const double* rest, double* shares, Whole threads) {
    return in_type(wide, [&](auto type) { softmax(GIVEN.of<decltype(type)>(), top, rest, shares, threads); });
}

KERNEL(tempered)(MATRIX, const Whole* labels, double inverse, Whole narrow, double* derivatives,
                 Whole threads) {
    return in_type(wide, [&](auto type) {
        tempered(GIVEN.of<decltype(type)>(), labels, inverse, narrow, derivatives, threads);
    });
}

KERNEL(event_scores)(MATRIX, const Whole* targets, const std::int8_t* short_targets, Whole logs, Whole* sums,
                     double* each, Whole threads) {
    return in_type(wide, [&](auto type) {
        auto outputs = GIVEN.of<decltype(type)>().first;
        if (short_targets)
            event_scores(outputs, short_targets, n, logs, sums, each, threads);
        else
            event_scores(outputs, targets, n, logs, sums, each, threads);
    });
}

// Counts and hits as they are stored: in bytes mostly.
#define COUNTED const void *counts, Whole count_bytes, const void *hits, Whole hit_bytes
template <class Work> void in_counts(COUNTED, Work work) {
    if (count_bytes == 1 && hit_bytes == 1)
        work(static_cast<const std::uint8_t*>(counts), static_cast<const std::uint8_t*>(hits));
    else
        work(Counts(counts, count_bytes), Counts(hits, hit_bytes));
}

KERNEL(running)(MATRIX, COUNTED, Whole every, Whole* ranks, Whole* high, Whole* low, Whole* came) {
    return in_type(wide, [&](auto type) {
        in_counts(counts, count_bytes, hits, hit_bytes, [&](auto made, auto true_of) {
            running(GIVEN.of<decltype(type)>().first, made, true_of, n, every, ranks, high, low, came);
        });
    });
}

KERNEL(table_sums)(MATRIX, COUNTED, Whole* sums) {
    return in_type(wide, [&](auto type) {
        in_counts(counts, count_bytes, hits, hit_bytes, [&](auto made, auto true_of) {
            table_sums(GIVEN.of<decltype(type)>().first, made, true_of, n, sums);
        });
    });
}

KERNEL(path_ends)(MATRIX, COUNTED, Whole* ends, double* sums) {
    return in_type(wide, [&](auto type) {
        in_counts(counts, count_bytes, hits, hit_bytes, [&](auto made, auto true_of) {
            path_ends(GIVEN.of<decltype(type)>().first, made, true_of, n, ends, sums);
        });
    });
}

KERNEL(rising)(COUNTED, Whole m, Whole* corners, Whole* ranks, Whole* came, Whole* found) {
    in_counts(counts, count_bytes, hits, hit_bytes, [&](auto made, auto true_of) {
        *found = rising(made, true_of, m, corners, ranks, came);
    });
    return 0;
}

KERNEL(cell_totals)(MATRIX, const std::uint8_t* hits, const double* lasts, Whole count, Whole* totals, Whole threads) {
    return in_type(wide, [&](auto type) {
        cell_totals(GIVEN.of<decltype(type)>(), hits, lasts, count, totals, threads);
    });
}

KERNEL(cell_numbers)(MATRIX, const double* lasts, Whole count, Whole* numbers, Whole threads) {
    return in_type(wide, [&](auto type) {
        cell_numbers(GIVEN.of<decltype(type)>(), lasts, count, numbers, threads);
    });
}

KERNEL(column_cuts)(MATRIX, const Whole* targets, const std::int8_t* short_targets, const Whole* cuts, Whole count,
                    Whole* wholes, double* ends, Whole threads) {
    return in_type(wide, [&](auto type) {
        auto values = GIVEN.of<decltype(type)>();
        if (short_targets)
            column_cuts(values, short_targets, cuts, count, wholes, ends, threads);
        else
            column_cuts(values, targets, cuts, count, wholes, ends, threads);
    });
}

KERNEL(pair_sums)(MATRIX, const double* residuals, const double* counts, double scale, Whole squared, Whole begin,
                  Whole end, double* sums, double* selves, Whole threads) {
    return in_type(wide, [&](auto) {
        std::vector<Whole> truth(n);
        Sample sample{GIVEN.of<double>(), residuals, counts, truth.data()};
        if (squared)
            pair_sums(sample, Terms<true>(sample, scale), begin, end, sums, selves, threads);
        else if (one_true(sample.points, residuals, truth.data(), threads))
            pair_sums(sample, SharedTerms(sample, scale), begin, end, sums, selves, threads);
        else
            pair_sums(sample, Terms<false>(sample, scale), begin, end, sums, selves, threads);
    });
}
