// Cells: counts, exact sums and marks of the forecasts of one event in every cell, in one walk.
#pragma once
#include "cuts.hpp"

namespace {

inline Bits bits_of(double p) {
    Bits bits;
    std::memcpy(&bits, &p, sizeof bits);
    return bits;
}

// The cell of a forecast, the first whose last forecast is not below it: a guess from its leading bits, then steps.
class Cells {
    static constexpr int SHIFT = 44;         // 256 guesses in each octave of min(p, 1 - p)
    static constexpr Bits LEAST = 0x3DE00;   // leading bits of 2^-33, below which all share one guess
    static constexpr Bits GUESSES = 0x2001;  // the last is that of 1/2

  public:
    Cells(const double* lasts, Whole count) : lasts_(lasts), below_(GUESSES), above_(GUESSES) {
        auto first = [&](double p) { return std::int32_t(std::lower_bound(lasts, lasts + count, p) - lasts); };
        for (Bits guess = 0; guess < GUESSES; ++guess) {
            below_[guess] = guess ? first(border(guess)) : 0;
            above_[guess] = first(1.0 - border(guess + 1));
        }
    }

    Whole number(double p) const {
        Bits leading = bits_of(p <= 0.5 ? p : 1.0 - p) >> SHIFT;
        Bits guess = leading > LEAST ? leading - LEAST : 0;
        Whole number = p <= 0.5 ? below_[guess] : above_[guess];
        while (lasts_[number] < p) ++number;
        return number;
    }

  private:
    static double border(Bits guess) {
        Bits bits = (guess + LEAST) << SHIFT;
        double least;
        std::memcpy(&least, &bits, sizeof least);
        return least;
    }

    const double* lasts_;
    std::vector<std::int32_t> below_, above_;
};

constexpr Bits MODULUS = (Bits(1) << 31) - 1;

struct CellSums {
    Large outputs = 0, true_outputs = 0, squares = 0;
    Bits count = 0, hits = 0, mark = 0, square_mark = 0;

    void add(double p, Bits hit) {
        Bits units = Bits(unit(p)), mixed = bits_of(p);
        outputs += units, true_outputs += units & (0 - hit), squares += Bits(unit(p * p));
        count += 1, hits += hit;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
        Bits number = (mixed ^ (mixed >> 31)) % MODULUS;
        mark += number, square_mark += number * number % MODULUS;
    }
    void add(const CellSums& other) {
        outputs += other.outputs, true_outputs += other.true_outputs, squares += other.squares;
        count += other.count, hits += other.hits, mark += other.mark, square_mark += other.square_mark;
    }
};

// Ten rows: counts, hits, three sums in two limbs each, and two marks.
template <class T>
void cell_totals(Matrix<T> values, const std::uint8_t* hits, const double* lasts, Whole count, Whole* totals,
                 Whole threads) {
    const Cells cells(lasts, count);
    std::vector<std::vector<CellSums>> parts(threads, std::vector<CellSums>(count));
    in_shares(values.n, threads, [&](Whole share, Whole begin, Whole end) {
        CellSums* sums = parts[share].data();
        for (Whole i = begin; i < end; ++i) {
            double p = double(*values.row(i)) + 0.0;  // -0.0 becomes 0.0
            sums[cells.number(p)].add(p, Bits(hits[i]));
        }
    });
    for (Whole place = 0; place < count; ++place) {
        CellSums sum;
        for (const std::vector<CellSums>& part : parts) sum.add(part[place]);
        Whole row = 0;
        auto put = [&](Bits whole) { totals[row++ * count + place] = Whole(whole); };
        put(sum.count), put(sum.hits);
        for (Large limbs : {sum.outputs, sum.true_outputs, sum.squares})
            put(Bits(limbs >> 26)), put(Bits(limbs) & Bits(LOW));
        put(sum.mark % MODULUS), put(sum.square_mark % MODULUS);
    }
}

// The cell of each value.
template <class T>
void cell_numbers(Matrix<T> values, const double* lasts, Whole count, Whole* numbers, Whole threads) {
    const Cells cells(lasts, count);
    in_shares(values.n, threads, [&](Whole, Whole begin, Whole end) {
        for (Whole i = begin; i < end; ++i) numbers[i] = cells.number(double(*values.row(i)) + 0.0);
    });
}

}  // namespace
