//// pairwise  the sum of n numbers in the order in which NumPy adds them up
static T pairwise_T(const T *x, long n, long step) {
    if (n < 8) {
        T sum = 0;
        for (long i = 0; i < n; i++)
            sum += x[i * step];
        return sum;
    }
    if (n > 128) {
        const long half = n / 2 - n / 2 % 8;
        return pairwise_T(x, half, step) + pairwise_T(x + half * step, n - half, step);
    }
    T r[8];
    for (int k = 0; k < 8; k++)
        r[k] = x[k * step];
    long i = 8;
    for (; i < n - n % 8; i += 8)
        for (int k = 0; k < 8; k++)
            r[k] += x[(i + k) * step];
    T sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; i++)
        sum += x[i * step];
    return sum;
}

//// floor_divide  the quotient, rounded down
static T floor_divide_T(T a, T b) {
#if IS_FLOAT
    if (b == 0)
        return a / b;
    T rest = (T)fmod(a, b), ratio = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        ratio -= 1;
    if (ratio == 0)
        return (T)copysign(0, a / b);
    const T down = (T)floor(ratio);
    return ratio - down > (T)0.5 ? down + 1 : down;
#else
    if (b == 0)
        return 0;
    if (b + 1 == 0)
        return (T)(0 - a);
    return (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
#endif
}

//// remainder  what floor_divide leaves; its sign is that of the divisor
static T remainder_T(T a, T b) {
#if IS_FLOAT
    T rest = (T)fmod(a, b);
    if (b == 0)
        return rest;
    if (rest == 0)
        return (T)copysign(0, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
#else
    if (b == 0 || b + 1 == 0)
        return 0;
    const T rest = (T)(a % b);
    return (T)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
#endif
}

//// power  a whole number to a whole power
static T power_T(T a, T b) {
    T out = 1;
    for (; b > 0; b = (T)(b / 2), a = (T)(a * a))
        if (b % 2)
            out = (T)(out * a);
    return out;
}

//// logaddexp  log(exp(a) + exp(b))
static T logaddexp_T(T a, T b) {
    if (a == b)
        return a + (T)0.6931471805599453094;
    const T gap = a - b;
    return gap > 0 ? a + (T)log1p(exp(-gap)) : gap <= 0 ? b + (T)log1p(exp(gap)) : gap;
}

//// argsort  the places of n numbers in order; equal ones stay in theirs, NaN comes last
static void argsort_T(long n, const T *x, long step, int64_t *order, long to) {
    for (long i = 0; i < n; i++) {
        const T v = x[i * step];
#if IS_FLOAT
        const int last = v != v;
#else
        const int last = 0;
#endif
        long k = i;
        for (; k > 0 && !last && !(x[order[(k - 1) * to] * step] <= v); k--)
            order[k * to] = order[(k - 1) * to];
        order[k * to] = i;
    }
}

//// whole  a floating-point number as a whole one; what does not fit becomes the least one
static int64_t whole_T(T x) {
    return x >= (T)-9223372036854775808.0 && x < (T)9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

//// fast_exp  exp within 2 units in the last place; what is less than two times the least normal number may be 0
static inline T fast_exp_T(T x) {
#if IS_FLOAT32
    const float n = rintf(x * 1.44269504f), r = fmaf(n, 2.12194440e-4f, fmaf(n, -0.693359375f, x));
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = fmaf(y * r, r, r) + 1;
    union {
        int32_t i;
        float f;
    } power = {((n > -126 && n < 129 ? (int32_t)n : 0) + 126) << 23};
    y = fmaf(y, power.f, y * power.f); /* 2 y power, in no other order */
    return x > 88.72283f ? INFINITY : x < -86.9f ? 0 : y;
#else
    const double n = rint(x * 1.4426950408889634), r = fma(n, -1.42860682030941723212e-6, fma(n, -0.693145751953125, x));
    const double q = r * r;
    const double a = r * ((1.26177193074810590878e-4 * q + 3.02994407707441961300e-2) * q + 9.99999999999999999910e-1);
    const double b = ((3.00198505138664455042e-6 * q + 2.52448340349684104192e-3) * q + 2.27265548208155028766e-1) * q + 2;
    union {
        int64_t i;
        double f;
    } power = {((n > -1022 && n < 1025 ? (int64_t)n : 0) + 1022) << 52};
    const double e = 1 + 2 * (a / (b - a)), y = fma(e, power.f, e * power.f); /* 2 e power, in no other order */
    return x > 709.782712893384 ? INFINITY : x < -708.0 ? 0 : y;
#endif
}

//// fast_tanh  tanh within 5 units in the last place
static inline T fast_tanh_T(T x) {
#if IS_FLOAT32
    const float c = x > 7.90531f ? 7.90531f : x < -7.90531f ? -7.90531f : x, q = c * c;
    float a = -2.76076847742355e-16f, b = 1.19825839466702e-06f;
    a = a * q + 2.00018790482477e-13f;
    a = a * q - 8.60467152213735e-11f;
    a = a * q + 5.12229709037114e-08f;
    a = a * q + 1.48572235717979e-05f;
    a = a * q + 6.37261928875436e-04f;
    a = a * q + 4.89352455891786e-03f;
    b = b * q + 1.18534705686654e-04f;
    b = b * q + 2.26843463243900e-03f;
    b = b * q + 4.89352518554385e-03f;
    return c * a / b;
#else
    const double q = x * x, size = fabs(x), e = fast_exp_double(2 * (size < 20 ? size : 20));
    const double a = (-9.64399179425052238628e-1 * q - 9.92877231001918586564e1) * q - 1.61468768441708447952e3;
    const double b = ((q + 1.12811678491632931402e2) * q + 2.23548839060100448583e3) * q + 4.84406305325125486048e3;
    const double far = copysign(1 - 2 / (e + 1), x);
    return size < 0.625 ? x + x * q * (a / b) : size < 20 ? far : x == x ? copysign(1, x) : x;
#endif
}

//// loop  a loop of NumPy's, which whoever loads this may set
typedef struct {
    void (*run)(const void **, const intptr_t *, const intptr_t *, void *);
    void *data;
} loop;

//// each  a function of n numbers that lie xs apart
loop numpy_NAME_T = {0, 0};

static void each_NAME_T(long n, const T *x, long xs, T *out, long outs) {
    const long size = sizeof(T);
    if (numpy_NAME_T.run) {
        numpy_NAME_T.run((const void *[]){x, out}, (intptr_t[]){n}, (intptr_t[]){xs * size, outs * size}, numpy_NAME_T.data);
        return;
    }
    for (long i = 0; i < n; i++)
        out[i * outs] = EXPRESSION;
}

//// each2  a function of n pairs of numbers that lie xs and ys apart
loop numpy_NAME_T = {0, 0};

static void each_NAME_T(long n, const T *x, long xs, const T *y, long ys, T *out, long outs) {
    const long size = sizeof(T);
    if (numpy_NAME_T.run) {
        const intptr_t steps[] = {xs * size, ys * size, outs * size};
        numpy_NAME_T.run((const void *[]){x, y, out}, (intptr_t[]){n}, steps, numpy_NAME_T.data);
        return;
    }
    for (long i = 0; i < n; i++)
        out[i * outs] = EXPRESSION;
}

//// along  the greatest (the least) of y and n numbers that lie xs apart
loop numpy_NAME_T = {0, 0};

static T along_NAME_T(T y, const T *x, long n, long xs) {
    if (numpy_NAME_T.run) {
        numpy_NAME_T.run((const void *[]){&y, x, &y}, (intptr_t[]){n}, (intptr_t[]){0, xs * (long)sizeof(T), 0}, numpy_NAME_T.data);
        return y;
    }
    for (long i = 0; i < n; i++)
        y = EXPRESSION;
    return y;
}

//// product  c = a b, of m x k and k x n numbers; rows of a lie ai apart, its columns ak
loop numpy_matmul_T = {0, 0};

static void product_T(long m, long n, long k, const T *a, long ai, long ak, const T *b, long bk, long bj, T *c, long ci, long cj) {
    const long size = sizeof(T);
    if (numpy_matmul_T.run) {
        const intptr_t steps[] = {0, 0, 0, ai * size, ak * size, bk * size, bj * size, ci * size, cj * size};
        numpy_matmul_T.run((const void *[]){a, b, c}, (intptr_t[]){1, m, k, n}, steps, numpy_matmul_T.data);
        return;
    }
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            T sum = 0;
            for (long l = 0; l < k; l++)
                sum = (T)(sum + a[i * ai + l * ak] * b[l * bk + j * bj]);
            c[i * ci + j * cj] = sum;
        }
}
