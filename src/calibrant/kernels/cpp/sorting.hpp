// Sorting: values of at least 0 with their hits in the lowest bit, by digits; and the distinct ones.
#pragma once
#include "lanes.hpp"

namespace {

template <class T> struct Key;
template <> struct Key<float> { typedef std::uint32_t Bits; };
template <> struct Key<double> { typedef std::uint64_t Bits; };

constexpr int DIGIT = 11;
constexpr Whole DIGITS = 1 << DIGIT;

// The keys in order; gives back which of the two arrays holds them. Digits that all keys share are passed over.
template <class K> K* in_order(K* keys, K* spare, Whole n) {
    constexpr int passes = (8 * sizeof(K) + DIGIT - 1) / DIGIT;
    if (n < 512) {
        std::sort(keys, keys + n);
        return keys;
    }
    std::vector<Whole> counts(passes * DIGITS);
    for (Whole i = 0; i < n; ++i)
        for (int pass = 0; pass < passes; ++pass) ++counts[pass * DIGITS + ((keys[i] >> (pass * DIGIT)) & (DIGITS - 1))];
    for (int pass = 0; pass < passes; ++pass) {
        Whole* next = &counts[pass * DIGITS];
        int shift = pass * DIGIT;
        if (next[(keys[0] >> shift) & (DIGITS - 1)] == n) continue;
        Whole sum = 0;
        for (Whole digit = 0; digit < DIGITS; ++digit) {
            Whole count = next[digit];
            next[digit] = sum;
            sum += count;
        }
        for (Whole i = 0; i < n; ++i) spare[next[(keys[i] >> shift) & (DIGITS - 1)]++] = keys[i];
        std::swap(keys, spare);
    }
    return keys;
}

template <class T> inline typename Key<T>::Bits packed(T value, bool hit) {
    typename Key<T>::Bits bits;
    std::memcpy(&bits, &value, sizeof bits);
    return (bits << 1) | hit;  // without its sign, -0.0 is 0.0
}

template <class T> inline T unpacked(typename Key<T>::Bits key) {
    T value;
    key >>= 1;
    std::memcpy(&value, &key, sizeof value);
    return value;
}

// Keys of one row of values and hits that lie a stride apart, in order.
template <class T> class Ordered {
    typedef typename Key<T>::Bits K;

  public:
    explicit Ordered(Whole n) : both_(2 * n + 1), n_(n) {}
    const K* of(const T* values, Whole stride, const std::uint8_t* hits) {
        K* keys = both_.data();
        for (Whole i = 0; i < n_; ++i) keys[i] = packed(values[i * stride], hits[i] != 0);
        return in_order(keys, keys + n_, n_);
    }

  private:
    Room<K> both_;
    Whole n_;
};

template <class T>
void ordered(Matrix<T> values, const std::uint8_t* hits, T* sorted, Whole* came, Whole threads) {
    Whole n = values.width;
    std::vector<Ordered<T>> work;
    work.reserve(threads);
    for (Whole share = 0; share < threads; ++share) work.emplace_back(n);
    in_shares(values.n, threads, [&](Whole share, Whole begin, Whole end) {
        for (Whole row = begin; row < end; ++row) {
            const auto* keys = work[share].of(values.row(row), 1, hits + row * n);
            for (Whole i = 0; i < n; ++i) {
                sorted[row * n + i] = unpacked<T>(keys[i]);
                came[row * n + i] = Whole(keys[i] & 1);
            }
        }
    });
}

// Whether two keys are of one value.
template <class K> inline bool alike(K one, K other) { return (one ^ other) <= 1; }

// How many distinct values keys in order have, and whether more than 255 are of one value.
template <class K> void count_values(const K* keys, Whole n, Whole* found) {
    constexpr Whole MANY = 255, SOME = 4096;
    Whole values = n > 0;
    bool many = false;
    for (Whole begin = 0; begin < n - 1; begin += SOME) {
        std::uint32_t differ = 0, far = 0;
        Whole end = std::min(begin + SOME, n - 1), last = std::min(end, n - MANY);
        for (Whole i = begin; i < end; ++i) differ += !alike(keys[i], keys[i + 1]);
        for (Whole i = begin; i < last; ++i) far += alike(keys[i], keys[i + MANY]);
        values += differ, many |= far > 0;
    }
    found[0] = values, found[1] = many;
}

// Distinct values of keys in order, their counts and hits.
template <class T, class Count>
void distinct(const typename Key<T>::Bits* keys, Whole n, T* levels, Count* counts, Count* positives) {
    std::uint32_t count = 0, positive = 0;
    for (Whole i = 0, m = 0; i < n; ++i) {
        levels[m] = unpacked<T>(keys[i]);
        counts[m] = Count(++count);
        positives[m] = Count(positive += std::uint32_t(keys[i] & 1));
        std::uint32_t is_last = i + 1 < n && !alike(keys[i], keys[i + 1]);
        m += is_last;
        count &= is_last - 1, positive &= is_last - 1;  // no branch, which nothing would foretell
    }
}

}  // namespace
