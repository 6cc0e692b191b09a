/* Dense layers one after the other, forward and backward, in blocks of rows that stay in a core's cache.

   A product is made of tiles of ROWS rows and two vectors, whose sums stay in registers. Weights are packed once per
   call into panels of that width. Outputs of layers lie in rows of an odd number of cache lines: those of a column then
   fall on different sets of the cache. Each number is summed in one order, whatever the width of the vectors, so that
   AVX2 and AVX-512 give equal results. Compiled and called by compiled_chain.py. */
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 16
#define ROWS 12
#elif defined(__AVX__)
#define LANES 8
#define ROWS 6
#else
#define LANES 4
#define ROWS 8
#endif
#define LINE 16   /* floats of a cache line */
#define BLOCK 96  /* rows of a block: a multiple of every ROWS */

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int ints __attribute__((vector_size(LANES * 4)));
typedef float vec_u __attribute__((vector_size(LANES * 4), aligned(4)));

#define INLINE static inline __attribute__((always_inline))

/* c[m][w vectors] (+)= a[m][k] b[k][w vectors]; a is read with any two strides. */
INLINE void tile(const int m, const int w, long depth, const float *a, long a_row, long a_step, const float *b,
                 long b_step, float *c, long c_row, int add, const float *bias, int relu)
{
    vec sum[ROWS][2];
#pragma GCC unroll 12
    for (int i = 0; i < m; i++)
#pragma GCC unroll 2
        for (int j = 0; j < w; j++) {
            if (add) sum[i][j] = *(const vec_u *)(c + i * c_row + j * LANES);
            else if (bias) sum[i][j] = *(const vec_u *)(bias + j * LANES);
            else sum[i][j] = (vec){0};
        }
    for (long k = 0; k < depth; k++) {
        vec left = *(const vec_u *)(b + k * b_step), right = left;
        if (w > 1) right = *(const vec_u *)(b + k * b_step + LANES);
#pragma GCC unroll 12
        for (int i = 0; i < m; i++) {
            float value = a[i * a_row + k * a_step];
            sum[i][0] += left * value;
            if (w > 1) sum[i][1] += right * value;
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < m; i++)
#pragma GCC unroll 2
        for (int j = 0; j < w; j++) {
            vec value = sum[i][j];
            if (relu) value = (vec)(~(value < 0) & (ints)value); /* what is not a number stays so */
            *(vec_u *)(c + i * c_row + j * LANES) = value;
        }
}

#define CASE(M) case M: tile(M, w, depth, a, a_row, a_step, b, b_step, c, c_row, add, bias, relu); break;
#define DEFINE_STRIP(NAME, W) \
static void NAME(long rows, long depth, const float *a, long a_row, long a_step, const float *b, long b_step, \
                 float *c, long c_row, int add, const float *bias, int relu) \
{ \
    const int w = W; \
    for (; rows >= ROWS; rows -= ROWS, a += ROWS * a_row, c += ROWS * c_row) \
        tile(ROWS, w, depth, a, a_row, a_step, b, b_step, c, c_row, add, bias, relu); \
    switch (rows) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) } \
}
DEFINE_STRIP(strip_of_two, 2)
DEFINE_STRIP(strip_of_one, 1)

static long padded(long n) { return (n + LANES - 1) / LANES * LANES; }
static long row_of(long n) { long lines = (n + LINE - 1) / LINE; return (lines | 1) * LINE; }

/* c[rows][columns] (+)= a b, where b lies in panels of two vectors (packed) or in rows of b_row floats. */
static void product(long rows, long columns, long depth, const float *a, long a_row, long a_step, const float *b,
                    long b_row, float *c, long c_row, int add, const float *bias, int relu)
{
    long wide = padded(columns);
    for (long at = 0; at < wide; at += 2 * LANES) {
        const int two = at + LANES < wide;
        const float *panel = b_row ? b + at : b + at * depth;
        long step = b_row ? b_row : (two ? 2 * LANES : LANES);
        (two ? strip_of_two : strip_of_one)(rows, depth, a, a_row, a_step, panel, step, c + at, c_row, add,
                                            bias ? bias + at : 0, relu);
    }
}

/* Panels of two vectors of matrix[depth][columns], element (k, n) at k * k_step + n * n_step; one step is 1. */
static void pack(const float *matrix, long k_step, long n_step, long depth, long columns, float *panels)
{
    long wide = padded(columns);
    for (long at = 0; at < wide; at += 2 * LANES) {
        long width = at + LANES < wide ? 2 * LANES : LANES;
        long own = columns - at < width ? columns - at : width;
        float *panel = panels + at * depth;
        if (own < width) memset(panel, 0, depth * width * sizeof(float));
        if (n_step == 1)
            for (long k = 0; k < depth; k++) memcpy(panel + k * width, matrix + k * k_step + at, own * sizeof(float));
        else
            for (long k = 0; k < depth; k += LANES)
                for (long n = 0; n < own; n++)
                    for (long i = k; i < depth && i < k + LANES; i++)
                        panel[i * width + n] = matrix[i * k_step + (at + n) * n_step];
    }
}

static float *carve(char **at, long floats)
{
    float *piece = (float *)*at;
    *at += (floats * sizeof(float) + 63) / 64 * 64;
    return piece;
}

/* Floats between two rows of an array of so many columns, as the outputs of layers have. */
long league_row(long columns) { return row_of(columns); }

/* outputs[l] is [rows][row_of(widths[l + 1])]; weights[l] is [widths[l + 1]][widths[l]]. Returns 0, or 1 without memory. */
int league_chain_forward(const float *inputs, long rows, long layers, const long *widths, float *const *weights,
                         float *const *biases, const int *relu, float *const *outputs)
{
    long floats = 0;
    for (long l = 0; l < layers; l++) floats += padded(widths[l + 1]) * (widths[l] + 1) + 2 * LINE;
    char *memory = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
    if (!memory) return 1;
    char *at = memory;
    float *packed[layers], *bias[layers];
    for (long l = 0; l < layers; l++) {
        packed[l] = carve(&at, padded(widths[l + 1]) * widths[l]);
        pack(weights[l], 1, widths[l], widths[l], widths[l + 1], packed[l]);
        bias[l] = carve(&at, padded(widths[l + 1]));
        for (long n = 0; n < padded(widths[l + 1]); n++) bias[l][n] = n < widths[l + 1] ? biases[l][n] : 0.0f;
    }
    for (long first = 0; first < rows; first += BLOCK) {
        long size = rows - first < BLOCK ? rows - first : BLOCK;
        const float *before = inputs + first * widths[0];
        long before_row = widths[0];
        for (long l = 0; l < layers; l++) {
            long row = row_of(widths[l + 1]);
            float *after = outputs[l] + first * row;
            product(size, widths[l + 1], widths[l], before, before_row, 1, packed[l], 0, after, row, 0, bias[l], relu[l]);
            before = after;
            before_row = row;
        }
    }
    free(memory);
    return 0;
}

/* Gradients from that of the last outputs, [rows][widths[layers]] without padding. weight_gradients[l] is as weights[l],
   and added to, as is bias_gradients[l]; input_gradients is [rows][widths[0]], or null. */
int league_chain_backward(const float *inputs, long rows, long layers, const long *widths, float *const *weights,
                          const int *relu, float *const *outputs, const float *output_gradients,
                          float *const *weight_gradients, float *const *bias_gradients, float *input_gradients)
{
    long widest = 0, floats = 0;
    for (long l = 0; l <= layers; l++) widest = widths[l] > widest ? widths[l] : widest;
    for (long l = 0; l < layers; l++)
        floats += padded(widths[l]) * widths[l + 1] + widths[l + 1] * row_of(widths[l]) + padded(widths[l + 1]) + 3 * LINE;
    floats += 3 * BLOCK * row_of(widest) + 3 * LINE;
    char *memory = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
    if (!memory) return 1;
    char *at = memory;
    float *packed[layers], *sums[layers], *bias_sums[layers];
    for (long l = 0; l < layers; l++) {
        packed[l] = carve(&at, padded(widths[l]) * widths[l + 1]);
        if (l || input_gradients) pack(weights[l], widths[l], 1, widths[l + 1], widths[l], packed[l]);
        long size = widths[l + 1] * row_of(widths[l]);
        memset(sums[l] = carve(&at, size), 0, size * sizeof(float));
        memset(bias_sums[l] = carve(&at, padded(widths[l + 1])), 0, padded(widths[l + 1]) * sizeof(float));
    }
    float *shown = carve(&at, BLOCK * row_of(widest));
    float *here = carve(&at, BLOCK * row_of(widest)), *there = carve(&at, BLOCK * row_of(widest));
    long shown_row = row_of(widths[0]);
    memset(shown, 0, BLOCK * shown_row * sizeof(float));
    for (long first = 0; first < rows; first += BLOCK) {
        long size = rows - first < BLOCK ? rows - first : BLOCK;
        for (long r = 0; r < size; r++)
            memcpy(shown + r * shown_row, inputs + (first + r) * widths[0], widths[0] * sizeof(float));
        long last = widths[layers], row = row_of(last);
        memset(here, 0, size * row * sizeof(float));
        for (long r = 0; r < size; r++)
            memcpy(here + r * row, output_gradients + (first + r) * last, last * sizeof(float));
        for (long l = layers - 1; l >= 0; l--) {
            row = row_of(widths[l + 1]);
            long columns = padded(widths[l + 1]), before_row = row_of(widths[l]);
            const float *after = outputs[l] + first * row, *before = l ? outputs[l - 1] + first * before_row : shown;
            if (relu[l])
                for (long r = 0; r < size; r++)
                    for (long n = 0; n < columns; n += LANES) {
                        vec *gradient = (vec *)(here + r * row + n);
                        vec output = *(const vec_u *)(after + r * row + n);
                        *gradient = (vec)(~(output <= 0) & (ints)*gradient);
                    }
            for (long r = 0; r < size; r++)
                for (long n = 0; n < columns; n += LANES)
                    *(vec *)(bias_sums[l] + n) += *(vec *)(here + r * row + n);
            product(widths[l + 1], widths[l], size, here, 1, row, before, before_row, sums[l], before_row, 1, 0, 0);
            if (l || input_gradients) {
                product(size, widths[l], widths[l + 1], here, row, 1, packed[l], 0, there, before_row, 0, 0, 0);
                float *swap = here; here = there; there = swap;
            }
        }
        if (input_gradients)
            for (long r = 0; r < size; r++)
                memcpy(input_gradients + (first + r) * widths[0], here + r * shown_row, widths[0] * sizeof(float));
    }
    for (long l = 0; l < layers; l++) {
        for (long n = 0; n < widths[l + 1]; n++) {
            for (long k = 0; k < widths[l]; k++)
                weight_gradients[l][n * widths[l] + k] += sums[l][n * row_of(widths[l]) + k];
            bias_gradients[l][n] += bias_sums[l][n];
        }
    }
    free(memory);
    return 0;
}
