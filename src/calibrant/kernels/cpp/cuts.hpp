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

template <class K> class Column {
    static constexpr int SHIFT = sizeof(K) == 4 ? 19 : 48;  // keys of 1 are below 4,096 and 32,768 buckets
    static constexpr Whole BUCKETS = sizeof(K) == 4 ? 1 << 12 : 1 << 15;
    static constexpr Whole FEW = 1024;
    typedef typename std::conditional<sizeof(K) == 4, float, double>::type T;
    static constexpr Whole MANY = 1 << 16;
    struct Bucket {       // of up to MANY keys
        Bits units = 0;   // less 2^64 as often as need be
        Bits counts = 0;  // hits above 2^32, all below
    };
    struct Total {
        Large units = 0;
        Whole count = 0, hits = 0;

        // Units of a bucket differ by a 32nd of 2^52 at most: those of many keys are known but for less than 2^64.
        void add(const Bucket& bucket, Whole place) {
            Whole more = Whole(bucket.counts & 0xFFFFFFFF);
            Large least = Large(more) * Large(unit(unpacked<T>(K(place) << SHIFT)));
            units += least + (bucket.units - Bits(least));
            count += more, hits += Whole(bucket.counts >> 32);
        }
    };
    struct Opened {  // a bucket that holds a cut: its keys in order, and what lies before it
        Whole first, hits;
        Large units;
        std::vector<K> keys;
    };

  public:
    // Keys of values with their hits in the lowest bit; ranks that increase.
    void find(const K* keys, Whole n, const Whole* cuts, Whole count, Cut* found) {
        opened_.clear();
        if (n <= FEW)
            opened_.push_back({0, 0, 0, std::vector<K>(keys, keys + n)});
        else
            open(keys, n, cuts, count);
        for (Opened& each : opened_) std::sort(each.keys.begin(), each.keys.end());
        for (Whole place = 0; place < count; ++place) found[place] = cut(cuts[place], n);
    }

  private:
    std::vector<Bucket> buckets_;
    std::vector<Total> totals_;
    std::vector<std::int32_t> home_;
    std::vector<Opened> opened_;

    static Whole bucket_of(K key) { return std::min<Whole>(Whole(key >> SHIFT), BUCKETS - 1); }

    void open(const K* keys, Whole n, const Whole* cuts, Whole count) {
        totals_.assign(BUCKETS, Total());
        home_.assign(BUCKETS, -1);
        for (Whole start = 0; start < n; start += MANY) {
            buckets_.assign(BUCKETS, Bucket());
            for (Whole i = start; i < std::min(n, start + MANY); ++i) {
                Bucket& bucket = buckets_[bucket_of(keys[i])];
                bucket.units += Bits(unit(unpacked<T>(keys[i])));
                bucket.counts += (Bits(keys[i] & 1) << 32) + 1;
            }
            for (Whole place = 0; place < BUCKETS; ++place)
                if (buckets_[place].counts) totals_[place].add(buckets_[place], place);
        }
        Opened before{0, 0, 0, {}};
        for (Whole place = 0; place < BUCKETS; ++place) {
            const Total& total = totals_[place];
            Whole end = before.first + total.count;
            if (total.count && held(cuts, count, n, before.first, end)) {
                home_[place] = std::int32_t(opened_.size());
                opened_.push_back(before);
                opened_.back().keys.reserve(total.count);
            }
            before.first = end, before.hits += total.hits, before.units += total.units;
        }
        for (Whole i = 0; i < n; ++i) {
            std::int32_t home = home_[bucket_of(keys[i])];
            if (home >= 0) opened_[home].keys.push_back(keys[i]);
        }
    }

    // Whether a cut needs to know a rank from first to end: its own, or the one before it.
    static bool held(const Whole* cuts, Whole count, Whole n, Whole first, Whole end) {
        for (const Whole* cut = std::lower_bound(cuts, cuts + count, first); cut < cuts + count; ++cut) {
            if (*cut > end) return false;
            if ((*cut < end || *cut == n) || *cut - 1 >= first) return true;
        }
        return false;
    }

    const Opened& holder(Whole rank) const {
        std::size_t place = 0;
        while (place + 1 < opened_.size() && opened_[place + 1].first <= rank) ++place;
        return opened_[place];
    }

    Cut cut(Whole rank, Whole n) const {
        Cut cut;
        if (!n) return cut;
        Whole last = std::max<Whole>(rank - 1, 0), at = std::min(rank, n - 1);
        const Opened &home = holder(at), &before = holder(last);
        K key = home.keys[at - home.first] >> 1;
        auto begin = home.keys.begin(), end = home.keys.end();
        auto low = std::lower_bound(begin, end, K(key << 1)), high = std::upper_bound(begin, end, K((key << 1) | 1));
        cut.units = home.units, cut.before = home.hits;
        for (auto each = begin; each < begin + (rank - home.first); ++each) cut.units += Large(unit(unpacked<T>(*each)));
        for (auto each = begin; each < low; ++each) cut.before += Whole(*each & 1);
        for (auto each = low; each < high; ++each) cut.hits += Whole(*each & 1);
        cut.inside = rank - (home.first + (low - begin)), cut.size = high - low;
        cut.at = unpacked<T>(key << 1), cut.last = unpacked<T>(before.keys[last - before.first]);
        return cut;
    }
};

constexpr Whole PANEL = 32;  // columns that are turned at once: two lines of the cache for float32

// Six rows of whole numbers for each column and cut: two limbs of the sum, then the group of ties; and two of values.
template <class T>
void column_cuts(Matrix<T> values, const Whole* targets, const Whole* cuts, Whole count, Whole* wholes, double* ends,
                 Whole threads) {
    typedef typename Key<T>::Bits K;
    Whole n = values.n, v = values.width, panels = (v + PANEL - 1) / PANEL, cells = v * count;
    std::vector<std::vector<K>> keys(threads, std::vector<K>(std::min(PANEL, v) * n));
    in_shares(panels, threads, [&](Whole share, Whole begin, Whole end) {
        Column<K> column;
        std::vector<Cut> found(count);
        K* turned = keys[share].data();
        for (Whole first = begin * PANEL; first < std::min(end * PANEL, v); first += PANEL) {
            Whole width = std::min(PANEL, v - first);
            for (Whole i = 0; i < n; ++i)
                for (Whole c = 0; c < width; ++c) turned[c * n + i] = packed(values.row(i)[first + c], false);
            for (Whole i = 0; i < n; ++i)
                if (targets[i] >= first && targets[i] < first + width) turned[(targets[i] - first) * n + i] |= 1;
            for (Whole c = 0; c < width; ++c) {
                column.find(turned + c * n, n, cuts, count, found.data());
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
