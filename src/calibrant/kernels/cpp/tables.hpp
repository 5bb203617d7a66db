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

struct Limbs {
    Whole high = 0, low = 0;

    void add(Whole units, Whole count) {
        high += (units >> 26) * count;
        low += (units & LOW) * count;
        high += low >> 26;
        low &= LOW;
    }
};

// How many samples, summed outputs and hits (in two limbs, the lower of which is 0) lie before each entry, and in all.
template <class T>
void running(const T* values, Counts counts, Counts hits, Whole m, Whole* ranks, Whole* high, Whole* low, Whole* came) {
    Limbs sum;
    Whole rank = 0, happened = 0;
    for (Whole i = 0;; ++i) {
        ranks[i] = rank, high[i] = sum.high, low[i] = sum.low, came[i] = happened << 26;
        if (i == m) break;
        Whole count = counts[i];
        sum.add(unit(double(values[i])), count);
        rank += count, happened += hits[i];
    }
}

// Sums of values over hits, and of their squares over samples, where running totals are known.
template <class T>
void table_sums(const T* values, const Whole* ranks, const Whole* came, Whole m, Whole* sums) {
    Limbs true_outputs, squares;
    for (Whole i = 0; i < m; ++i) {
        double value = values[i];
        true_outputs.add(unit(value), came[i + 1] - came[i]);
        squares.add(unit(value * value), ranks[i + 1] - ranks[i]);
    }
    sums[0] = true_outputs.high, sums[1] = true_outputs.low, sums[2] = squares.high, sums[3] = squares.low;
}

// The entries at which pools of rising rate begin, and the end; gives back how many there are.
inline Whole rising(const Whole* ranks, const Whole* came, Whole m, Whole* corners) {
    Whole pools = 0;
    for (Whole i = 0; i < m; ++i) {
        Whole start = i, end = i + 1;
        while (pools) {
            Whole before = corners[pools - 1];
            Whole sizes[2] = {ranks[start] - ranks[before], ranks[end] - ranks[start]};
            Whole hits[2] = {came[start] - came[before], came[end] - came[start]};
            if (hits[0] * sizes[1] < hits[1] * sizes[0]) break;
            start = before;
            --pools;
        }
        corners[pools++] = start;
    }
    corners[pools] = m;
    return pools + 1;
}

}  // namespace
