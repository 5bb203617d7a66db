// Lanes: eight doubles or sixteen floats at once, so that sums have one order whatever instructions the machine has.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

using Whole = std::int64_t;
using Bits = std::uint64_t;

#if defined(__AVX512F__)
constexpr int NATIVE = 64;
#elif defined(__AVX2__)
constexpr int NATIVE = 32;
#else
constexpr int NATIVE = 16;
#endif
constexpr int PARTS = 64 / NATIVE;

// A statement for each register, written out, lest the parts be kept in memory.
#if defined(__AVX512F__)
#define EACH(statement) { constexpr int i = 0; statement; }
#elif defined(__AVX2__)
#define EACH(statement) { { constexpr int i = 0; statement; } { constexpr int i = 1; statement; } }
#else
#define EACH(statement)                                                 \
    { { constexpr int i = 0; statement; } { constexpr int i = 1; statement; } \
      { constexpr int i = 2; statement; } { constexpr int i = 3; statement; } }
#endif

// 64 bytes of numbers, held in as many registers as they need.
template <class E> struct Pack {
    typedef E Vector __attribute__((vector_size(NATIVE)));
    static constexpr int each = NATIVE / sizeof(E), count = 64 / sizeof(E);
    Vector part[PARTS];

    Pack() = default;
    Pack(E value) {
        EACH(part[i] = Vector{} + value)
    }
    E operator[](int lane) const { return part[lane / each][lane % each]; }
    void set(int lane, E value) { part[lane / each][lane % each] = value; }
    static Pack at(const E* from) {
        Pack pack;
        EACH(std::memcpy(&pack.part[i], from + i * each, NATIVE))
        return pack;
    }
    void store(E* into) const { EACH(std::memcpy(into + i * each, &part[i], NATIVE)) }
};

typedef Pack<float> Floats;
typedef Pack<double> Doubles;
typedef Pack<std::int32_t> Ints;
typedef Pack<std::int64_t> Wholes;
typedef Pack<std::uint64_t> Naturals;       // they wrap
typedef Pack<std::uint32_t> ShortNaturals;

#define OPERATOR(sign)                                                      \
    template <class E> inline Pack<E> operator sign(Pack<E> a, Pack<E> b) { \
        EACH(a.part[i] = a.part[i] sign b.part[i])                          \
        return a;                                                           \
    }                                                                       \
    template <class E> inline Pack<E> operator sign(Pack<E> a, E b) { return a sign Pack<E>(b); }
OPERATOR(+) OPERATOR(-) OPERATOR(*) OPERATOR(/) OPERATOR(&) OPERATOR(|)
#undef OPERATOR
template <class E> inline Pack<E>& operator+=(Pack<E>& a, Pack<E> b) { return a = a + b; }

template <class E> struct Mask;
template <> struct Mask<float> { typedef Ints Pack; };
template <> struct Mask<double> { typedef Wholes Pack; };
template <> struct Mask<std::int32_t> { typedef Ints Pack; };
template <> struct Mask<std::int64_t> { typedef Wholes Pack; };

#define COMPARISON(sign)                                                                     \
    template <class E> inline typename Mask<E>::Pack operator sign(Pack<E> a, Pack<E> b) {   \
        typename Mask<E>::Pack mask;                                                         \
        EACH(mask.part[i] = (typename Mask<E>::Pack::Vector)(a.part[i] sign b.part[i]))      \
        return mask;                                                                         \
    }
COMPARISON(<) COMPARISON(>) COMPARISON(>=) COMPARISON(==) COMPARISON(!=)
#undef COMPARISON

template <class M, class E> inline Pack<E> chosen(M mask, Pack<E> yes, Pack<E> no) {
    EACH(yes.part[i] = mask.part[i] ? yes.part[i] : no.part[i])
    return yes;
}

template <class To, class E> inline To same_bits(Pack<E> from) {
    To to;
    EACH(to.part[i] = (typename To::Vector)from.part[i])
    return to;
}

template <int bits, class E> inline Pack<E> moved_up(Pack<E> a) {
    EACH(a.part[i] = a.part[i] << bits)
    return a;
}
template <int bits, class E> inline Pack<E> moved_down(Pack<E> a) {
    EACH(a.part[i] = a.part[i] >> bits)
    return a;
}

template <class E> alignas(64) constexpr E COUNTED[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Eight values as doubles, whatever they are stored as.
inline Doubles eight(const double* from) { return Doubles::at(from); }
inline Doubles eight(const float* from) {
    Doubles doubles;
#if defined(__AVX512F__)
    doubles.part[0] = _mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(__AVX2__)
    EACH(doubles.part[i] = _mm256_cvtps_pd(_mm_loadu_ps(from + 4 * i)))
#else
    double values[8];
    for (int lane = 0; lane < 8; ++lane) values[lane] = double(from[lane]);
    doubles = Doubles::at(values);
#endif
    return doubles;
}

// Eight whole numbers, whatever they are stored as.
inline Wholes eight_wholes(const std::int64_t* from) { return Wholes::at(from); }
inline Wholes eight_wholes(const std::int8_t* from) {
    typedef std::int8_t Bytes __attribute__((vector_size(Wholes::each)));
    Wholes wholes;
    EACH(Bytes bytes; std::memcpy(&bytes, from + i * wholes.each, sizeof bytes);
         wholes.part[i] = __builtin_convertvector(bytes, Wholes::Vector))
    return wholes;
}

inline double added(Doubles v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }
template <class E> inline E added(Pack<E> v) { return v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7]; }
inline double added(Floats v) {
    float half[8];
    for (int lane = 0; lane < 8; ++lane) half[lane] = v[lane] + v[lane + 8];
    return double(((half[0] + half[4]) + (half[2] + half[6])) + ((half[1] + half[5]) + (half[3] + half[7])));
}

// The lesser and the greater of two; the second where they are equal or one is nan, as the machine's own have it.
#if defined(__AVX512F__)
inline Floats lesser(Floats a, Floats b) { return a.part[0] = _mm512_min_ps(a.part[0], b.part[0]), a; }
inline Floats greater(Floats a, Floats b) { return a.part[0] = _mm512_max_ps(a.part[0], b.part[0]), a; }
#elif defined(__AVX2__)
inline Floats lesser(Floats a, Floats b) {
    EACH(a.part[i] = _mm256_min_ps(a.part[i], b.part[i]))
    return a;
}
inline Floats greater(Floats a, Floats b) {
    EACH(a.part[i] = _mm256_max_ps(a.part[i], b.part[i]))
    return a;
}
#endif
template <class E> inline Pack<E> lesser(Pack<E> a, Pack<E> b) { return chosen(a < b, a, b); }
template <class E> inline Pack<E> greater(Pack<E> a, Pack<E> b) { return chosen(a > b, a, b); }
template <class E> inline E least_of(Pack<E> v) {
    E least = v[0];
    for (int lane = 1; lane < v.count; ++lane) least = std::min<E>(least, v[lane]);
    return least;
}
template <class E> inline E most_of(Pack<E> v) {
    E most = v[0];
    for (int lane = 1; lane < v.count; ++lane) most = std::max<E>(most, v[lane]);
    return most;
}

// A bit for each lane of a mask, the first lane lowest.
template <class E> inline Bits lanes_of(Pack<E> mask) {
    Bits lanes = 0;
#if defined(__AVX512F__)
    if constexpr (sizeof(E) == 4)
        lanes = _mm512_movepi32_mask((__m512i)mask.part[0]);
    else
        lanes = _mm512_movepi64_mask((__m512i)mask.part[0]);
#elif defined(__AVX2__)
    if constexpr (sizeof(E) == 4)
        EACH(lanes |= Bits(unsigned(_mm256_movemask_ps((__m256)mask.part[i]))) << (i * mask.each))
    else
        EACH(lanes |= Bits(unsigned(_mm256_movemask_pd((__m256d)mask.part[i]))) << (i * mask.each))
#else
    for (int lane = 0; lane < mask.count; ++lane) lanes |= Bits(mask[lane] & 1) << lane;
#endif
    return lanes;
}
template <class E> inline bool any(Pack<E> mask) { return lanes_of(mask) != 0; }

// A matrix whose rows lie a stride apart.
template <class T> struct Matrix {
    const T* first;
    Whole n, width, stride;
    const T* row(Whole i) const { return first + i * stride; }
};

// Numbers that begin as anything. Many get large pages where the system has them: small ones take long to be had, and
// the machine knows the places of few at a time.
template <class E> class Room {
    static constexpr std::size_t LARGE = std::size_t(1) << 21;
    struct Free {
        void operator()(E* first) const { std::free(first); }
    };
    std::unique_ptr<E[], Free> first_;
    Whole count_ = 0;

  public:
    Room() = default;
    explicit Room(Whole count) { hold(count); }
    E* data() { return first_.get(); }

    // At least so many; what was there is lost where these are more than before.
    void hold(Whole count) {
        if (count <= count_) return;
        first_.reset(), count_ = 0;
        std::size_t bytes = std::size_t(count) * sizeof(E);
#if defined(__linux__)
        if (bytes >= 2 * LARGE) {
            bytes = (bytes + LARGE - 1) / LARGE * LARGE;
            first_.reset(static_cast<E*>(std::aligned_alloc(LARGE, bytes)));
            if (first_) madvise(first_.get(), bytes, MADV_HUGEPAGE);
        }
#endif
        if (!first_) first_.reset(static_cast<E*>(std::malloc(bytes)));
        if (!first_) throw std::bad_alloc();
        count_ = count;
    }
};

// What a walk needs two pages on is fetched from memory: the machine itself looks no farther than a page.
constexpr Whole AHEAD = 8192;
inline void fetch_ahead(const void* place) { __builtin_prefetch(static_cast<const char*>(place) + AHEAD); }

// How many entries of a row come before one that begins eight of a cache line, where all rows are alike in that.
template <class T> inline Whole entries_to_line(Matrix<T> values) {
    constexpr Whole EIGHT = 8 * sizeof(T);
    const Whole beyond = Whole(reinterpret_cast<std::uintptr_t>(values.first) % EIGHT);
    return values.stride % 8 || beyond % Whole(sizeof(T)) ? 0 : std::min(values.width, (EIGHT - beyond) % EIGHT / Whole(sizeof(T)));
}

// Sums of which the one in a place begins a line of the cache: packs that lie in two lines take longer.
class Lined {
    std::vector<Bits> sums_;
    Whole place_;

  public:
    explicit Lined(Whole count, Whole place = 0) : sums_(count + 7), place_(place) {}
    Bits* data() { return sums_.data() + -(reinterpret_cast<std::uintptr_t>(sums_.data()) / 8 + place_) % 8; }
};

// Shares of the rows, each in a thread of its own: work(share, begin, end). What one throws is thrown when all have ended.
inline void in_shares(Whole n, Whole threads, const std::function<void(Whole, Whole, Whole)>& work) {
    threads = std::max<Whole>(1, std::min(threads, n));
    std::vector<std::exception_ptr> failures(threads);
    const auto share_of = [&](Whole share) {
        try {
            work(share, n * share / threads, n * (share + 1) / threads);
        } catch (...) {
            failures[share] = std::current_exception();
        }
    };
    std::vector<std::thread> helpers;
    helpers.reserve(threads);
    for (Whole share = 1; share < threads; ++share) {
        try {
            helpers.emplace_back(std::cref(share_of), share);
        } catch (const std::exception&) {  // no thread to be had
            share_of(share);
        }
    }
    share_of(0);
    for (std::thread& helper : helpers) helper.join();
    for (const std::exception_ptr& failure : failures)
        if (failure) std::rethrow_exception(failure);
}

// Whole numbers of 2^-52: the significand bits of 1 + p, p in [0, 1].
constexpr Whole ONE = 0x3FF0000000000000;
constexpr Whole LOW = (Whole(1) << 26) - 1;

constexpr Whole TOGETHER = 2048;  // numbers whose units 64 bits can add up

inline Whole unit(double p) {
    double shifted = 1.0 + p;
    Whole bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    return bits - ONE;
}
inline Naturals units_and_one(Doubles p) { return same_bits<Naturals>(p + 1.0); }

constexpr double MAGIC = 6755399441055744.0;  // 1.5 * 2^52: whole numbers stand in the lowest bits of sums with it
constexpr Whole MAGIC_BITS = 0x4338000000000000;
// a * b + c, rounded once: the machine's own instruction, or slowly the same bits.
inline Doubles fused(Doubles a, Doubles b, Doubles c) {
#if defined(__AVX512F__)
    EACH(a.part[i] = _mm512_fmadd_pd(a.part[i], b.part[i], c.part[i]))
#elif defined(__FMA__)
    EACH(a.part[i] = _mm256_fmadd_pd(a.part[i], b.part[i], c.part[i]))
#else
    double sums[8];
    for (int lane = 0; lane < 8; ++lane) sums[lane] = __builtin_fma(a[lane], b[lane], c[lane]);
    a = Doubles::at(sums);
#endif
    return a;
}

inline Floats fused(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
    EACH(a.part[i] = _mm512_fmadd_ps(a.part[i], b.part[i], c.part[i]))
#elif defined(__FMA__)
    EACH(a.part[i] = _mm256_fmadd_ps(a.part[i], b.part[i], c.part[i]))
#else
    float sums[16];
    for (int lane = 0; lane < 16; ++lane) sums[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
    a = Floats::at(sums);
#endif
    return a;
}

// The bits of 2^(j / 16), less j where it stands in a power of two of sixteenths.
alignas(64) constexpr Bits ROOTS[16] = {
    0x3ff0000000000000, 0x3fefb5586cf9890f, 0x3fef72b83c7d517b, 0x3fef387a6e756238,
    0x3fef06fe0a31b715, 0x3feedea64c123422, 0x3feebfdad5362a27, 0x3feeab07dd485429,
    0x3feea09e667f3bcd, 0x3feea11473eb0187, 0x3feeace5422aa0db, 0x3feec49182a3f090,
    0x3feee89f995ad3ad, 0x3fef199bdd85529c, 0x3fef5818dcfba487, 0x3fefa4afa2a490da,
};

inline Naturals roots_at(Naturals places) {
#if defined(__AVX512F__)
    const Naturals low = Naturals::at(ROOTS), high = Naturals::at(ROOTS + 8);
    EACH(places.part[i] = (Naturals::Vector)_mm512_permutex2var_epi64((__m512i)low.part[i], (__m512i)places.part[i],
                                                                      (__m512i)high.part[i]))
#elif defined(__AVX2__)
    places = places & Bits(15);
    EACH(places.part[i] = (Naturals::Vector)_mm256_i64gather_epi64(reinterpret_cast<const long long*>(ROOTS),
                                                                   (__m256i)places.part[i], 8))
#else
    Bits roots[8];
    for (int lane = 0; lane < 8; ++lane) roots[lane] = ROOTS[places[lane] & 15];
    places = Naturals::at(roots);
#endif
    return places;
}

// A statement for each of several packs: steps of one exponential wait for each other, those of several do not.
#define ALONGSIDE(statement)                     \
    _Pragma("GCC unroll 8") for (int i = 0; i < count; ++i) { \
        statement;                               \
    }

// Powers of what is left of x, less the powers of 2^(1 / 16), fitted on its range: to 1e-14, or to the last bit.
constexpr double BRIEF[] = {1.0,                    0.04332169878499658,    0.0009383847926296646,
                            1.3550807778387664e-05, 1.4676387238435006e-07, 1.2716049516906705e-09};
constexpr double LONG[] = {1.0,
                           0.04332169878499661,
                           0.0009383847928089873,
                           1.355080777749983e-05,
                           1.4676100321837672e-07,
                           1.2716085030349987e-09,
                           9.181334960907254e-12};

// exp(x) of x from -708 to 709: 2^(k / 16) from a table, times a polynomial of what is left.
template <int count, int terms> inline void raise_inside(Doubles (&x)[count], const double (&powers)[terms]) {
    const Doubles sixteenths = 23.083120654223414;
    Doubles shifted[count], power[count];
    ALONGSIDE(shifted[i] = fused(x[i], sixteenths, Doubles(MAGIC)))
    ALONGSIDE(x[i] = fused(x[i], sixteenths, Doubles(MAGIC) - shifted[i]))
    ALONGSIDE(power[i] = powers[terms - 1])
    _Pragma("GCC unroll 8") for (int term = terms - 2; term >= 0; --term)
        ALONGSIDE(power[i] = fused(power[i], x[i], powers[term]))
    ALONGSIDE(Naturals k = same_bits<Naturals>(shifted[i]);
              x[i] = same_bits<Doubles>(roots_at(k) + moved_up<48>(k)) * power[i])
}

constexpr double LEAST = -708.0;

// The same to some 1e-16, and 0 below -708.
inline Doubles raised(Doubles x) {
    Wholes inside = x > Doubles(LEAST);
    Doubles power[1] = {chosen(inside, x, Doubles(LEAST))};
    raise_inside(power, LONG);
    return same_bits<Doubles>(same_bits<Wholes>(power[0]) & inside);
}

// 2^(x * scale) in float32 of products from -126 to 126, to some 1e-7.
template <int count> inline void raise_inside(Floats (&x)[count], Floats scale) {
    const Floats magic = 12582912.0f;  // 1.5 * 2^23
    constexpr float powers[] = {1.0f, 0.693147182f, 0.240226507f, 0.0555035695f, 0.00961808302f, 0.00133908633f, 0.000154531634f};
    Floats shifted[count], power[count];
    ALONGSIDE(shifted[i] = fused(x[i], scale, magic))
    ALONGSIDE(x[i] = fused(x[i], scale, magic - shifted[i]))
    ALONGSIDE(power[i] = powers[6])
    _Pragma("GCC unroll 8") for (int term = 5; term >= 0; --term)
        ALONGSIDE(power[i] = fused(power[i], x[i], Floats(powers[term])))
    ALONGSIDE(x[i] = same_bits<Floats>(same_bits<ShortNaturals>(power[i]) +
                                       moved_up<23>(same_bits<ShortNaturals>(shifted[i]))))
}

// ln(x) of normal x above 0, to some 1e-16: 2 atanh((m - 1) / (m + 1)) of the significand, and its power of two.
inline Doubles logarithm(Doubles x) {
    Naturals bits = same_bits<Naturals>(x);
    Naturals k = moved_down<52>(bits + Bits(ONE - 0x3FE6A09E667F3BCD)) - Bits(1023);  // m from the root of a half on
    Doubles e = same_bits<Doubles>(k + Bits(MAGIC_BITS)) - MAGIC;
    Doubles m = same_bits<Doubles>(bits - moved_up<52>(k));
    Doubles s = (m - 1.0) / (m + 1.0), z = s * s, w = z * z;
    Doubles even = ((((w * (1.0 / 19) + 1.0 / 15) * w + 1.0 / 11) * w + 1.0 / 7) * w + 1.0 / 3);
    Doubles odd = ((((w * (1.0 / 21) + 1.0 / 17) * w + 1.0 / 13) * w + 1.0 / 9) * w + 1.0 / 5);
    Doubles twice = s + s;
    return e * 0.6931471803691238 + (twice + (twice * z * (even + z * odd) + e * 1.9082149292705877e-10));
}

}  // namespace
