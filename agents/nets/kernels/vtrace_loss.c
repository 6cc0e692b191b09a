/* The V-trace loss of a categorical policy and its gradient; the same as `_by_torch` in losses/one_pass.py, row by row.

   B rows, T steps, A actions. Called by losses/one_pass.py. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    float gamma, value_cost, entropy_cost, advantage_scale, advantage_limit;
    float clip_rho, clip_c, clip_pg_rho, lambda, log_of_clip, max_log_ratio;
    int corrects;
};

struct sums {
    double policy, squared_error, entropy, steps, rho_clipped, rho, squared_rho, log_rho, squared_advantage, target,
        squared_target;
};

/* exp of x <= 0 to a unit in the last place, and 0 where it would be smaller than any normal number. No branch, so that
   the compiler makes vectors of it. Source: Cephes, expf.c. */
static inline float exp_of_negative(float x)
{
    float bounded = x < -87.0f ? -87.0f : x;
    float whole = __builtin_rintf(bounded * 1.44269504f);
    float rest = bounded - whole * 0.693359375f + whole * 2.12194440e-4f;
    float sum = 1.9875691500e-4f;
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    int32_t bits = ((int32_t)whole + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return x < -87.0f ? 0.0f : sum * power;
}

/* Not fminf: what is not a number must stay so, or an update with it would not be noticed. */
static float at_most(float value, float bound) { return value > bound ? bound : value; }
static float limited(float value, float bound) { return value < -bound ? -bound : at_most(value, bound); }

/* Log-probabilities of T steps into table, probabilities into probs; entropies of the steps. */
static void softmax(const float *logits, long steps, long actions, float *table, float *probs, float *entropies)
{
    for (long t = 0; t < steps; t++) {
        float largest = -INFINITY;
        for (long a = 0; a < actions; a++) largest = fmaxf(largest, logits[t * actions + a]);
        for (long a = 0; a < actions; a++) table[t * actions + a] = logits[t * actions + a] - largest;
    }
    for (long at = 0; at < steps * actions; at++) probs[at] = exp_of_negative(table[at]);
    for (long t = 0; t < steps; t++) {
        float total = 0.0f, entropy = 0.0f;
        for (long a = 0; a < actions; a++) total += probs[t * actions + a];
        float log_total = logf(total), share = 1.0f / total;
        for (long a = 0; a < actions; a++) {
            float log_prob = table[t * actions + a] -= log_total;
            float prob = probs[t * actions + a] *= share;
            entropy -= prob * log_prob;
        }
        entropies[t] = entropy;
    }
}

/* Targets and advantages of one row, from its last step to its first. */
static void vtrace(const float *values, const float *log_rhos, const float *rewards, const float *discounts,
                   const uint8_t *valid, long steps, const struct settings *set, float *targets, float *advantages)
{
    float carried = 0.0f;
    for (long t = steps - 1; t >= 0; t--) {
        float sum = 0.0f;
        if (valid[t]) {
            float rho = set->corrects ? expf(log_rhos[t]) : 1.0f, discount = discounts[t] * set->gamma;
            sum = (rewards[t] + discount * values[t + 1] - values[t]) * at_most(rho, set->clip_rho);
            sum += at_most(rho, set->clip_c) * discount * set->lambda * carried;
            float next = t + 1 < steps ? targets[t + 1] : values[t + 1];
            advantages[t] = (rewards[t] + discount * next - values[t]) * at_most(rho, set->clip_pg_rho);
        } else {
            advantages[t] = 0.0f;
        }
        carried = sum;
        targets[t] = sum + values[t];
    }
}

/* logits [B][T + 1][A], values [B][T + 1]; the others [B][T]. Gradients are of the shape of what they belong to.
   Returns 0, 1 without memory, or 2 where an action is none of A. */
int league_vtrace_loss(const float *logits, const float *values, const int64_t *actions, const float *log_probs,
                       const float *rewards, const float *discounts, const uint8_t *valid, const uint8_t *learn,
                       long rows, long steps, long num_actions, const struct settings *set, struct sums *sums,
                       float *of_logits, float *of_values)
{
    for (long at = 0; at < rows * steps; at++)
        if (actions[at] < 0 || actions[at] >= num_actions) return 2;
    float *memory = malloc((2 * num_actions + 4) * steps * sizeof(float));
    if (!memory) return 1;
    float *table = memory, *probs = table + steps * num_actions, *entropies = probs + steps * num_actions;
    float *log_rhos = entropies + steps, *targets = log_rhos + steps, *advantages = targets + steps;
    for (long b = 0; b < rows; b++) {
        const float *value = values + b * (steps + 1);
        float *gradients = of_logits + b * (steps + 1) * num_actions, *of_value = of_values + b * (steps + 1);
        long first = b * steps;
        softmax(logits + b * (steps + 1) * num_actions, steps, num_actions, table, probs, entropies);
        for (long t = 0; t < steps; t++) log_rhos[t] = table[t * num_actions + actions[first + t]] - log_probs[first + t];
        vtrace(value, log_rhos, rewards + first, discounts + first, valid + first, steps, set, targets, advantages);
        for (long t = 0; t < steps; t++) {
            float *gradient = gradients + t * num_actions;
            of_value[t] = 0.0f;
            if (!learn[first + t]) {
                memset(gradient, 0, num_actions * sizeof(float));
                continue;
            }
            const float *log_prob = table + t * num_actions, *prob = probs + t * num_actions;
            long chosen = actions[first + t];
            float of_taken = advantages[t] * (-1.0f / set->advantage_scale), error = value[t] - targets[t];
            for (long a = 0; a < num_actions; a++)
                gradient[a] = prob[a] * (set->entropy_cost * (log_prob[a] + entropies[t]) - of_taken);
            gradient[chosen] += of_taken;
            of_value[t] = error * set->value_cost;
            double rho = expf(limited(log_rhos[t], set->max_log_ratio));
            double advantage = limited(advantages[t], set->advantage_limit);
            sums->policy += (double)log_prob[chosen] * of_taken;
            sums->squared_error += (double)error * error;
            sums->entropy += entropies[t];
            sums->steps += 1.0;
            sums->rho_clipped += (set->corrects ? log_rhos[t] : 0.0f) > set->log_of_clip;
            sums->rho += rho;
            sums->squared_rho += rho * rho;
            sums->log_rho += log_rhos[t];
            sums->squared_advantage += advantage * advantage;
            sums->target += targets[t];
            sums->squared_target += (double)targets[t] * targets[t];
        }
        memset(gradients + steps * num_actions, 0, num_actions * sizeof(float));
        of_value[steps] = 0.0f;
    }
    free(memory);
    return 0;
}
