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

// Distinct values, their counts and hits; how many there are.
template <class T>
Whole distinct(const T* values, Whole stride, const std::uint8_t* hits, Whole n, T* levels, std::uint32_t* counts,
               std::uint32_t* positives) {
    Ordered<T> work(n);
    const auto* keys = work.of(values, stride, hits);
    Whole m = 0;
    for (Whole i = 0; i < n;) {
        auto level = keys[i] >> 1;
        std::uint32_t count = 0, positive = 0;
        for (; i < n && keys[i] >> 1 == level; ++i) ++count, positive += std::uint32_t(keys[i] & 1);
        levels[m] = unpacked<T>(level << 1), counts[m] = count, positives[m] = positive;
        ++m;
    }
    return m;
}

}  // namespace
