/* Forward pass of plain networks and one draw for each slot, block by block. Called by acting/plain_acting.py. */
#include "vtrace_update.c"

struct turn {
    const uint8_t *mask; /* [slots of the turn][A], or null where every action is legal */
    const int64_t *slots; /* the rows of fields and mask to act for, those of the first network first */
    const float *noise;   /* [rows], uniform in [0, 1) */
    int64_t *actions;
    float *log_probs;
    long num_actions;
};

/* Draw an action of each row by inverting its distribution function, which does not rise at an illegal one. */
static void draw(const float *table, const float *probs, long size, long actions, const float *noise, int64_t *drawn,
                 float *log_probs)
{
    for (long r = 0; r < size; r++, table += actions, probs += actions) {
        float total = 0.0f, risen = 0.0f;
        for (long a = 0; a < actions; a++) total += probs[a];
        float bound = noise[r] * total;
        long chosen = 0;
        for (long a = 0; a < actions; a++) chosen += (risen += probs[a]) <= bound;
        drawn[r] = chosen < actions ? chosen : actions - 1;
        log_probs[r] = table[drawn[r]];
    }
}

static struct chain chain_of(const struct network *net)
{
    return (struct chain){.layers = net->layers, .widths = net->widths, .weights = net->weights, .relu = net->relu};
}

/* Floats of a network's packed weights and biases. */
long league_packed_floats(const struct network *net)
{
    struct chain c = chain_of(net);
    return forward_floats(&c);
}

/* Pack the weights as they are now; into begins a cache line. */
void league_pack(const struct network *net, float *into)
{
    struct chain c = chain_of(net);
    char *at = (char *)into;
    begin_forward(&c, net->biases, &at);
}

/* net: any of the networks, which have equal layers. packed: weights of each by `league_pack`. sizes: rows of each.
   Returns 0, or 1 without memory. */
int league_act(const struct field *fields, long num_fields, const struct turn *turn, const struct network *net,
               const float *const *packed, const long *sizes, long num_networks)
{
    struct chain c = chain_of(net);
    long actions = turn->num_actions, input_row = row_of(c.widths[0]), last_row = row_of(actions + 1);
    long floats = BLOCK * (input_row + 3 * actions + 1) + 5 * LINE;
    for (long l = 0; l < c.layers; l++) floats += BLOCK * row_of(c.widths[l + 1]) + LINE;
    char *memory = memory_of(floats), *at = memory;
    if (!memory) return 1;
    float *shown = carve(&at, BLOCK * input_row), *outputs[MAX_LAYERS];
    for (long l = 0; l < c.layers; l++) outputs[l] = carve(&at, BLOCK * row_of(c.widths[l + 1]));
    float *logits = carve(&at, BLOCK * actions), *table = carve(&at, BLOCK * actions);
    float *probs = carve(&at, BLOCK * actions), *entropies = carve(&at, BLOCK);
    for (long n = 0, begin = 0; n < num_networks; begin += sizes[n++]) {
        if (!sizes[n]) continue;
        char *weights = (char *)packed[n];
        lay_forward(&c, &weights);
        for (long first = begin; first < begin + sizes[n]; first += BLOCK) {
            long left = begin + sizes[n] - first, size = left < BLOCK ? left : BLOCK;
            for (long r = 0; r < size; r++)
                show(fields, num_fields, turn->slots[first + r], 1, input_row, shown + r * input_row);
            forward_block(&c, shown, input_row, size, outputs);
            for (long r = 0; r < size; r++) {
                const float *last = outputs[c.layers - 1] + r * last_row;
                const uint8_t *mask = turn->mask ? turn->mask + turn->slots[first + r] * actions : 0;
                for (long a = 0; a < actions; a++)
                    logits[r * actions + a] = !mask || mask[a] ? last[a] : net->illegal;
            }
            softmax(logits, size, actions, table, probs, entropies);
            draw(table, probs, size, actions, turn->noise + first, turn->actions + first, turn->log_probs + first);
        }
    }
    free(memory);
    return 0;
}
