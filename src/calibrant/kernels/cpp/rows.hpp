// Rows: extremes, sums and the largest entry of each row in one walk; the k largest; sums of squares.
#pragma once
#include "lanes.hpp"

namespace {

template <class T> struct Extremes {
    T low = std::numeric_limits<T>::infinity(), high = -low, least = low, most = -low;
    bool broken = false;

    void add(const Extremes& other) {
        low = std::min(low, other.low), high = std::max(high, other.high);
        least = std::min(least, other.least), most = std::max(most, other.most);
        broken |= other.broken;
    }
};

// The smallest and the largest of numbers that lie a stride apart; nan if any is.
template <class T> void extremes(const T* values, Whole n, Whole stride, T* ends, Whole threads) {
    typedef std::numeric_limits<T> Limits;
    const T first = Limits::has_infinity ? Limits::infinity() : Limits::max();
    const T last = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    std::vector<T> least(threads, first), most(threads, last);
    std::vector<char> broken(threads);
    in_shares(n, threads, [&](Whole share, Whole begin, Whole end) {
        constexpr Whole L = Pack<T>::count;
        Pack<T> low[2] = {first, first}, high[2] = {last, last};
        typename Mask<T>::Pack unequal[2] = {0, 0};
        T down = first, up = last;
        Whole i = begin;
        for (; stride == 1 && i + 2 * L <= end; i += 2 * L)
            for (int half = 0; half < 2; ++half) {
                fetch_ahead(values + i + half * L);
                const Pack<T> x = Pack<T>::at(values + i + half * L);
                low[half] = lesser(x, low[half]), high[half] = greater(x, high[half]);
                unequal[half] = unequal[half] | (x != x);  // nan alone differs from itself
            }
        bool nan = any(unequal[0] | unequal[1]);
        for (; i < end; ++i) {
            const T x = values[i * stride];
            down = x < down ? x : down, up = x > up ? x : up, nan |= x != x;
        }
        least[share] = std::min(down, least_of(lesser(low[0], low[1])));
        most[share] = std::max(up, most_of(greater(high[0], high[1])));
        broken[share] = nan;
    });
    const bool nan = std::any_of(broken.begin(), broken.end(), [](char each) { return each != 0; });
    ends[0] = nan ? Limits::quiet_NaN() : *std::min_element(least.begin(), least.end());
    ends[1] = nan ? Limits::quiet_NaN() : *std::max_element(most.begin(), most.end());
}

// Where a value that a row holds stands first.
template <class T> inline Whole first_place(const T* row, Whole width, T value) {
    constexpr Whole L = Pack<T>::count;
    const Pack<T> sought = value;
    Whole j = 0;
    for (; j + 4 * L <= width; j += 4 * L) {
        Bits found = 0;
        for (Whole i = 0; i < 4; ++i) found |= lanes_of(Pack<T>::at(row + j + i * L) == sought) << (i * L);
        if (found) return j + __builtin_ctzll(found);
    }
    while (j < width && row[j] != value) ++j;
    return j < width ? j : 0;
}

// A walk for the extremes and the sum, and one through the cache for the place of the largest entry.
template <class T>
void survey_row(const T* row, Whole width, Extremes<T>& all, Whole& top, T& smallest, T& largest) {
    constexpr Whole L = Pack<T>::count;
    const T infinity = std::numeric_limits<T>::infinity();
    Pack<T> low[2] = {infinity, infinity}, high[2] = {-infinity, -infinity}, sum[2] = {T(0), T(0)};
    Whole j = 0;
    for (; j + 2 * L <= width; j += 2 * L) {
        for (int half = 0; half < 2; ++half) {
            fetch_ahead(row + j + half * L);
            Pack<T> x = Pack<T>::at(row + j + half * L);
            sum[half] += x;
            low[half] = lesser(x, low[half]);
            high[half] = greater(x, high[half]);
        }
    }
    T total = 0, least = infinity, most = -infinity;
    for (; j < width; ++j) {
        least = row[j] < least ? row[j] : least;
        most = row[j] > most ? row[j] : most;
        total += row[j];
    }
    if (width >= 2 * L) {
        least = std::min(least, least_of(lesser(low[0], low[1])));
        most = std::max(most, most_of(greater(high[0], high[1])));
        total += T(added(sum[0] + sum[1]));
    }
    top = first_place(row, width, most);
    if (std::isnan(total)) {  // a nan, or infinities of both signs
        for (Whole place = 0; place < width; ++place) all.broken |= std::isnan(row[place]);
    }
    smallest = least, largest = width ? row[top] : most;
    all.low = std::min(all.low, least), all.high = std::max(all.high, most);
    all.least = std::min(all.least, total), all.most = std::max(all.most, total);
}

template <class T>
void survey(Matrix<T> values, double* extremes, Whole* top, T* largest, Whole threads) {
    std::vector<Extremes<T>> parts(threads);
    in_shares(values.n, threads, [&](Whole share, Whole begin, Whole end) {
        Extremes<T> part;
        T least;
        for (Whole i = begin; i < end; ++i) survey_row(values.row(i), values.width, part, top[i], least, largest[i]);
        parts[share] = part;
    });
    Extremes<T> all;
    for (const Extremes<T>& part : parts) all.add(part);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double each[4] = {all.low, all.high, all.least, all.most};
    for (int place = 0; place < 4; ++place) extremes[place] = all.broken ? nan : each[place];
}

// The k largest columns of each row, largest first, ties to the lowest: a short list, kept in order.
template <class T> void leaders(Matrix<T> scores, Whole k, Whole* order, Whole threads) {
    std::vector<std::vector<T>> lists(threads);
    for (std::vector<T>& list : lists) list.resize(k);
    in_shares(scores.n, threads, [&](Whole share, Whole begin, Whole end) {
        T* best = lists[share].data();
        for (Whole i = begin; i < end; ++i) {
            const T* row = scores.row(i);
            Whole* places = order + i * k;
            Whole held = 0;
            for (Whole j = 0; j < scores.width; ++j) {
                if (held == k && !(row[j] > best[k - 1])) continue;
                Whole place = held < k ? held++ : k - 1;
                for (; place > 0 && best[place - 1] < row[j]; --place)
                    best[place] = best[place - 1], places[place] = places[place - 1];
                best[place] = row[j], places[place] = j;
            }
        }
    });
}

// Units of the squares of eight outputs, each with 1 added.
inline Naturals squares_and_one(const double* outputs) {
    Doubles x = eight(outputs);
    return units_and_one(x * x);
}
inline Naturals squares_and_one(const float* outputs) {  // their squares are exact, so that one rounding is enough
    Doubles x = eight(outputs);
#if defined(__FMA__)
    return same_bits<Naturals>(fused(x, x, Doubles(1.0)));
#else
    return units_and_one(x * x);
#endif
}

// Squares of outputs less the truth, in units, summed over the d coordinates of each of v questions.
template <class T> Whole squares_of(const T* outputs, Whole d) {
    Naturals sums[2] = {Bits(0), Bits(0)};
    Whole j = 0;
    for (; j + 16 <= d; j += 16) {
        for (int half = 0; half < 2; ++half) {
            if (sizeof(T) == 8 || !half) fetch_ahead(outputs + j + 8 * half);
            sums[half] += squares_and_one(outputs + j + 8 * half);
        }
    }
    Whole sum = Whole(added(sums[0] + sums[1]) - Bits(j) * Bits(ONE));
    for (; j < d; ++j) sum += unit(double(outputs[j]) * double(outputs[j]));
    return sum;
}

inline Whole squared_gap(double output, double truth) {
    double gap = output - truth;
    return unit(gap * gap);
}

template <class T> void brier(Matrix<T> outputs, Whole v, const Whole* targets, double* scores, Whole threads) {
    Whole d = outputs.width / v;
    in_shares(outputs.n, threads, [&](Whole, Whole begin, Whole end) {
        for (Whole i = begin; i < end; ++i) {
            const T* row = outputs.row(i);
            for (Whole question = 0; question < v; ++question) {
                Whole sum = squares_of(row + question * d, d), hit = targets[i] - question * d;
                if (targets[i] >= 0 && hit >= 0 && hit < d) {
                    double output = row[targets[i]];
                    sum += squared_gap(output, 1.0) - squared_gap(output, 0.0);
                }
                scores[i * v + question] = double(sum) * 0x1p-52;
            }
        }
    });
}

template <class T>
void soft_brier(Matrix<T> outputs, Whole v, Matrix<double> targets, double* scores, Whole threads) {
    Whole d = outputs.width / v;
    in_shares(outputs.n, threads, [&](Whole, Whole begin, Whole end) {
        for (Whole i = begin; i < end; ++i) {
            const T* row = outputs.row(i);
            const double* truth = targets.row(i);
            for (Whole question = 0; question < v; ++question) {
                Whole sum = 0;
                for (Whole j = question * d; j < (question + 1) * d; ++j) sum += squared_gap(row[j], truth[j]);
                scores[i * v + question] = double(sum) * 0x1p-52;
            }
        }
    });
}

// Sums of rows of probabilities in units, at most 1.
template <class T> void row_sums(Matrix<T> values, double* sums, Whole threads) {
    in_shares(values.n, threads, [&](Whole, Whole begin, Whole end) {
        for (Whole i = begin; i < end; ++i) {
            const T* row = values.row(i);
            Whole sum = 0;
            for (Whole j = 0; j < values.width; ++j) sum += unit(row[j]);
            sums[i] = values.width == 1 ? double(row[0]) : double(std::min(sum, Whole(1) << 52)) * 0x1p-52;
        }
    });
}

}  // namespace
