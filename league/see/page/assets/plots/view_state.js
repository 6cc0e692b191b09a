// The choices that all plots of the page share: the axis along which they run, smoothing, marks, and the range shown.

const KEY = 'plots';
const AT_FIRST = {x: 'env_steps', smoothing: 0, marks: true};
const listeners = new Set();

// A report that is opened from the disk may have no storage.
function stored(kind, otherwise) {
  try {
    return {...otherwise, ...JSON.parse(window[kind].getItem(KEY))};
  } catch {
    return {...otherwise};
  }
}

function store(kind, value) {
  try {
    window[kind].setItem(KEY, JSON.stringify(value));
  } catch {
    // nothing is kept then
  }
}

const state = stored('localStorage', AT_FIRST);
const ranges = stored('sessionStorage', {}); // "run|axis" -> [low, high]

/** The choices: x, smoothing in [0, 1) and marks. */
export function choices() {
  return state;
}

/** Change some of the choices; every plot follows. */
export function choose(changes) {
  Object.assign(state, changes);
  store('localStorage', state);
  for (const listener of listeners) listener();
}

/** The range of an axis that was zoomed to in a run, or null for all of it. */
export function rangeOf(run, axis) {
  return ranges[`${run}|${axis}`] || null;
}

/** Zoom every plot of a run along an axis; null shows all. */
export function zoom(run, axis, range) {
  if (range) ranges[`${run}|${axis}`] = range;
  else delete ranges[`${run}|${axis}`];
  store('sessionStorage', ranges);
  for (const listener of listeners) listener();
}

/** Calls back when a choice or a range changes; returns a function that ends it. */
export function onChoice(callback) {
  listeners.add(callback);
  return () => listeners.delete(callback);
}
