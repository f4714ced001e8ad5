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
