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

#if defined(__AVX512F__)
// The last of each value among sixteen keys at once, as long as others follow: how many keys were seen, how many values
// ended, and the count and hits of the one that has not.
struct Ended {
    Whole seen = 0, values = 0;
    std::uint32_t count = 0, positive = 0;
};
inline Ended distinct_by_sixteen(const std::uint32_t* keys, Whole n, float* levels, std::uint8_t* counts,
                                 std::uint8_t* positives) {
    const __m512i none = _mm512_setzero_si512(), one = _mm512_set1_epi32(1);
    const __m512i place = _mm512_add_epi32(_mm512_loadu_si512(COUNTED<std::int32_t>), one);
    __m512i end = none, hits_at_end = none;  // how many keys and hits lie before the value that has not ended
    __m512i hits = none;
    Ended done;
    for (; done.seen + 16 < n; done.seen += 16) {
        const __m512i key = _mm512_loadu_si512(keys + done.seen), next = _mm512_loadu_si512(keys + done.seen + 1);
        const __mmask16 last = _mm512_cmpgt_epu32_mask(_mm512_xor_si512(key, next), one);
        __m512i came = _mm512_and_si512(key, one);
        came = _mm512_add_epi32(came, _mm512_alignr_epi32(came, none, 15));
        came = _mm512_add_epi32(came, _mm512_alignr_epi32(came, none, 14));
        came = _mm512_add_epi32(came, _mm512_alignr_epi32(came, none, 12));
        came = _mm512_add_epi32(hits, _mm512_add_epi32(came, _mm512_alignr_epi32(came, none, 8)));
        hits = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), came);
        if (!last) continue;
        const int ended = __builtin_popcount(last);
        const __mmask16 filled = __mmask16((1u << ended) - 1);
        const __m512i ends = _mm512_maskz_compress_epi32(
            last, _mm512_add_epi32(place, _mm512_set1_epi32(std::int32_t(done.seen))));
        const __m512i came_at_ends = _mm512_maskz_compress_epi32(last, came);
        const __m512i value = _mm512_maskz_compress_epi32(last, _mm512_srli_epi32(key, 1));
        const __m512i count = _mm512_sub_epi32(ends, _mm512_alignr_epi32(ends, end, 15));
        const __m512i positive = _mm512_sub_epi32(came_at_ends, _mm512_alignr_epi32(came_at_ends, hits_at_end, 15));
        _mm512_mask_storeu_epi32(levels + done.values, filled, value);
        _mm_mask_storeu_epi8(counts + done.values, filled, _mm512_cvtepi32_epi8(count));
        _mm_mask_storeu_epi8(positives + done.values, filled, _mm512_cvtepi32_epi8(positive));
        const __m512i at_last = _mm512_set1_epi32(ended - 1);
        end = _mm512_permutexvar_epi32(at_last, ends), hits_at_end = _mm512_permutexvar_epi32(at_last, came_at_ends);
        done.values += ended;
    }
    done.count = std::uint32_t(done.seen) - std::uint32_t(_mm512_cvtsi512_si32(end));
    done.positive = std::uint32_t(_mm512_cvtsi512_si32(_mm512_sub_epi32(hits, hits_at_end)));
    return done;
}
#endif

// Distinct values of keys in order, their counts and hits.
template <class T, class Count>
void distinct(const typename Key<T>::Bits* keys, Whole n, T* levels, Count* counts, Count* positives) {
    std::uint32_t count = 0, positive = 0;
    Whole i = 0, m = 0;
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4 && sizeof(Count) == 1) {
        const Ended done = distinct_by_sixteen(keys, n, levels, counts, positives);
        i = done.seen, m = done.values, count = done.count, positive = done.positive;
    }
#endif
    for (; i < n; ++i) {
        levels[m] = unpacked<T>(keys[i]);
        counts[m] = Count(++count);
        positives[m] = Count(positive += std::uint32_t(keys[i] & 1));
        std::uint32_t is_last = i + 1 < n && !alike(keys[i], keys[i + 1]);
        m += is_last;
        count &= is_last - 1, positive &= is_last - 1;  // no branch, which nothing would foretell
    }
}

}  // namespace
