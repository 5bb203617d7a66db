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

#if defined(__AVX512F__)
// Some rows of one question: outputs, and numbers of each that are added up; zeros fill it up. Numbers are units, and
// marks: 1 each with 2^32 more where it came true. Together they are one number, where what lies beyond the first edge
// is 2^-8 at least and was float32: its units end in 21 zeros, which leaves room for both counts above their sum.
template <class T, bool together> struct Stretch {
    static constexpr Whole ROWS = 512;
    static constexpr int KINDS = together ? 1 : 2, SPARE = 21, COUNTS = together ? 41 : 0, HITS = together ? 51 : 32;
    alignas(64) T outputs[ROWS];
    alignas(64) Bits numbers[KINDS][ROWS];
    Bits units = 0, marks = 0;  // of all rows
    Whole filled = 0;

    template <class Target> void fill(Matrix<T> from, const Target* targets, Whole begin, Whole end) {
        const Whole rows = end - begin;
        Naturals all = Bits(0), all_marks = Bits(0);
        Whole row = 0;
        if (from.stride == 1)
            for (; row + 8 <= rows; row += 8) {
                fetch_ahead(from.row(begin + row)), fetch_ahead(targets + begin + row);
                add(row, from.row(begin + row), hits_of(targets + begin + row, 255), 255, all, all_marks);
            }
        for (; row < rows; row += 8) {
            const Whole some = std::min<Whole>(rows - row, 8);
            const __mmask8 there = __mmask8((1 << some) - 1);
            T values[8] = {};
            for (Whole i = 0; i < some; ++i) values[i] = *from.row(begin + row + i);
            add(row, values, hits_of(targets + begin + row, there), there, all, all_marks);
        }
        filled = row, units = added(all), marks = added(all_marks);
    }
    static Whole count(Bits mark) { return Whole(mark >> COUNTS & 1023); }
    static Whole hits(Bits mark) { return Whole(mark >> HITS); }

  private:
    void add(Whole row, const T* values, __mmask8 hits, __mmask8 there, Naturals& all, Naturals& all_marks) {
        const __m512i miss = _mm512_set1_epi64(Whole(1) << COUNTS);
        const __m512i hit = _mm512_set1_epi64((Whole(1) << HITS) + (Whole(1) << COUNTS));
        Naturals mark, unit = units_and_one(eight(values)) - Bits(ONE);
        mark.part[0] = (Naturals::Vector)_mm512_maskz_mov_epi64(there, _mm512_mask_blend_epi64(hits, miss, hit));
        all += unit, all_marks += mark;
        std::memcpy(outputs + row, values, 8 * sizeof(T));
        (together ? moved_down<SPARE>(unit) + mark : unit).store(numbers[0] + row);
        if (!together) mark.store(numbers[KINDS - 1] + row);
    }
    static __mmask8 hits_of(const std::int8_t* targets, __mmask8 there) {
        return __mmask8(~_mm_movepi8_mask(_mm_maskz_loadu_epi8(there, targets)));
    }
    static __mmask8 hits_of(const Whole* targets, __mmask8 there) {
        return __mmask8(~_mm512_movepi64_mask(_mm512_maskz_loadu_epi64(there, targets)));
    }
};

// Which of eight values lie beyond an edge.
template <bool right> inline __mmask8 beyond(const float* values, float edge) {
    return _mm256_cmp_ps_mask(_mm256_loadu_ps(values), _mm256_set1_ps(edge), right ? _CMP_GT_OQ : _CMP_GE_OQ);
}
template <bool right> inline __mmask8 beyond(const double* values, double edge) {
    return _mm512_cmp_pd_mask(_mm512_loadu_pd(values), _mm512_set1_pd(edge), right ? _CMP_GT_OQ : _CMP_GE_OQ);
}
inline void add_where(Naturals& sum, __mmask8 there, Naturals number) {
    const __m512i before = (__m512i)sum.part[0];
    sum.part[0] = (Naturals::Vector)_mm512_mask_add_epi64(before, there, before, (__m512i)number.part[0]);
}

// Sums of the numbers of what lies beyond each of some edges, which are kept in registers.
template <int count, bool right, class T, bool together>
void add_beyond(const Stretch<T, together>& rows, const T* edges, Bits* units, Bits* marks) {
    typedef Stretch<T, together> Rows;
    Naturals sums[count], mark_sums[count];
    ALONGSIDE(sums[i] = mark_sums[i] = Bits(0))
    for (Whole row = 0; row < rows.filled; row += 8) {
        const Naturals number = Naturals::at(rows.numbers[0] + row), mark = Naturals::at(rows.numbers[Rows::KINDS - 1] + row);
        ALONGSIDE(const __mmask8 there = beyond<right>(rows.outputs + row, edges[i]); add_where(sums[i], there, number);
                  if (!together) add_where(mark_sums[i], there, mark))
    }
    ALONGSIDE(units[i] = added(sums[i]); marks[i] = together ? units[i] : added(mark_sums[i]))
    if (together) ALONGSIDE(units[i] = (units[i] & ((Bits(1) << Rows::COUNTS) - 1)) << Rows::SPARE)
}

constexpr Whole AT_ONCE = 7;  // edges whose sums stay in registers

// One question of few bins, hard labels: what lies beyond each edge; bins are differences of those sums.
template <bool right, bool together, class T, class Target>
void few_bins(Matrix<T> outputs, const Target* targets, const Edges<T>& edges, Sums& sums, Whole begin, Whole end) {
    typedef Stretch<T, together> Rows;
    const Whole bins = edges.bins(), groups = (bins + AT_ONCE - 2) / AT_ONCE;
    std::vector<T> borders(groups * AT_ONCE, std::numeric_limits<T>::infinity());
    for (Whole place = 0; place + 1 < bins; ++place) borders[place] = edges.edge(place);
    std::vector<Bits> units(borders.size() + 2), marks(borders.size() + 2);  // the last stay 0
    Rows rows;
    for (; begin < end; begin += Rows::ROWS) {
        rows.fill(outputs, targets, begin, std::min(end, begin + Rows::ROWS));
        units[0] = rows.units, marks[0] = rows.marks;
        for (Whole group = 0; group < groups; ++group) {
            const Whole first = group * AT_ONCE;
            add_beyond<AT_ONCE, right>(rows, &borders[first], &units[first + 1], &marks[first + 1]);
        }
        for (Whole code = 0; code < bins; ++code) {
            sums.add_many(code, Rows::count(marks[code]) - Rows::count(marks[code + 1]), units[code] - units[code + 1]);
            sums.happened_often(code, Rows::hits(marks[code]) - Rows::hits(marks[code + 1]));
        }
    }
}
#endif

// One question, hard labels: four tables in turn, so that no sum waits for the one before.
template <class T, class Target>
void one_question(Matrix<T> outputs, const Target* targets, const Edges<T>& edges, Sums& sums, Whole begin, Whole end) {
#if defined(__AVX512F__)  // with smaller registers, tables are faster
    if (edges.few() && edges.bins() <= 2 * AT_ONCE + 1) {
        if constexpr (sizeof(T) == 4)
            if (edges.first() >= T(1) / 256)
                return edges.right() ? few_bins<true, true>(outputs, targets, edges, sums, begin, end)
                                     : few_bins<false, true>(outputs, targets, edges, sums, begin, end);
        return edges.right() ? few_bins<true, false>(outputs, targets, edges, sums, begin, end)
                             : few_bins<false, false>(outputs, targets, edges, sums, begin, end);
    }
#endif
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
            fetch_ahead(outputs.row(i)), fetch_ahead(targets + i);
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
    for (Whole j = 0; j < BLOCK; j += L) {
        fetch_ahead(row + j);
        beyond |= lanes_of(Pack<T>::at(row + j) >= first) << j;
    }
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
