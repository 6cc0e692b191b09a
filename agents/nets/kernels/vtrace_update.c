/* Forward pass, V-trace loss and backward pass of a plain network, block by block of whole unrolls: nothing but gradients
   leaves the core's cache. Called by learner/step/vtrace_update.py. */
#include "dense_chain.c"
#include "vtrace_loss.c"

/* An observation field [rows][T + 1][width]; kind: 0 float32, 1 int8, 2 uint8 and flags. Scaled as
   nets/input_scaling.py has it: offsets and factors of every `period` numbers, none where that is 0; then symlog. */
struct field {
    const void *numbers;
    long width;
    int kind, is_squashed;
    long period;
    const float *offsets, *factors;
};

struct decisions {
    const uint8_t *mask; /* [rows][T + 1][A], or null where every action is legal */
    const int64_t *actions;
    const float *log_probs, *rewards, *discounts;
    const uint8_t *valid, *learn;
    long rows, steps, num_actions;
};

struct network {
    long layers;
    const long *widths;
    float *const *weights, *const *biases, *const *weight_gradients, *const *bias_gradients;
    const int *relu;
    int has_tanh; /* of the value, the last output */
    float value_std, value_mean; /* of popart, else 1 and 0: the value is in units of the return */
    float illegal; /* logit of an illegal action */
};

static void scale(const struct field *field, float *numbers)
{
    for (long n = 0; n < field->width && field->period; n += field->period)
        for (long i = 0; i < field->period; i++)
            numbers[n + i] = (numbers[n + i] - field->offsets[i]) * field->factors[i];
    for (long n = 0; n < field->width && field->is_squashed; n++) {
        float size = fabsf(numbers[n]), sum = 1.0f + size; /* log1p, of which the rounding of the sum is made good */
        numbers[n] = copysignf(logf(sum) + (size - (sum - 1.0f)) / sum, numbers[n]);
    }
}

/* Fields as numbers, side by side in rows with zeros behind them. first: row of the fields to begin with. */
static void show(const struct field *fields, long num_fields, long first, long size, long row, float *into)
{
    for (long r = 0; r < size; r++) {
        float *to = into + r * row;
        for (const struct field *field = fields; field < fields + num_fields; to += field++->width) {
            long from = (first + r) * field->width;
            if (field->kind == 0) memcpy(to, (const float *)field->numbers + from, field->width * sizeof(float));
            else if (field->kind == 1)
                for (long n = 0; n < field->width; n++) to[n] = ((const int8_t *)field->numbers)[from + n];
            else
                for (long n = 0; n < field->width; n++) to[n] = ((const uint8_t *)field->numbers)[from + n];
            scale(field, to);
        }
        memset(to, 0, (into + (r + 1) * row - to) * sizeof(float));
    }
}

/* Adds to the gradients and to sums. Returns as `league_vtrace_loss`. */
int league_vtrace_update(const struct field *fields, long num_fields, const struct decisions *all,
                         const struct network *net, const struct settings *set, struct sums *sums)
{
    struct chain c = {.layers = net->layers, .widths = net->widths, .weights = net->weights, .relu = net->relu};
    long length = all->steps + 1, actions = all->num_actions, unrolls = BLOCK / length > 0 ? BLOCK / length : 1;
    long block = unrolls * length, input_row = row_of(net->widths[0]), last_row = row_of(actions + 1);
    long floats = forward_floats(&c) + backward_floats(&c, block) + block * (input_row + 2 * actions + 2) + 5 * LINE;
    for (long l = 0; l < net->layers; l++) floats += block * row_of(net->widths[l + 1]) + LINE;
    char *memory = memory_of(floats), *at = memory;
    if (!memory) return 1;
    begin_forward(&c, net->biases, &at);
    begin_backward(&c, block, 0, &at);
    float *shown = carve(&at, block * input_row), *outputs[MAX_LAYERS];
    for (long l = 0; l < net->layers; l++) outputs[l] = carve(&at, block * row_of(net->widths[l + 1]));
    float *logits = carve(&at, block * actions), *values = carve(&at, block);
    float *of_logits = carve(&at, block * actions), *of_values = carve(&at, block);
    int failed = 0;
    for (long first = 0; first < all->rows && !failed; first += unrolls) {
        long number = all->rows - first < unrolls ? all->rows - first : unrolls, size = number * length;
        const uint8_t *mask = all->mask ? all->mask + first * length * actions : 0;
        const float *last = outputs[net->layers - 1];
        show(fields, num_fields, first * length, size, input_row, shown);
        forward_block(&c, shown, input_row, size, outputs);
        for (long r = 0; r < size; r++) {
            for (long a = 0; a < actions; a++)
                logits[r * actions + a] = !mask || mask[r * actions + a] ? last[r * last_row + a] : net->illegal;
            float value = last[r * last_row + actions];
            values[r] = net->has_tanh ? tanhf(value) : value * net->value_std + net->value_mean;
        }
        long at_decision = first * all->steps;
        failed = league_vtrace_loss(logits, values, all->actions + at_decision, all->log_probs + at_decision,
                                    all->rewards + at_decision, all->discounts + at_decision, all->valid + at_decision,
                                    all->learn + at_decision, number, all->steps, actions, set, sums, of_logits, of_values);
        for (long r = 0; r < size; r++) {
            float *gradient = c.here + r * last_row;
            for (long a = 0; a < actions; a++)
                gradient[a] = !mask || mask[r * actions + a] ? of_logits[r * actions + a] : 0.0f;
            gradient[actions] = of_values[r] * (net->has_tanh ? 1.0f - values[r] * values[r] : 1.0f / net->value_std);
            memset(gradient + actions + 1, 0, (last_row - actions - 1) * sizeof(float));
        }
        if (!failed) backward_block(&c, shown, size, outputs, 0);
    }
    if (!failed) add_gradients(&c, net->weight_gradients, net->bias_gradients);
    free(memory);
    return failed;
}
