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

#define MAX_LAYERS 16

/* Layers on their way through a batch. Packed weights, and sums of gradients with padded rows, per layer; here and there
   hold gradients of one block, in rows of row_of(width). */
struct chain {
    long layers;
    const long *widths;
    float *const *weights;
    const int *relu;
    float *by_input[MAX_LAYERS], *by_output[MAX_LAYERS], *bias[MAX_LAYERS], *sums[MAX_LAYERS], *bias_sums[MAX_LAYERS];
    float *here, *there;
};

static float *carve(char **at, long floats)
{
    float *piece = (float *)*at;
    *at += (floats * sizeof(float) + 63) / 64 * 64;
    return piece;
}

static char *memory_of(long floats) { return aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64); }

static long widest_of(const struct chain *c)
{
    long widest = 0;
    for (long l = 0; l <= c->layers; l++) widest = c->widths[l] > widest ? c->widths[l] : widest;
    return widest;
}

/* Floats that the passes need from the caller. block: rows of one. */
static long forward_floats(const struct chain *c)
{
    long floats = 0;
    for (long l = 0; l < c->layers; l++) floats += padded(c->widths[l + 1]) * (c->widths[l] + 1) + 2 * LINE;
    return floats;
}

static long backward_floats(const struct chain *c, long block)
{
    long floats = 2 * block * row_of(widest_of(c)) + 2 * LINE;
    for (long l = 0; l < c->layers; l++)
        floats += padded(c->widths[l]) * c->widths[l + 1] + c->widths[l + 1] * row_of(c->widths[l]) +
                  padded(c->widths[l + 1]) + 3 * LINE;
    return floats;
}

/* Where packed weights and biases lie, from `at` on. */
static void lay_forward(struct chain *c, char **at)
{
    for (long l = 0; l < c->layers; l++) {
        c->by_input[l] = carve(at, padded(c->widths[l + 1]) * c->widths[l]);
        c->bias[l] = carve(at, padded(c->widths[l + 1]));
    }
}

static void begin_forward(struct chain *c, float *const *biases, char **at)
{
    lay_forward(c, at);
    for (long l = 0; l < c->layers; l++) {
        long inputs = c->widths[l], outputs = c->widths[l + 1];
        pack(c->weights[l], 1, inputs, inputs, outputs, c->by_input[l]);
        for (long n = 0; n < padded(outputs); n++) c->bias[l][n] = n < outputs ? biases[l][n] : 0.0f;
    }
}

static void begin_backward(struct chain *c, long block, int of_inputs, char **at)
{
    for (long l = 0; l < c->layers; l++) {
        long inputs = c->widths[l], outputs = c->widths[l + 1], size = outputs * row_of(inputs);
        c->by_output[l] = carve(at, padded(inputs) * outputs);
        if (l || of_inputs) pack(c->weights[l], inputs, 1, outputs, inputs, c->by_output[l]);
        memset(c->sums[l] = carve(at, size), 0, size * sizeof(float));
        memset(c->bias_sums[l] = carve(at, padded(outputs)), 0, padded(outputs) * sizeof(float));
    }
    c->here = carve(at, block * row_of(widest_of(c)));
    c->there = carve(at, block * row_of(widest_of(c)));
}

/* Outputs of all layers for the rows of a block; outputs[l] is where layer l writes its first row. */
static void forward_block(const struct chain *c, const float *inputs, long input_row, long size, float *const *outputs)
{
    for (long l = 0; l < c->layers; l++) {
        long row = row_of(c->widths[l + 1]);
        product(size, c->widths[l + 1], c->widths[l], inputs, input_row, 1, c->by_input[l], 0, outputs[l], row, 0,
                c->bias[l], c->relu[l]);
        inputs = outputs[l];
        input_row = row;
    }
}

/* Add the gradients of a block, of which those of its outputs lie in c->here, zeros behind them in a row. inputs have
   rows of row_of(widths[0]), zeros behind them too. The inputs' own gradients are left in c->here if asked for. */
static void backward_block(struct chain *c, const float *inputs, long size, float *const *outputs, int of_inputs)
{
    for (long l = c->layers - 1; l >= 0; l--) {
        long row = row_of(c->widths[l + 1]), columns = padded(c->widths[l + 1]), before_row = row_of(c->widths[l]);
        const float *before = l ? outputs[l - 1] : inputs;
        float *here = c->here, *there = c->there;
        if (c->relu[l])
            for (long r = 0; r < size; r++)
                for (long n = 0; n < columns; n += LANES) {
                    vec *gradient = (vec *)(here + r * row + n);
                    vec output = *(const vec_u *)(outputs[l] + r * row + n);
                    *gradient = (vec)(~(output <= 0) & (ints)*gradient);
                }
        for (long r = 0; r < size; r++)
            for (long n = 0; n < columns; n += LANES) *(vec *)(c->bias_sums[l] + n) += *(vec *)(here + r * row + n);
        product(c->widths[l + 1], c->widths[l], size, here, 1, row, before, before_row, c->sums[l], before_row, 1, 0, 0);
        if (l || of_inputs) {
            product(size, c->widths[l], c->widths[l + 1], here, row, 1, c->by_output[l], 0, there, before_row, 0, 0, 0);
            c->here = there;
            c->there = here;
        }
    }
}

static void add_gradients(const struct chain *c, float *const *weight_gradients, float *const *bias_gradients)
{
    for (long l = 0; l < c->layers; l++)
        for (long n = 0; n < c->widths[l + 1]; n++) {
            for (long k = 0; k < c->widths[l]; k++)
                weight_gradients[l][n * c->widths[l] + k] += c->sums[l][n * row_of(c->widths[l]) + k];
            bias_gradients[l][n] += c->bias_sums[l][n];
        }
}

/* Copy rows of so many columns to rows with zeros behind them. */
static void spread(const float *from, long columns, long size, float *into)
{
    long row = row_of(columns);
    for (long r = 0; r < size; r++) {
        memcpy(into + r * row, from + r * columns, columns * sizeof(float));
        memset(into + r * row + columns, 0, (row - columns) * sizeof(float));
    }
}

/* Floats between two rows of an array of so many columns, as the outputs of layers have. */
long league_row(long columns) { return row_of(columns); }

/* outputs[l] is [rows][row_of(widths[l + 1])]; weights[l] is [widths[l + 1]][widths[l]]. Returns 0, or 1 without memory. */
int league_chain_forward(const float *inputs, long rows, long layers, const long *widths, float *const *weights,
                         float *const *biases, const int *relu, float *const *outputs)
{
    struct chain c = {.layers = layers, .widths = widths, .weights = weights, .relu = relu};
    char *memory = memory_of(forward_floats(&c)), *at = memory;
    if (!memory) return 1;
    begin_forward(&c, biases, &at);
    float *block[MAX_LAYERS];
    for (long first = 0; first < rows; first += BLOCK) {
        for (long l = 0; l < layers; l++) block[l] = outputs[l] + first * row_of(widths[l + 1]);
        long size = rows - first < BLOCK ? rows - first : BLOCK;
        forward_block(&c, inputs + first * widths[0], widths[0], size, block);
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
    struct chain c = {.layers = layers, .widths = widths, .weights = weights, .relu = relu};
    long row = row_of(widths[0]);
    char *memory = memory_of(backward_floats(&c, BLOCK) + BLOCK * row + LINE), *at = memory;
    if (!memory) return 1;
    begin_backward(&c, BLOCK, input_gradients != 0, &at);
    float *shown = carve(&at, BLOCK * row), *block[MAX_LAYERS];
    for (long first = 0; first < rows; first += BLOCK) {
        long size = rows - first < BLOCK ? rows - first : BLOCK;
        for (long l = 0; l < layers; l++) block[l] = outputs[l] + first * row_of(widths[l + 1]);
        spread(inputs + first * widths[0], widths[0], size, shown);
        spread(output_gradients + first * widths[layers], widths[layers], size, c.here);
        backward_block(&c, shown, size, block, input_gradients != 0);
        if (input_gradients)
            for (long r = 0; r < size; r++)
                memcpy(input_gradients + (first + r) * widths[0], c.here + r * row, widths[0] * sizeof(float));
    }
    add_gradients(&c, weight_gradients, bias_gradients);
    free(memory);
    return 0;
}
