/* a loop of NumPy's, which whoever loads this may set */
typedef struct {
    void (*run)(const void **, const intptr_t *, const intptr_t *, void *);
    void *data;
} loop;

//// floor_divide f  the quotient, rounded down
static T floor_divide_T(T a, T b) {
    if (b == 0)
        return a / b;
    T rest = (T)fmod(a, b), ratio = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0))
        ratio -= 1;
    if (ratio == 0)
        return (T)copysign(0, a / b);
    const T down = (T)floor(ratio);
    return ratio - down > (T)0.5 ? down + 1 : down;
}

//// floor_divide iu  the quotient, rounded down
static T floor_divide_T(T a, T b) {
    if (b == 0)
        return 0;
    if (b + 1 == 0)
        return (T)(0 - a);
    return (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

//// remainder f  what floor_divide leaves; its sign is that of the divisor
static T remainder_T(T a, T b) {
    T rest = (T)fmod(a, b);
    if (b == 0)
        return rest;
    if (rest == 0)
        return (T)copysign(0, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
}

//// remainder iu  what floor_divide leaves; its sign is that of the divisor
static T remainder_T(T a, T b) {
    if (b == 0 || b + 1 == 0)
        return 0;
    const T rest = (T)(a % b);
    return (T)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

//// power iu  a whole number to a whole power
static T power_T(T a, T b) {
    T out = 1;
    for (; b > 0; b = (T)(b / 2), a = (T)(a * a))
        if (b % 2)
            out = (T)(out * a);
    return out;
}

//// logaddexp f  log(exp(a) + exp(b))
static T logaddexp_T(T a, T b) {
    if (a == b)
        return a + (T)0.6931471805599453094;
    const T gap = a - b;
    return gap > 0 ? a + (T)log1p(exp(-gap)) : gap <= 0 ? b + (T)log1p(exp(gap)) : gap;
}

//// whole f  a floating-point number as a whole one; what does not fit becomes the least one
static int64_t whole_T(T x) {
    return x >= (T)-9223372036854775808.0 && x < (T)9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

//// each_NAME f  a function of n numbers that lie xs apart
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

//// pairs_NAME fiu  a function of n pairs of numbers that lie xs and ys apart; with outs = 0 a reduction
loop numpy_NAME_T = {0, 0};

static void pairs_NAME_T(long n, const T *x, long xs, const T *y, long ys, T *out, long outs) {
    const long size = sizeof(T);
    if (numpy_NAME_T.run) {
        const intptr_t steps[] = {xs * size, ys * size, outs * size};
        numpy_NAME_T.run((const void *[]){x, y, out}, (intptr_t[]){n}, steps, numpy_NAME_T.data);
        return;
    }
    for (long i = 0; i < n; i++)
        out[i * outs] = EXPRESSION;
}

//// product fiu  c = a b, of m x k and k x n numbers; rows of a lie ai apart, its columns ak
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

//// product_by_rows f  the same, so many rows at a time: of few OpenBLAS makes no copies where there is AVX-512
/* 1 where there is no second thread to give a part of the rows to, which whoever loads this may set */
int one_thread;

static void product_by_rows_T(long rows, long m, long n, long k, const T *a, long ai, long ak, const T *b, long bk, long bj, T *c, long ci, long cj) {
#ifdef __AVX512F__
    rows = one_thread ? rows : m;
#else
    rows = m;
#endif
    for (long i = 0; i < m; i += rows)
        product_T(m - i < rows ? m - i : rows, n, k, a + i * ai, ai, ak, b, bk, bj, c + i * ci, ci, cj);
}
