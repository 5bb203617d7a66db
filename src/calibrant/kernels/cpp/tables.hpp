// Tables of forecasts: running totals, exact sums, and pools of rising rate.
#pragma once
#include "lanes.hpp"

namespace {

// Whole numbers of any width, a stretch at a time.
class Counts {
  public:
    Counts(const void* first, Whole bytes) : first_(first), bytes_(bytes) {}
    Whole operator[](Whole place) const {
        switch (bytes_) {
            case 1: return static_cast<const std::uint8_t*>(first_)[place];
            case 2: return static_cast<const std::uint16_t*>(first_)[place];
            case 4: return static_cast<const std::uint32_t*>(first_)[place];
            default: return static_cast<const Whole*>(first_)[place];
        }
    }

  private:
    const void* first_;
    Whole bytes_;
};

typedef __int128 Sum;  // of units, exact

inline void in_limbs(Sum sum, Whole* limbs) { limbs[0] = Whole(sum >> 26), limbs[1] = Whole(sum) & LOW; }

// How many samples, summed outputs and hits (in two limbs, the lower of which is 0) lie before every so manieth entry,
// and in all.
template <class T, class C>
void running(const T* values, C counts, C hits, Whole m, Whole every, Whole* ranks, Whole* high, Whole* low,
             Whole* came) {
    Sum sum = 0;
    Whole rank = 0, happened = 0, place = 0;
    for (Whole begin = 0;; begin += every, ++place) {
        Whole limbs[2];
        in_limbs(sum, limbs);
        ranks[place] = rank, high[place] = limbs[0], low[place] = limbs[1], came[place] = happened << 26;
        if (begin >= m) break;
        for (Whole i = begin, end = std::min(begin + every, m); i < end; ++i) {
            Whole count = counts[i];
            sum += Sum(unit(double(values[i]))) * count;
            rank += count, happened += hits[i];
        }
    }
}

// Sums of values over hits, and of their squares over samples.
template <class T, class C> void table_sums(const T* values, C counts, C hits, Whole m, Whole* sums) {
    Sum true_outputs = 0, squares = 0;
    for (Whole i = 0; i < m; ++i) {
        double value = values[i];
        true_outputs += Sum(unit(value)) * Whole(hits[i]);
        squares += Sum(unit(value * value)) * Whole(counts[i]);
    }
    in_limbs(true_outputs, sums), in_limbs(squares, sums + 2);
}

// Where running hits less running values end, and how far they go down and up.
template <class S> struct Path {
    S end = 0, low = 0, high = 0;

    template <class T, class C> void walk(const T* values, C counts, C hits, Whole begin, Whole stop) {
        for (Whole i = begin; i < stop; ++i) {
            end += (S(hits[i]) << 52) - S(unit(double(values[i]))) * Whole(counts[i]);
            low = std::min(low, end), high = std::max(high, end);
        }
    }
    void go_on(const Path<Whole>& part) {
        low = std::min(low, end + part.low), high = std::max(high, end + part.high);
        end += part.end;
    }
};

// The lowest and the highest point of that path, and the sums of v = p (1 - p) and of v^1.5.
template <class T, class C>
void path_ends(const T* values, C counts, C hits, Whole m, Whole* ends, double* sums) {
    constexpr Whole SOME = 512, FEW = 1023;  // so many units fit 64 bits
    Path<Sum> path;
    sums[0] = sums[1] = 0;
    for (Whole begin = 0; begin < m; begin += SOME) {
        Whole stop = std::min(begin + SOME, m), held = 0;
        for (Whole i = begin; i < stop; ++i) held += counts[i];
        if (held <= FEW) {
            Path<Whole> part;
            part.walk(values, counts, hits, begin, stop);
            path.go_on(part);
        } else {
            path.walk(values, counts, hits, begin, stop);
        }
        double spread[8] = {}, cubes[8] = {};
        const auto add = [&](Whole i, Whole lane) {
            double value = values[i], v = value * (1.0 - value), count = double(Whole(counts[i]));
            spread[lane] += v * count, cubes[lane] += v * std::sqrt(v) * count;
        };
        Whole i = begin;
        for (; i + 8 <= stop; i += 8)
            for (Whole lane = 0; lane < 8; ++lane) add(i + lane, lane);
        for (Whole lane = 0; i < stop; ++i, ++lane) add(i, lane);
        sums[0] += added(Doubles::at(spread)), sums[1] += added(Doubles::at(cubes));
    }
    in_limbs(path.low, ends), in_limbs(path.high, ends + 2);
}

// The entries at which pools of rising rate begin, and the end, and how many samples and hits lie before each; gives
// back how many there are.
template <class C> Whole rising(C counts, C hits, Whole m, Whole* corners, Whole* ranks, Whole* came) {
    Whole pools = 0, rank = 0, happened = 0;
    for (Whole i = 0; i < m; ++i) {
        Whole start = i, first = rank, before = happened, size = counts[i], hit = hits[i];
        rank += size, happened += hit;
        while (pools && (before - came[pools - 1]) * size >= hit * (first - ranks[pools - 1])) {
            --pools;
            start = corners[pools], first = ranks[pools], before = came[pools];
            size = rank - first, hit = happened - before;
        }
        corners[pools] = start, ranks[pools] = first, came[pools] = before;
        ++pools;
    }
    corners[pools] = m, ranks[pools] = rank, came[pools] = happened;
    return pools + 1;
}

}  // namespace
