// Cuts: totals of the smallest values of each column, up to given ranks, without sorting the column.
#pragma once
#include "sorting.hpp"

namespace {

typedef unsigned __int128 Large;

// What is known at a cut of a column: the sum of the values before it, and the group of ties that it falls in.
struct Cut {
    Large units = 0;
    Whole before = 0, hits = 0, inside = 0, size = 0;
    double at = 0, last = 0;
};

// Values of at least 0 are in the order of their bits, which are their keys; without its sign, -0.0 is 0.0.
template <class T> inline typename Key<T>::Bits key_of(T value) { return packed(value, false) >> 1; }
template <class K> using Value = typename std::conditional<sizeof(K) == 4, float, double>::type;
template <class K> inline Value<K> value_of(K key) { return unpacked<Value<K>>(K(key << 1)); }

// How many keys share their leading bits, and the sum of their units.
template <class K> struct Bucket {
    static constexpr int SHIFT = 47;
    static constexpr Whole COUNT = 1 << 15, MANY = 1 << 16;
    Bits sum = 0;  // less 2^64 as often as need be
    Bits keys = 0;

    static constexpr bool exact(Whole) { return true; }
    void add(K key) { sum += Bits(unit(value_of(key))), ++keys; }
    Whole count() const { return Whole(keys); }
    // Units of a bucket differ by a 32nd of 2^52 at most: those of many keys are known but for less than 2^64.
    Large units(Whole place) const {
        Large least = Large(keys) * Large(unit(value_of(K(place) << SHIFT)));
        return least + (sum - Bits(least));
    }
};

// Keys of float32 share their exponent: the sum of their significands tells that of units, from 2^-29 on.
template <> struct Bucket<std::uint32_t> {
    static constexpr int SHIFT = 18;
    static constexpr Whole COUNT = 1 << 12, MANY = 1 << 16;
    Bits both = 0;  // how many keys above 2^46, their sum below

    static constexpr bool exact(Whole place) { return place >> 5 >= 127 - 29; }
    void add(std::uint32_t key) { both += (Bits(1) << 46) + key; }
    Whole count() const { return Whole(both >> 46); }
    Large units(Whole place) const {
        const Bits significands = (both & ((Bits(1) << 46) - 1)) - Bits(count()) * Bits(((place >> 5) - 1) << 23);
        return Large(significands) << ((place >> 5) - (127 - 29));
    }
};

// Which buckets are open: a bit for each of those from the first open one on, as far as two registers reach.
class Window {
  public:
    static constexpr Whole REACH = 1024;

    void open(Whole place) {
        if (!any_) any_ = true, first_ = place, std::fill(bits_, bits_ + REACH / 32, 0);
        whole_ = place - first_ < REACH;
        if (whole_) bits_[(place - first_) / 32] |= std::uint32_t(1) << (place - first_) % 32;
    }
    void close() { any_ = false, whole_ = true; }

    // Keys of open buckets from so many, as many as stand in whole registers; how many of which were looked at.
#if defined(__AVX512F__)
    template <int shift> Whole gather(const std::uint32_t* keys, Whole n, std::uint32_t* into, Whole& count) const {
        Whole i = 0;
        const __m512i low = _mm512_loadu_si512(bits_), high = _mm512_loadu_si512(bits_ + 16);
        const __m512i first = _mm512_set1_epi32(int(first_)), reach = _mm512_set1_epi32(int(REACH));
        for (; any_ && whole_ && i + 16 <= n; i += 16) {
            const __m512i key = _mm512_loadu_si512(keys + i);
            const __m512i place = _mm512_sub_epi32(_mm512_srli_epi32(key, shift), first);
            const __m512i word = _mm512_permutex2var_epi32(low, _mm512_srli_epi32(place, 5), high);
            const __m512i bit = _mm512_srlv_epi32(word, _mm512_and_si512(place, _mm512_set1_epi32(31)));
            const __mmask16 there = _mm512_mask_test_epi32_mask(_mm512_cmplt_epu32_mask(place, reach), bit, _mm512_set1_epi32(1));
            _mm512_storeu_si512(into + count, _mm512_maskz_compress_epi32(there, key));
            count += __builtin_popcount(there);
        }
        return i;
    }
#endif
    template <int shift, class K> Whole gather(const K*, Whole, K*, Whole&) const { return 0; }

  private:
    bool any_ = false, whole_ = true;
    Whole first_ = 0;
    std::uint32_t bits_[REACH / 32] = {};
};

template <class K> class Column {
    typedef Bucket<K> Shared;
    static constexpr Whole FEW = 1024, MANY_CUTS = 64;  // where a column is sooner put in order
    struct Total {
        Large units = 0;
        Whole count = 0, hits = 0;
    };
    struct Held {  // some keys, one behind the other
        K* first = nullptr;
        Whole count = 0;
        K* begin() const { return first; }
        K* end() const { return first + count; }
    };
    struct Opened {  // a bucket that holds a cut: its keys and those of its hits, and what lies before it
        Whole first = 0, hits = 0, cuts = 0;
        Large units = 0;
        Held keys, hit_keys;
        bool sorted = false;
    };

  public:
    // Keys of values, and of those that are hits; ranks that increase.
    void find(const K* keys, Whole n, const std::vector<K>& hits, const Whole* cuts, Whole count, Cut* found) {
        if (n <= FEW || count > MANY_CUTS) return find_in_order(keys, n, hits, cuts, count, found);
        opened_.clear();
        total(keys, n, hits);
        open(cuts, count);
        gather(keys, n, &Opened::keys, keys_);
        gather(hits.data(), Whole(hits.size()), &Opened::hit_keys, hit_keys_);
        for (Whole place = 0; place < count; ++place) found[place] = cut(cuts[place], n);
    }

  private:
    std::vector<Shared> buckets_;
    std::vector<Total> totals_ = std::vector<Total>(Shared::COUNT);
    std::vector<std::int32_t> home_ = std::vector<std::int32_t>(Shared::COUNT, -1);
    std::vector<Whole> filled_, open_;  // buckets
    Window window_;
    std::vector<Opened> opened_;
    Room<K> keys_, hit_keys_;  // of all buckets that are open
    Room<K> gathered_, spare_;
    std::vector<K*> next_;

    static Whole bucket_of(K key) { return Whole(key >> Shared::SHIFT); }

    void total(const K* keys, Whole n, const std::vector<K>& hits) {
        for (Whole place : filled_) totals_[place] = Total();
        filled_.clear();
        for (Whole start = 0; start < n; start += Shared::MANY) {
            Whole stop = std::min(n, start + Shared::MANY);
            buckets_.assign(Shared::COUNT, Shared());
            Shared* buckets = buckets_.data();
            _Pragma("GCC unroll 4") for (Whole i = start; i < stop; ++i) buckets[bucket_of(keys[i])].add(keys[i]);
            bool rough = false;
            for (Whole place = 0; place < Shared::COUNT; ++place) {
                Whole count = buckets_[place].count();
                if (!count) continue;
                if (!totals_[place].count) filled_.push_back(place);
                totals_[place].count += count;
                if (Shared::exact(place))
                    totals_[place].units += buckets_[place].units(place);
                else
                    rough = true;
            }
            for (Whole i = start; i < stop && rough; ++i)
                if (!Shared::exact(bucket_of(keys[i])))
                    totals_[bucket_of(keys[i])].units += Large(unit(value_of(keys[i])));
        }
        if (n > Shared::MANY) std::sort(filled_.begin(), filled_.end());
        for (K key : hits) ++totals_[bucket_of(key)].hits;
    }

    void open(const Whole* cuts, Whole count) {
        for (Whole place : open_) home_[place] = -1;
        open_.clear(), window_.close();
        Total before;
        Whole first = 0, last = 0;  // cuts that a bucket holds need to know a rank of it: their own, or the one before it
        for (Whole place : filled_) {
            const Total& total = totals_[place];
            const Whole end = before.count + total.count;
            while (first < count && cuts[first] < before.count) ++first;
            while (last < count && cuts[last] <= end) ++last;
            if (const Whole held = last - first) {
                home_[place] = std::int32_t(opened_.size());
                open_.push_back(place), window_.open(place);
                opened_.push_back(Opened());
                Opened& opened = opened_.back();
                opened.first = before.count, opened.hits = before.hits, opened.units = before.units, opened.cuts = held;
                opened.keys.count = total.count, opened.hit_keys.count = total.hits;
            }
            before.count = end, before.hits += total.hits, before.units += total.units;
        }
    }

    // The keys of the buckets that are open, first all of them: to guess for each would be to guess wrongly.
    void gather(const K* keys, Whole n, Held Opened::* part, Room<K>& into) {
        gathered_.hold(n);
        K* gathered = gathered_.data();
        const std::int32_t* home = home_.data();
        Whole count = 0, i = window_.template gather<Shared::SHIFT>(keys, n, gathered, count);
        _Pragma("GCC unroll 4") for (; i < n; ++i) {
            gathered[count] = keys[i];
            count += home[bucket_of(keys[i])] >= 0;
        }
        into.hold(count);
        next_.clear();
        K* first = into.data();
        for (Opened& each : opened_) (each.*part).first = first, next_.push_back(first), first += (each.*part).count;
        for (i = 0; i < count; ++i) *next_[home[bucket_of(gathered[i])]]++ = gathered[i];
    }

    Opened& holder(Whole rank) {
        auto behind = [](Whole rank, const Opened& opened) { return rank < opened.first; };
        return *(std::upper_bound(opened_.begin(), opened_.end(), rank, behind) - 1);
    }

    // The key of a rank. Keys of buckets that hold several cuts are put in order; of others, the next bits are counted.
    K key_at(Opened& home, Whole rank) {
        const Whole held = home.keys.count;
        rank -= home.first;
        spare_.hold(held);
        K* spare = spare_.data();
        if (home.cuts > 2) {
            if (!home.sorted && in_order(home.keys.first, spare, held) == spare)
                std::copy(spare, spare + held, home.keys.first);
            home.sorted = true;
            return home.keys.first[rank];
        }
        constexpr Whole NEXT = 256;
        const auto next_of = [](K key) { return Whole(key >> (Shared::SHIFT - 8)) % NEXT; };
        Whole counts[NEXT] = {}, next = 0, alike = 0;
        for (K key : home.keys) ++counts[next_of(key)];
        while (rank >= counts[next]) rank -= counts[next++];
        for (K key : home.keys) {
            spare[alike] = key;
            alike += next_of(key) == next;
        }
        std::nth_element(spare, spare + rank, spare + alike);
        return spare[rank];
    }

    // All keys in order, and sums from cut to cut.
    void find_in_order(const K* keys, Whole n, const std::vector<K>& hits, const Whole* cuts, Whole count, Cut* found) {
        const auto sorted = [&](const K* begin, Whole held, Room<K>& into) {
            into.hold(held), spare_.hold(held);
            std::copy(begin, begin + held, into.data());
            K* first = in_order(into.data(), spare_.data(), held);
            return first == into.data() ? first : std::copy(first, first + held, into.data()) - held;
        };
        const Whole all_hits = Whole(hits.size());
        const K *first = sorted(keys, n, keys_), *hit = sorted(hits.data(), all_hits, hit_keys_);
        const K *below = first, *hit_below = hit;
        Large units = 0;
        for (Whole place = 0; place < count; ++place) {
            Cut& cut = found[place] = Cut();
            if (!n) continue;
            const Whole rank = cuts[place];
            const K key = first[std::min(rank, n - 1)];
            for (; *below < key; ++below) units += Large(unit(value_of(*below)));
            hit_below = std::lower_bound(hit_below, hit + all_hits, key);
            cut.size = std::upper_bound(below, first + n, key) - below;
            cut.hits = std::upper_bound(hit_below, hit + all_hits, key) - hit_below;
            cut.before = hit_below - hit, cut.inside = rank - (below - first);
            cut.units = units + Large(cut.inside) * Large(unit(value_of(key)));
            cut.at = value_of(key), cut.last = value_of(cut.inside || !rank ? key : below[-1]);
        }
    }

    Cut cut(Whole rank, Whole n) {
        Cut cut;
        if (!n) return cut;
        Opened& home = holder(std::min(rank, n - 1));
        const K key = key_at(home, std::min(rank, n - 1));
        K largest = 0;
        Whole below = 0;
        cut.units = home.units, cut.before = home.hits;
        const K* keys = home.keys.first;
        for (Whole start = 0, held = home.keys.count; start < held; start += TOGETHER) {
            Bits units = 0;
            for (Whole i = start; i < std::min(held, start + TOGETHER); ++i) {  // without a branch
                const bool under = keys[i] < key;
                units += Bits(unit(value_of(keys[i]))) & (Bits(0) - under);
                below += under, largest = std::max(largest, under ? keys[i] : K(0)), cut.size += keys[i] == key;
            }
            cut.units += units;
        }
        for (K each : home.hit_keys) cut.before += each < key, cut.hits += each == key;
        cut.inside = rank - (home.first + below);
        cut.units += Large(cut.inside) * Large(unit(value_of(key)));
        if (!below && !cut.inside && rank) {
            const Opened& before = holder(rank - 1);
            largest = *std::max_element(before.keys.begin(), before.keys.end());
        }
        cut.at = value_of(key), cut.last = value_of(cut.inside || !rank ? key : largest);
        return cut;
    }
};

// The key of a value that no bucket is for, which is 2 at least, is the last of all.
template <class K> constexpr K LAST = K(Bits(Bucket<K>::COUNT) << Bucket<K>::SHIFT) - 1;

constexpr Whole PANEL = 32;  // columns that are turned at once
constexpr Whole SQUARE = 8;

// A square of keys, turned: blocks beside the diagonal change places, those of one, of two, of four.
inline void turn_square(const float* from, Whole stride, std::uint32_t* into, Whole n) {
    typedef std::uint32_t Row __attribute__((vector_size(4 * SQUARE)));
    Row rows[SQUARE];
    for (Whole i = 0; i < SQUARE; ++i) std::memcpy(&rows[i], from + i * stride, sizeof rows[i]);
    const Row first[3] = {{0, 8, 2, 10, 4, 12, 6, 14}, {0, 1, 8, 9, 4, 5, 12, 13}, {0, 1, 2, 3, 8, 9, 10, 11}};
    const Row second[3] = {{1, 9, 3, 11, 5, 13, 7, 15}, {2, 3, 10, 11, 6, 7, 14, 15}, {4, 5, 6, 7, 12, 13, 14, 15}};
    _Pragma("GCC unroll 3") for (int stage = 0; stage < 3; ++stage)
        _Pragma("GCC unroll 8") for (Whole i = 0; i < SQUARE; ++i) {
            if (i & (1 << stage)) continue;
            Row above = rows[i], below = rows[i + (1 << stage)];
            rows[i] = __builtin_shuffle(above, below, first[stage]);
            rows[i + (1 << stage)] = __builtin_shuffle(above, below, second[stage]);
        }
    for (Whole c = 0; c < SQUARE; ++c) {
        rows[c] &= 0x7FFFFFFF;  // as key_of does
        rows[c] = rows[c] < LAST<std::uint32_t> ? rows[c] : LAST<std::uint32_t> - Row{};
        std::memcpy(into + c * n, &rows[c], sizeof rows[c]);
    }
}
inline void turn_square(const double* from, Whole stride, std::uint64_t* into, Whole n) {
    for (Whole c = 0; c < SQUARE; ++c)
        for (Whole i = 0; i < SQUARE; ++i) into[c * n + i] = std::min(key_of(from[i * stride + c]), LAST<std::uint64_t>);
}

// Keys of some columns, one column behind the other.
template <class T> void turn(Matrix<T> values, Whole first, Whole width, typename Key<T>::Bits* into) {
    typedef typename Key<T>::Bits K;
    constexpr Whole ahead = 6 * SQUARE;
    Whole n = values.n, i = 0, c = 0;
    for (; i + SQUARE <= n; i += SQUARE) {
        for (Whole next = i + ahead; next < std::min(n, i + ahead + SQUARE); ++next) {
            const T* row = values.row(next) + first;
            for (c = 0; c < width; c += Whole(64 / sizeof(T))) __builtin_prefetch(row + c);
            __builtin_prefetch(row + width - 1);
        }
        for (c = 0; c + SQUARE <= width; c += SQUARE)
            turn_square(values.row(i) + first + c, values.stride, into + c * n + i, n);
        for (; c < width; ++c)
            for (Whole row = i; row < i + SQUARE; ++row) into[c * n + row] = std::min(key_of(values.row(row)[first + c]), LAST<K>);
    }
    for (; i < n; ++i)
        for (c = 0; c < width; ++c) into[c * n + i] = std::min(key_of(values.row(i)[first + c]), LAST<K>);
}

// Six rows of whole numbers for each column and cut: two limbs of the sum, then the group of ties; and two of values.
template <class T, class Y>
void column_cuts(Matrix<T> values, const Y* targets, const Whole* cuts, Whole count, Whole* wholes, double* ends,
                 Whole threads) {
    typedef typename Key<T>::Bits K;
    Whole n = values.n, v = values.width, cells = v * count, lead = entries_to_line(values);
    Whole panels = (v - lead + PANEL - 1) / PANEL + (lead > 0);
    const auto edge = [&](Whole panel) { return std::clamp(lead + (panel - (lead > 0)) * PANEL, Whole(0), v); };
    std::vector<Room<K>> keys;
    for (Whole share = 0; share < threads; ++share) keys.emplace_back(std::min(PANEL, v) * n + 1);
    in_shares(panels, threads, [&](Whole share, Whole begin, Whole end) {
        Column<K> column;
        std::vector<Cut> found(count);
        std::vector<std::vector<K>> hits(PANEL);
        K* turned = keys[share].data();
        for (Whole panel = begin; panel < end; ++panel) {
            Whole first = edge(panel), width = edge(panel + 1) - first;
            turn(values, first, width, turned);
            for (std::vector<K>& each : hits) each.clear();
            if (width == 1) hits[0].reserve(std::count(targets, targets + n, Y(first)));
            for (Whole start = 0; start < n; start += TOGETHER) {
                Whole rows[TOGETHER], some = 0;
                for (Whole i = start; i < std::min(n, start + TOGETHER); ++i) {  // without a branch
                    rows[some] = i;
                    some += Bits(Whole(targets[i]) - first) < Bits(width);
                }
                for (Whole i = 0; i < some; ++i) {
                    const Whole c = targets[rows[i]] - first;
                    hits[c].push_back(turned[c * n + rows[i]]);
                }
            }
            for (Whole c = 0; c < width; ++c) {
                column.find(turned + c * n, n, hits[c], cuts, count, found.data());
                for (Whole place = 0; place < count; ++place) {
                    const Cut& cut = found[place];
                    Whole cell = (first + c) * count + place;
                    const Whole each[6] = {Whole(cut.units >> 26), Whole(cut.units) & LOW, cut.before, cut.hits,
                                           cut.inside,             cut.size};
                    for (int row = 0; row < 6; ++row) wholes[row * cells + cell] = each[row];
                    ends[cell] = cut.at, ends[cells + cell] = cut.last;
                }
            }
        }
    });
}

}  // namespace
