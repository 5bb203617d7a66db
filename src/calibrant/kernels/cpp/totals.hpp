// Totals: counts and exact sums of every (question, bin) in one walk.
#pragma once
#include "lanes.hpp"

namespace {

// How many inner edges lie below a value (at or below it, when bins are left-closed): a guess from a table, then steps.
template <class T> class Edges {
  public:
    Edges(const double* inner, Whole count, bool right, double grain) : right_(right), grain_(grain) {
        for (Whole place = 0; place < count; ++place) edges_.push_back(T(inner[place]));
        edges_.push_back(std::numeric_limits<T>::infinity());
        while (cells_ < 4 * count && cells_ < (1 << 20)) cells_ *= 2;
        start_.resize(cells_ + 1);
        Whole code = 0;
        for (Whole cell = 0; cell <= cells_; ++cell) {
            double low = double(cell) / double(cells_);
            if (grain_) low = std::nearbyint(low * grain_);
            while (code < count && inner[code] < low) ++code;
            start_[cell] = std::int32_t(code);
        }
    }

    Whole code(T value) const {
        T scaled = value * T(cells_);
        Whole cell = scaled > T(0) ? (scaled < T(cells_) ? Whole(scaled) : cells_) : 0;
        Whole code = start_[cell];
        T compared = grain_ ? T(std::nearbyint(double(value) * grain_)) : value;
        if (right_)
            while (edges_[code] < compared) ++code;
        else
            while (edges_[code] <= compared) ++code;
        return code;
    }

    // Of so many values that lie side by side, by comparing them with every edge: for few edges.
    void codes(const T* values, typename Mask<T>::Pack& codes) const {
        typedef typename Mask<T>::Pack Places;
        const Pack<T> x = Pack<T>::at(values);
        codes = decltype(Places{}[0])(0);
        for (std::size_t place = 0; place + 1 < edges_.size(); ++place) {
            const Pack<T> edge = edges_[place];
            codes = codes - (right_ ? x > edge : x >= edge);  // what is true is -1
        }
    }
    bool few() const { return edges_.size() <= 32 && !grain_; }

    Whole bins() const { return Whole(edges_.size()); }
    T first() const { return edges_[0]; }
    T edge(Whole place) const { return edges_[place]; }
    bool right() const { return right_; }
    bool plain() const { return !grain_; }

  private:
    bool right_;
    double grain_;
    Whole cells_ = 4096;
    std::vector<T> edges_;
    std::vector<std::int32_t> start_;
};

// Five rows of sums: sizes, outputs and targets in two limbs each, which are carried in the end.
class Sums {
  public:
    explicit Sums(Whole cells) : cells_(cells), sums_(5 * cells) {}
    void add(Whole cell, Whole outputs) {
        sums_[cell] += 1;
        sums_[cells_ + cell] += outputs >> 26;
        sums_[2 * cells_ + cell] += outputs & LOW;
    }
    void take(Whole cell, Whole outputs) {
        sums_[cell] -= 1;
        sums_[cells_ + cell] -= outputs >> 26;
        sums_[2 * cells_ + cell] -= outputs & LOW;
    }
    void add_many(Whole cell, Whole count, Bits outputs) {
        sums_[cell] += count;
        sums_[cells_ + cell] += Whole(outputs >> 26);
        sums_[2 * cells_ + cell] += Whole(outputs) & LOW;
    }
    void happened(Whole cell, Whole targets) {
        sums_[3 * cells_ + cell] += targets >> 26;
        sums_[4 * cells_ + cell] += targets & LOW;
    }
    void happened_often(Whole cell, Whole count) { sums_[3 * cells_ + cell] += count << 26; }
    void join(const Sums& other) {
        for (std::size_t place = 0; place < sums_.size(); ++place) sums_[place] += other.sums_[place];
    }
    void carried_to(Whole* into) const {
        std::copy(sums_.begin(), sums_.end(), into);
        for (Whole high : {1, 3})
            for (Whole cell = 0; cell < cells_; ++cell) {
                Whole& low = into[(high + 1) * cells_ + cell];
                into[high * cells_ + cell] += low >> 26;
                low &= LOW;
            }
    }

  private:
    Whole cells_;
    std::vector<Whole> sums_;
};

constexpr Whole UNIT = Whole(1) << 52;
constexpr Whole FEW = 256;  // bins whose tables are small beside so many rows

// Some rows of one question: outputs, their units, and 1 each with 2^32 more where it came true; zeros fill it up.
struct Stretch {
    static constexpr Whole ROWS = 512;
    alignas(64) double outputs[ROWS];
    alignas(64) Bits units[ROWS], marks[ROWS];
    Whole filled = 0;

    template <class T, class Target> void fill(Matrix<T> from, const Target* targets, Whole begin, Whole end) {
        Whole rows = end - begin, i = 0;
        filled = (rows + 7) / 8 * 8;
        if (from.stride == 1)
            for (; i + 8 <= rows; i += 8) eight(from.row(begin + i)).store(outputs + i);
        for (; i < rows; ++i) outputs[i] = *from.row(begin + i);
        std::fill(outputs + rows, outputs + filled, 0.0);
        for (i = 0; i < filled; i += 8) (units_and_one(Doubles::at(outputs + i)) - Bits(ONE)).store(units + i);
        for (i = 0; i < rows; ++i) marks[i] = (Bits(targets[begin + i] >= 0) << 32) + 1;
        std::fill(marks + rows, marks + filled, 0);
    }
    Bits total(const Bits* numbers) const {
        Naturals sums = Bits(0);
        for (Whole row = 0; row < filled; row += 8) sums += Naturals::at(numbers + row);
        return added(sums);
    }
};

// a + b where x lies beyond an edge, else a.
template <bool right> inline Naturals added_beyond(Naturals a, Naturals b, Doubles x, Doubles edge) {
#if defined(__AVX512F__)
    constexpr int side = right ? _CMP_GT_OQ : _CMP_GE_OQ;
    const __mmask8 beyond = _mm512_cmp_pd_mask(x.part[0], edge.part[0], side);
    a.part[0] = (Naturals::Vector)_mm512_mask_add_epi64((__m512i)a.part[0], beyond, (__m512i)a.part[0], (__m512i)b.part[0]);
    return a;
#else
    return a + (same_bits<Naturals>(right ? x > edge : x >= edge) & b);
#endif
}

// Sums of units and of marks of what lies beyond each of some edges, which are kept in registers.
template <int count, bool right> void beyond(const Stretch& rows, const double* edges, Bits* units, Bits* marks) {
    Naturals unit_sums[count], mark_sums[count];
    ALONGSIDE(unit_sums[i] = mark_sums[i] = Bits(0))
    for (Whole row = 0; row < rows.filled; row += 8) {
        const Doubles x = Doubles::at(rows.outputs + row);
        const Naturals unit = Naturals::at(rows.units + row), mark = Naturals::at(rows.marks + row);
        ALONGSIDE(unit_sums[i] = added_beyond<right>(unit_sums[i], unit, x, Doubles(edges[i]));
                  mark_sums[i] = added_beyond<right>(mark_sums[i], mark, x, Doubles(edges[i])))
    }
    ALONGSIDE(units[i] = added(unit_sums[i]); marks[i] = added(mark_sums[i]))
}

constexpr Whole AT_ONCE = 7;  // edges whose sums stay in registers

// One question of few bins, hard labels: what lies beyond each edge; bins are differences of those sums.
template <bool right, class T, class Target>
void few_bins(Matrix<T> outputs, const Target* targets, const Edges<T>& edges, Sums& sums, Whole begin, Whole end) {
    const Whole bins = edges.bins(), groups = (bins + AT_ONCE - 2) / AT_ONCE;
    std::vector<double> borders(groups * AT_ONCE, std::numeric_limits<double>::infinity());
    for (Whole place = 0; place + 1 < bins; ++place) borders[place] = edges.edge(place);
    std::vector<Bits> units(borders.size() + 1), marks(borders.size() + 1);
    Stretch rows;
    for (; begin < end; begin += Stretch::ROWS) {
        rows.fill(outputs, targets, begin, std::min(end, begin + Stretch::ROWS));
        units[0] = rows.total(rows.units), marks[0] = rows.total(rows.marks);
        for (Whole group = 0; group < groups; ++group) {
            const Whole first = group * AT_ONCE;
            beyond<AT_ONCE, right>(rows, &borders[first], &units[first + 1], &marks[first + 1]);
        }
        for (Whole code = 0; code < bins; ++code) {
            const bool last = code + 1 == bins;
            const Bits unit = units[code] - (last ? 0 : units[code + 1]), mark = marks[code] - (last ? 0 : marks[code + 1]);
            sums.add_many(code, Whole(mark & 0xFFFFFFFF), unit);
            sums.happened_often(code, Whole(mark >> 32));
        }
    }
}

// One question, hard labels: four tables in turn, so that no sum waits for the one before.
template <class T, class Target>
void one_question(Matrix<T> outputs, const Target* targets, const Edges<T>& edges, Sums& sums, Whole begin, Whole end) {
    if constexpr (NATIVE == 64)  // with smaller registers, tables are faster
        if (edges.few() && edges.bins() <= 2 * AT_ONCE + 1)
            return edges.right() ? few_bins<true>(outputs, targets, edges, sums, begin, end)
                                 : few_bins<false>(outputs, targets, edges, sums, begin, end);
    typedef Bits Cell __attribute__((vector_size(16)));  // units; hits above 2^32 and all below
    constexpr Whole L = Pack<T>::count;
    const bool side_by_side = outputs.stride == 1 && edges.few();
    Whole bins = edges.bins();
    std::vector<Cell> table(4 * bins);
    for (Whole start = begin; start < end; start += TOGETHER) {
        Whole stop = std::min(end, start + TOGETHER), i = start;
        auto add = [&](Whole turn, Whole row, Whole code, Bits units) {
            Bits hit = Bits(~Whole(targets[row])) >> 63 << 32;  // the sign, for a branch would guess wrongly
            table[4 * code + turn] += Cell{units, hit + 1};
        };
        for (; side_by_side && i + L <= stop; i += L) {
            typename Mask<T>::Pack code;
            Bits units[L];
            edges.codes(outputs.row(i), code);
            for (Whole lane = 0; lane < L; lane += 8)
                (units_and_one(eight(outputs.row(i) + lane)) - Bits(ONE)).store(units + lane);
            decltype(code[0]) codes[L];
            code.store(codes);
            for (Whole lane = 0; lane < L; ++lane) add(lane % 4, i + lane, Whole(codes[lane]), units[lane]);
        }
        for (; i < stop; ++i) add(i % 4, i, edges.code(*outputs.row(i)), Bits(unit(*outputs.row(i))));
        for (Whole place = 0; place < 4 * bins; ++place) {
            Cell& cell = table[place];
            if (!cell[1]) continue;
            sums.add_many(place / 4, Whole(cell[1] & 0xFFFFFFFF), cell[0]);
            sums.happened_often(place / 4, Whole(cell[1] >> 32));
            cell = Cell{0, 0};
        }
    }
}

constexpr Whole BLOCK = 32;  // columns among which few lie beyond the first bin

template <class T> inline void move(T value, Whole column, const Edges<T>& edges, Sums& sums) {
    Whole home = column * edges.bins(), code = edges.code(value);
    if (!code) return;
    sums.add(home + code, unit(value));
    sums.take(home, unit(value));
}

// Entries of a row side by side: their units go to those of their columns; what lies beyond the first bin is moved.
template <class T>
inline void add_block(const T* row, Whole column, const Edges<T>& edges, Bits* units, Sums& sums) {
    constexpr Whole L = Pack<T>::count;
    const Pack<T> first = edges.first();
    for (Whole j = 0; j < BLOCK; j += 8) (Naturals::at(units + j) + units_and_one(eight(row + j))).store(units + j);
    Bits beyond = 0;
    for (Whole j = 0; j < BLOCK; j += L) beyond |= lanes_of(Pack<T>::at(row + j) >= first) << j;
    for (; beyond; beyond &= beyond - 1) {
        Whole place = __builtin_ctzll(beyond);
        move(row[place], column + place, edges, sums);
    }
}

// Many questions, hard labels: all entries of a column go to its first bin, then the few beyond it are moved.
template <class T>
void many_questions(Matrix<T> outputs, const Whole* targets, const Edges<T>& edges, Sums& sums, Whole begin, Whole end) {
    Whole v = outputs.width, bins = edges.bins(), lead = entries_to_line(outputs);
    Lined lines(v, lead);
    Bits* units = lines.data();  // they wrap on the way, not in the end
    for (Whole start = begin; start < end; start += TOGETHER) {
        Whole stop = std::min(end, start + TOGETHER);
        for (Whole i = start; i < stop; ++i) {
            const T* row = outputs.row(i);
            const auto add = [&](Whole j) {
                units[j] += Bits(unit(row[j])) + Bits(ONE);
                if (row[j] >= edges.first()) move(row[j], j, edges, sums);
            };
            Whole j = 0;
            while (j < lead) add(j++);
            for (; j + BLOCK <= v; j += BLOCK) add_block(row + j, j, edges, units + j, sums);
            while (j < v) add(j++);
            if (targets[i] >= 0) sums.happened(targets[i] * bins + edges.code(row[targets[i]]), UNIT);
        }
        for (Whole j = 0; j < v; ++j) sums.add_many(j * bins, stop - start, units[j] - Bits(stop - start) * Bits(ONE));
        std::fill(units, units + v, 0);
    }
}

struct Counted {  // which answers count, and for which copy of the questions
    const std::uint8_t* keep;
    const Whole* group;
};

template <class T>
void any_questions(Matrix<T> outputs, const Whole* hard, Matrix<double> soft, Counted counted, const Edges<T>& edges,
                   Sums& sums, Whole begin, Whole end) {
    Whole v = outputs.width, bins = edges.bins();
    for (Whole i = begin; i < end; ++i) {
        const T* row = outputs.row(i);
        Whole first = counted.group ? counted.group[i] * v : 0;
        for (Whole j = 0; j < v; ++j) {
            if (counted.keep && !counted.keep[i * v + j]) continue;
            Whole cell = (first + j) * bins + edges.code(row[j]);
            sums.add(cell, unit(row[j]));
            if (hard ? hard[i] == j : true) sums.happened(cell, hard ? UNIT : unit(soft.row(i)[j]));
        }
    }
}

template <class T>
void scalar_totals(Matrix<T> outputs, const Whole* hard, const std::int8_t* short_hard, Matrix<double> soft,
                   Counted counted, Whole groups, const Edges<T>& edges, Whole* totals, Whole threads) {
    Whole v = outputs.width, cells = groups * v * edges.bins();
    bool all = !counted.keep && !counted.group;
    std::vector<Sums> parts;
    while (Whole(parts.size()) < threads) parts.emplace_back(cells);
    in_shares(outputs.n, threads, [&](Whole share, Whole begin, Whole end) {
        if (short_hard)
            one_question(outputs, short_hard, edges, parts[share], begin, end);
        else if (hard && all && v == 1 && edges.bins() <= FEW)
            one_question(outputs, hard, edges, parts[share], begin, end);
        else if (hard && all && v >= 16 && edges.plain())
            many_questions(outputs, hard, edges, parts[share], begin, end);
        else
            any_questions(outputs, hard, soft, counted, edges, parts[share], begin, end);
    });
    for (Whole share = 1; share < threads; ++share) parts[0].join(parts[share]);
    parts[0].carried_to(totals);
}

template <class T>
void scalar_codes(Matrix<T> values, const Edges<T>& edges, std::uint8_t* narrow, Whole* wide, Whole threads) {
    in_shares(values.n, threads, [&](Whole, Whole begin, Whole end) {
        for (Whole i = begin; i < end; ++i)
            for (Whole j = 0; j < values.width; ++j) {
                Whole code = edges.code(values.row(i)[j]), place = i * values.width + j;
                if (narrow)
                    narrow[place] = std::uint8_t(code);
                else
                    wide[place] = code;
            }
    });
}

// Sums of the columns over some rows, or of their squares.
template <class T, bool square>
void column_sums(Matrix<T> values, const Whole* rows, Whole count, Whole* sums, Whole threads) {
    Whole d = values.width;
    std::vector<std::vector<Whole>> parts(threads, std::vector<Whole>(2 * d));
    std::vector<Lined> work(threads, Lined(d));
    in_shares(count, threads, [&](Whole share, Whole begin, Whole end) {
        std::vector<Whole>& limbs = parts[share];
        Bits* units = work[share].data();
        for (Whole start = begin; start < end; start += TOGETHER) {
            Whole stop = std::min(end, start + TOGETHER);
            for (Whole i = start; i < stop; ++i) {
                const T* row = values.row(rows[i]);
                Whole j = 0;
                for (; j + 8 <= d; j += 8) {
                    Doubles x = eight(row + j);
                    (Naturals::at(units + j) + units_and_one(square ? x * x : x)).store(units + j);
                }
                for (; j < d; ++j) {
                    double x = row[j];
                    units[j] += Bits(unit(square ? x * x : x)) + Bits(ONE);
                }
            }
            for (Whole j = 0; j < d; ++j) {
                Bits sum = units[j] - Bits(stop - start) * Bits(ONE);
                limbs[j] += Whole(sum >> 26);
                limbs[d + j] += Whole(sum) & LOW;
            }
            std::fill(units, units + d, 0);
        }
    });
    for (Whole j = 0; j < d; ++j) {
        Whole high = 0, low = 0;
        for (const std::vector<Whole>& part : parts) high += part[j], low += part[d + j];
        sums[j] = high + (low >> 26);
        sums[d + j] = low & LOW;
    }
}

}  // namespace
