// Logits: softmax and its sums, each row from its own maximum.
#pragma once
#include "rows.hpp"

namespace {

// Eight logits as doubles; beyond the end of a row there is nothing to add.
template <class T> inline Doubles eight_of(const T* row, Whole j, Whole width) {
    if (j + 8 <= width) return eight(row + j);
    double rest[8];
    for (Whole lane = 0; lane < 8; ++lane)
        rest[lane] = j + lane < width ? double(row[j + lane]) : -std::numeric_limits<double>::infinity();
    return Doubles::at(rest);
}

inline Floats loaded(const float* from, Floats) { return Floats::at(from); }
template <class T> inline Doubles loaded(const T* from, Doubles) { return eight(from); }

// The sums of exp(z - top) and of its square over all classes but the top one, in packs P; they are added up as doubles
// after every stretch.
template <class P, class T, class Raise>
void sums_beside_top(const T* row, Whole width, Whole top, Whole stretch, Raise raise, double& rest, double& squares) {
    typedef decltype(P{}[0]) E;
    constexpr Whole step = 64;
    constexpr int count = step / P::count;
    const P largest = E(row[top]);
    T last[step];
    rest = squares = 0.0;
    for (Whole begin = 0; begin < width; begin += stretch) {
        P sum[2] = {E(0), E(0)}, square[2] = {E(0), E(0)};
        for (Whole j = begin; j < std::min(begin + stretch, width); j += step) {
            const T* from = row + j;
            Whole end = std::min(step, width - j), left_out = top - j;
            if (end < step) {
                std::fill(std::copy(from, row + width, last), last + step, row[top]);
                from = last;
            }
            P e[count];
            ALONGSIDE(e[i] = loaded(from + i * P::count, P()) - largest)
            raise(e);
            if ((left_out >= 0 && left_out < step) || end < step) {
                typedef typename Mask<E>::Pack Places;
                typedef decltype(Places{}[0]) Place;
                const Places places = Places::at(COUNTED<Place>), out = Place(left_out), past = Place(end);
                ALONGSIDE(Places place = places + Place(i * P::count);
                          e[i] = chosen((place != out) & (place < past), e[i], P(E(0))))
            }
            ALONGSIDE(sum[i % 2] += e[i])
            ALONGSIDE(square[i % 2] = fused(e[i], e[i], square[i % 2]))
        }
        rest += added(sum[0] + sum[1]);
        squares += added(square[0] + square[1]);
    }
}

template <class T>
void sums_in_doubles(const T* row, Whole width, Whole top, double least, double& rest, double& squares) {
    const bool near = least - double(row[top]) > LEAST;
    auto raise = [near](Doubles(&e)[8]) {
        constexpr int count = 8;
        if (!near)
            ALONGSIDE(e[i] = raised(e[i]))
        else if (sizeof(T) == sizeof(float))
            raise_inside(e, BRIEF);  // its logits are rounded more
        else
            raise_inside(e, LONG);
    };
    sums_beside_top<Doubles>(row, width, top, width, raise, rest, squares);
}

// In float32 to some 1e-7.
inline void sums_in_floats(const float* row, Whole width, Whole top, double& rest, double& squares) {
    auto raise = [](Floats(&e)[4]) {
        constexpr int count = 4;
        const Floats least = -87.0f;
        ALONGSIDE(e[i] = greater(e[i], least))
        raise_inside(e, Floats(1.44269504f));
    };
    sums_beside_top<Floats>(row, width, top, 1024, raise, rest, squares);
}

inline void sums_of(const float* row, Whole width, Whole top, double least, bool narrow, double& rest, double& squares) {
    if (narrow)
        sums_in_floats(row, width, top, rest, squares);
    else
        sums_in_doubles(row, width, top, least, rest, squares);
}
inline void sums_of(const double* row, Whole width, Whole top, double least, bool, double& rest, double& squares) {
    sums_in_doubles(row, width, top, least, rest, squares);
}

template <class T>
void survey_logits(Matrix<T> logits, bool narrow, double* extremes, Whole* top, double* largest, double* rest,
                   double* squares, Whole threads) {
    std::vector<Extremes<T>> parts(threads);
    in_shares(logits.n, threads, [&](Whole share, Whole begin, Whole end) {
        Extremes<T> part;
        for (Whole i = begin; i < end; ++i) {
            const T* row = logits.row(i);
            T least, most;
            survey_row(row, logits.width, part, top[i], least, most);
            largest[i] = most;
            sums_of(row, logits.width, top[i], double(least), narrow, rest[i], squares[i]);
        }
        parts[share] = part;
    });
    Extremes<T> all;
    for (const Extremes<T>& part : parts) all.add(part);
    extremes[0] = all.broken ? std::numeric_limits<double>::quiet_NaN() : double(all.low);
    extremes[1] = all.broken ? std::numeric_limits<double>::quiet_NaN() : double(all.high);
}

template <class T>
void softmax(Matrix<T> logits, const double* top, const double* rest, double* shares, Whole threads) {
    in_shares(logits.n, threads, [&](Whole, Whole begin, Whole end) {
        for (Whole i = begin; i < end; ++i) {
            double whole = 1.0 + rest[i], *into = shares + i * logits.width;
            for (Whole j = 0; j < logits.width; j += 8) {
                Doubles share = raised(eight_of(logits.row(i), j, logits.width) - top[i]) / Doubles(whole);
                if (j + 8 <= logits.width)
                    share.store(into + j);
                else
                    for (int lane = 0; j + lane < logits.width; ++lane) into[j + lane] = share[lane];
            }
        }
    });
}

template <class T> inline T largest_of(const T* row, Whole width) {
    constexpr Whole L = Pack<T>::count;
    Pack<T> high = row[0];
    Whole j = 0;
    for (; j + L <= width; j += L) {
        fetch_ahead(row + j);
        Pack<T> x = Pack<T>::at(row + j);
        high = greater(x, high);
    }
    T largest = row[0];
    for (int lane = 0; lane < L; ++lane) largest = std::max<T>(largest, high[lane]);
    for (; j < width; ++j) largest = std::max(largest, row[j]);
    return largest;
}

// Of a row: its log-sum-exp, and the mean and mean square of z - top, under softmax(z * inverse).
struct Moments {
    double logarithm, mean, square;
};

template <int count> inline void raise(Floats (&x)[count], float inverse) {
    raise_inside(x, Floats(inverse * 1.44269504f));
}
template <int count> inline void raise(Doubles (&x)[count], double inverse) {
    ALONGSIDE(x[i] = x[i] * inverse)
    raise_inside(x, LONG);
}

// In packs P of float32 or float64; below `lowest`, a product of z - top and inverse adds nothing.
template <class P, class T>
Moments moments_of(const T* row, Whole width, T top, double inverse, double lowest) {
    typedef decltype(P{}[0]) E;
    constexpr int count = 4;
    constexpr Whole step = count * P::count;
    const P least = E(lowest / inverse), largest = E(top);
    P total[count], first[count], second[count];
    ALONGSIDE(total[i] = first[i] = second[i] = E(0))
    T last[step];
    for (Whole j = 0; j < width; j += step) {
        const T* from = row + j;
        if (j + step > width) {
            std::fill(std::copy(from, row + width, last), last + step, top);
            from = last;
        }
        P u[count], e[count];
        ALONGSIDE(u[i] = loaded(from + i * P::count, P()) - largest)
        ALONGSIDE(e[i] = u[i] = greater(u[i], least))
        raise(e, E(inverse));
        if (j + step > width) {
            E each[step];
            ALONGSIDE(e[i].store(each + i * P::count))
            std::fill(each + (width - j), each + step, E(0));
            ALONGSIDE(e[i] = P::at(each + i * P::count))
        }
        ALONGSIDE(total[i] += e[i])
        ALONGSIDE(e[i] = e[i] * u[i])
        ALONGSIDE(first[i] += e[i])
        ALONGSIDE(second[i] = fused(e[i], u[i], second[i]))
    }
    const auto sum_of = [](P(&sums)[count]) { return added((sums[0] + sums[1]) + (sums[2] + sums[3])); };
    double sum = sum_of(total);
    return {std::log(sum), sum_of(first) / sum, sum_of(second) / sum};
}

inline Moments moments_in(const double* row, Whole width, double top, double inverse, bool) {
    return moments_of<Doubles>(row, width, top, inverse, LEAST);
}
inline Moments moments_in(const float* row, Whole width, float top, double inverse, bool narrow) {
    return narrow ? moments_of<Floats>(row, width, top, inverse, -87.0)
                  : moments_of<Doubles>(row, width, top, inverse, LEAST);
}

template <class T>
void tempered(Matrix<T> logits, const Whole* labels, double inverse, bool narrow, double* derivatives, Whole threads) {
    Whole n = logits.n;
    in_shares(n, threads, [&](Whole, Whole begin, Whole end) {
        for (Whole i = begin; i < end; ++i) {
            const T* row = logits.row(i);
            T top = largest_of(row, logits.width);
            Moments moments = moments_in(row, logits.width, top, inverse, narrow);
            double truth = double(row[labels[i]]) - double(top);
            derivatives[i] = moments.logarithm - inverse * truth;
            derivatives[n + i] = moments.mean - truth;
            derivatives[2 * n + i] = moments.square - moments.mean * moments.mean;
        }
    });
}

// Whole numbers of 2^-52 next to scores below 2^24, as 2^26 times a high part and a low part of either sign.
struct Split {
    Wholes high = Whole(0), low = Whole(0);

    void add(Doubles scores) {
        Doubles scaled = scores * 0x1p26, whole = scaled + MAGIC;
        Doubles rest = (scaled - (whole - MAGIC)) * 0x1p26 + MAGIC;
        high += same_bits<Wholes>(whole) - MAGIC_BITS;
        low += same_bits<Wholes>(rest) - MAGIC_BITS;
    }
};

// The probability of what happened, or of what did not.
template <class T, class Y> Doubles probability(const T* outputs, const Y* targets, bool of_truth) {
    Doubles p = eight(outputs), opposite = Doubles(1.0) - p;
    Wholes failed = eight_wholes(targets) != Wholes(Whole(0));
    return of_truth ? chosen(failed, opposite, p) : chosen(failed, p, opposite);
}

// Scores of an event, summed; the logarithms of each row, too, where there is a place for them.
template <class T, class Y>
void event_scores(const T* outputs, const Y* targets, Whole n, bool logs, Whole* sums, double* each,
                  Whole threads) {
    struct Part {
        Whole high = 0, low = 0, infinite = 0;
    };
    std::vector<Part> parts(threads);
    in_shares(n, threads, [&](Whole share, Whole begin, Whole end) {
        Part part;
        Split split;
        for (Whole i = begin; i < end; i += 8) {
            T p[8];
            Y t[8];
            bool whole = i + 8 <= end;
            fetch_ahead(outputs + i), fetch_ahead(targets + i);
            for (Whole lane = 0; lane < 8 && !whole; ++lane) {
                bool there = i + lane < end;
                p[lane] = there ? outputs[i + lane] : T(1);  // a certain success scores 0
                t[lane] = there ? targets[i + lane] : Y(0);
            }
            Doubles q = probability(whole ? outputs + i : p, whole ? targets + i : t, logs);
            if (!logs) {
                split.add(q * q);
                continue;
            }
            Wholes tiny = q < Doubles(0x1p-1022);
            Doubles scores = Doubles(0.0) - logarithm(chosen(tiny, Doubles(1.0), q));
            for (int lane = 0; lane < 8 && any(tiny); ++lane) {
                if (!tiny[lane]) continue;
                part.infinite += q[lane] == 0.0;
                scores.set(lane, q[lane] == 0.0 ? 0.0 : -std::log(q[lane]));
            }
            split.add(scores);
            for (int lane = 0; each && lane < 8 && i + lane < end; ++lane)
                each[i + lane] = q[lane] == 0.0 ? -std::numeric_limits<double>::infinity() : 0.0 - scores[lane];
        }
        part.high = added(split.high), part.low = added(split.low);
        parts[share] = part;
    });
    Whole high = 0, low = 0;
    sums[2] = 0;
    for (const Part& part : parts) high += part.high, low += part.low, sums[2] += part.infinite;
    sums[0] = high + (low >> 26);
    sums[1] = low & LOW;
}

}  // namespace
