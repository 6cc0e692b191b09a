// The part of numpy that exported networks use. A tensor is {shape, data}; bools are 0 and 1; row by row, as in numpy.
const np = (() => {
  const size = (shape) => shape.reduce((a, b) => a * b, 1);
  const tensor = (shape, data) => ({ shape, data });
  const of = (x) => (typeof x === 'object' ? x : tensor([], Float64Array.of(Number(x))));
  const place = (axis, rank) => (axis < 0 ? axis + rank : axis);

  function strides(shape) {
    const found = [];
    for (let axis = shape.length - 1, step = 1; axis >= 0; step *= shape[axis], axis -= 1) found[axis] = step;
    return found;
  }

  // A copy of the elements that start and steps of each axis name.
  function gather(data, start, shape, steps) {
    const out = new Float64Array(size(shape));
    const at = shape.map(() => 0);
    for (let n = 0, from = start; n < out.length; n += 1) {
      out[n] = data[from];
      for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
        at[axis] += 1;
        from += steps[axis];
        if (at[axis] < shape[axis]) break;
        from -= steps[axis] * shape[axis];
        at[axis] = 0;
      }
    }
    return tensor(shape, out);
  }

  function broadcast(x, shape) {
    if (x.shape.length === shape.length && x.shape.every((n, axis) => n === shape[axis])) return x;
    const missing = shape.length - x.shape.length;
    const own = strides(x.shape);
    const steps = shape.map((_, axis) => (axis < missing || x.shape[axis - missing] === 1 ? 0 : own[axis - missing]));
    return gather(x.data, 0, shape, steps);
  }

  function common(shapes) {
    const rank = Math.max(...shapes.map((shape) => shape.length));
    return Array.from({ length: rank }, (_, axis) => {
      const sizes = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1);
      return sizes.find((n) => n !== 1) ?? 1;
    });
  }

  const elementwise = (f) => (...given) => {
    if (given.every((x) => typeof x !== 'object')) return f(...given.map(Number));
    const all = given.map(of);
    const shape = common(all.map((x) => x.shape));
    const [a, b, c] = all.map((x) => broadcast(x, shape).data);
    const out = new Float64Array(size(shape));
    for (let n = 0; n < out.length; n += 1) out[n] = f(a[n], b?.[n], c?.[n]);
    return tensor(shape, out);
  };

  const add = elementwise((a, b) => a + b);
  const subtract = elementwise((a, b) => a - b);
  const multiply = elementwise((a, b) => a * b);
  const divide = elementwise((a, b) => a / b);
  const floor_divide = elementwise((a, b) => Math.floor(a / b));
  const power = elementwise((a, b) => a ** b);
  const bitwise_and = elementwise((a, b) => a & b);
  const equal = elementwise((a, b) => Number(a === b));
  const not_equal = elementwise((a, b) => Number(a !== b));
  const greater = elementwise((a, b) => Number(a > b));
  const greater_equal = elementwise((a, b) => Number(a >= b));
  const less = elementwise((a, b) => Number(a < b));
  const less_equal = elementwise((a, b) => Number(a <= b));
  const logical_and = elementwise((a, b) => Number(a !== 0 && b !== 0));
  const logical_or = elementwise((a, b) => Number(a !== 0 || b !== 0));
  const logical_not = elementwise((a) => Number(a === 0));
  const maximum = elementwise((a, b) => Math.max(a, b));
  const minimum = elementwise((a, b) => Math.min(a, b));
  const where = elementwise((a, b, c) => (a ? b : c));
  const negative = elementwise((a) => -a);
  const [abs, cos, exp, expm1, log, log1p, sign, sin, sqrt, tanh, trunc] = [
    'abs', 'cos', 'exp', 'expm1', 'log', 'log1p', 'sign', 'sin', 'sqrt', 'tanh', 'trunc',
  ].map((name) => elementwise((a) => Math[name](a)));
  const clip = (x, low, high) => minimum(maximum(x, low ?? -Infinity), high ?? Infinity);
  const casts = { bool_: (a) => Number(a !== 0), int32: Math.trunc, int64: Math.trunc };
  const asarray = (x, dtype) => (casts[dtype] ? elementwise(casts[dtype])(of(x)) : of(x));

  function reshape(x, wanted) {
    const known = wanted.reduce((a, b) => (b < 0 ? a : a * b), 1);
    return tensor(wanted.map((n) => (n < 0 ? x.data.length / known : n)), x.data);
  }
  function transpose(x, axes) {
    const steps = strides(x.shape);
    return gather(x.data, 0, axes.map((axis) => x.shape[axis]), axes.map((axis) => steps[axis]));
  }
  function expand_dims(x, axis) {
    const shape = [...x.shape];
    shape.splice(place(axis, shape.length + 1), 0, 1);
    return tensor(shape, x.data);
  }
  const squeeze = (x, { axis }) => {
    const gone = axis.map((each) => place(each, x.shape.length));
    return tensor(x.shape.filter((_, each) => !gone.includes(each)), x.data);
  };
  const expanded = (x, wanted) => {
    const missing = wanted.length - x.shape.length;
    return broadcast(x, wanted.map((n, axis) => (n < 0 ? x.shape[axis - missing] : n)));
  };
  function sliced(x, dim, start, end, step) {
    const axis = place(dim, x.shape.length);
    const all = x.shape[axis];
    const bound = (n) => Math.min(Math.max(n < 0 ? n + all : n, 0), all);
    const [from, to] = [bound(start ?? 0), bound(end ?? all)];
    const shape = [...x.shape];
    shape[axis] = Math.max(Math.ceil((to - from) / step), 0);
    const own = strides(x.shape);
    return gather(x.data, from * own[axis], shape, own.map((n, each) => (each === axis ? n * step : n)));
  }
  function take(x, index, { axis }) {
    const at = place(axis, x.shape.length);
    const chosen = of(index);
    const [before, after] = [x.shape.slice(0, at), x.shape.slice(at + 1)];
    const [rows, width] = [size(before), size(after)];
    const out = [];
    for (let row = 0; row < rows; row += 1) {
      for (const each of chosen.data) {
        const from = (row * x.shape[at] + place(each, x.shape[at])) * width;
        for (let n = 0; n < width; n += 1) out.push(x.data[from + n]);
      }
    }
    return tensor([...before, ...chosen.shape, ...after], Float64Array.from(out));
  }
  function take_along_axis(x, index, dim) {
    const axis = place(dim, x.shape.length);
    const [own, steps] = [strides(x.shape), strides(index.shape)];
    const data = index.data.map((each, n) => {
      let from = place(each, x.shape[axis]) * own[axis];
      for (let at = 0; at < own.length; at += 1) {
        if (at !== axis) from += (Math.floor(n / steps[at]) % index.shape[at]) * own[at];
      }
      return x.data[from];
    });
    return tensor(index.shape, data);
  }
  // x[index]: of a list or a tensor by rows.
  const item = (x, index) => (Array.isArray(x) ? x.at(index) : take(x, index, { axis: 0 }));

  function concatenate(parts, { axis }) {
    const at = place(axis, parts[0].shape.length);
    const shape = [...parts[0].shape];
    shape[at] = parts.reduce((total, part) => total + part.shape[at], 0);
    const out = new Float64Array(size(shape));
    const widths = parts.map((part) => size(part.shape.slice(at)));
    for (let row = 0, to = 0; row < size(shape.slice(0, at)); row += 1) {
      parts.forEach((part, n) => {
        out.set(part.data.subarray(row * widths[n], (row + 1) * widths[n]), to);
        to += widths[n];
      });
    }
    return tensor(shape, out);
  }
  const cumsum = (list) => list.map((_, n) => list.slice(0, n + 1).reduce((a, b) => a + b));
  const split = (x, places, { axis }) => {
    const ends = [...places, x.shape.at(axis)];
    return ends.map((end, n) => sliced(x, axis, n ? ends[n - 1] : 0, end, 1));
  };
  const full = (shape, value) => tensor(shape, new Float64Array(size(shape)).fill(Number(value)));
  const full_like = (x, value) => full(x.shape, value);
  const arange = (start, end, step) => {
    const data = Float64Array.from({ length: Math.ceil((end - start) / step) }, (_, n) => start + n * step);
    return tensor([data.length], data);
  };
  function padded(x, pad, value) {
    return x.shape.reduce((whole, _, axis) => {
      const at = 2 * (x.shape.length - 1 - axis);
      const edge = (count) => full(whole.shape.map((n, each) => (each === axis ? count : n)), value);
      const [before, after] = [pad[at] ?? 0, pad[at + 1] ?? 0];
      return before || after ? concatenate([edge(before), whole, edge(after)], { axis }) : whole;
    }, x);
  }

  // The reduced axes go last, so that each result is that of one stretch of the data.
  const reduction = (f) => (x, { axis, keepdims = false }) => {
    const gone = [axis].flat().map((each) => place(each, x.shape.length));
    const kept = x.shape.map((_, each) => each).filter((each) => !gone.includes(each));
    const { data } = transpose(x, [...kept, ...gone]);
    const width = size(gone.map((each) => x.shape[each]));
    const out = new Float64Array(size(kept.map((each) => x.shape[each])));
    for (let n = 0; n < out.length; n += 1) out[n] = f(data.subarray(n * width, (n + 1) * width));
    const shape = x.shape.map((n, each) => (gone.includes(each) ? 1 : n));
    return tensor(keepdims ? shape : kept.map((each) => x.shape[each]), out);
  };
  const total = (list) => list.reduce((a, b) => a + b, 0);
  const sum = reduction(total);
  const mean = reduction((list) => total(list) / list.length);
  const max = reduction((list) => list.reduce((a, b) => Math.max(a, b), -Infinity));
  const any = reduction((list) => Number(list.some((a) => a !== 0)));
  const argmax = reduction((list) => list.indexOf(list.reduce((a, b) => Math.max(a, b), -Infinity)));

  function matmul(one, other) {
    const [rows, inner, columns] = [one.shape.at(-2), one.shape.at(-1), other.shape.at(-1)];
    const batch = common([one.shape.slice(0, -2), other.shape.slice(0, -2)]);
    const [a, b] = [broadcast(one, [...batch, rows, inner]), broadcast(other, [...batch, inner, columns])];
    const out = new Float64Array(size(batch) * rows * columns);
    for (let row = 0; row < size(batch) * rows; row += 1) {
      const below = Math.floor(row / rows) * inner * columns;
      for (let k = 0; k < inner; k += 1) {
        const factor = a.data[row * inner + k];
        for (let n = 0; factor && n < columns; n += 1) out[row * columns + n] += factor * b.data[below + k * columns + n];
      }
    }
    return tensor([...batch, rows, columns], out);
  }

  const log_softmax = (x, axis) => {
    const shifted = subtract(x, max(x, { axis, keepdims: true }));
    return subtract(shifted, log(sum(exp(shifted), { axis, keepdims: true })));
  };
  const layer_norm = (x, shape, weight, bias, eps) => {
    const over = { axis: shape.map((_, n) => n - shape.length), keepdims: true };
    const centred = subtract(x, mean(x, over));
    const scale = divide(1, sqrt(add(mean(multiply(centred, centred), over), eps)));
    return [add(multiply(multiply(centred, scale), weight), bias), mean(x, over), scale];
  };
  function convolution(x, weight, bias, stride, padding) {
    const [down, across] = [padding[0], padding.at(-1)];
    const seen = padded(x, [across, across, down, down], 0);
    const [count, channels, height, width] = seen.shape;
    const [outputs, , tall, wide] = weight.shape;
    const [rows, columns] = [Math.floor((height - tall) / stride[0]) + 1, Math.floor((width - wide) / stride.at(-1)) + 1];
    const out = new Float64Array(count * outputs * rows * columns);
    for (let n = 0, to = 0; n < count; n += 1) {
      for (let o = 0; o < outputs; o += 1) {
        for (let row = 0; row < rows; row += 1) {
          for (let column = 0; column < columns; column += 1, to += 1) {
            let value = bias ? bias.data[o] : 0;
            for (let c = 0; c < channels; c += 1) {
              for (let i = 0; i < tall; i += 1) {
                const from = ((n * channels + c) * height + row * stride[0] + i) * width + column * stride.at(-1);
                const by = ((o * channels + c) * tall + i) * wide;
                for (let j = 0; j < wide; j += 1) value += seen.data[from + j] * weight.data[by + j];
              }
            }
            out[to] = value;
          }
        }
      }
    }
    return tensor([count, outputs, rows, columns], out);
  }
  function max_pool(x, window, stride, padding) {
    const [down, across] = [padding[0], padding.at(-1)];
    const seen = padded(x, [across, across, down, down], -Infinity);
    let best = null;
    for (let i = 0; i < window[0]; i += 1) {
      for (let j = 0; j < window.at(-1); j += 1) {
        const last = (axis, length, step) => Math.floor((seen.shape[axis] - length) / step) * step + 1;
        const rows = sliced(seen, 2, i, i + last(2, window[0], stride[0]), stride[0]);
        const one = sliced(rows, 3, j, j + last(3, window.at(-1), stride.at(-1)), stride.at(-1));
        best = best ? maximum(best, one) : one;
      }
    }
    return [best, null];
  }

  return {
    abs, add, any, arange, argmax, asarray, bitwise_and, clip, concatenate, convolution, cos, cumsum, divide, equal, exp,
    expand_dims, expanded, expm1, floor_divide, full, full_like, greater, greater_equal, item, layer_norm, less,
    less_equal, log, log1p, log_softmax, logical_and, logical_not, logical_or, matmul, max, max_pool, maximum, mean,
    minimum, multiply, negative, not_equal, padded, power, reshape, sign, sin, sliced, split, sqrt, squeeze, subtract,
    sum, take, take_along_axis, tanh, tensor, transpose, trunc, where,
  };
})();
