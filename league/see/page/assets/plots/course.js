// The course of a run: the same moments counted in env steps, trained steps, wall time and core-seconds.

/** Name of an axis -> what stands below a plot. */
export const AXES = {
  env_steps: 'env steps', trained_steps: 'trained steps of the league', wall: 'wall time, UTC', core_seconds: 'core-seconds',
};

/** The axes that a course can show; env steps alone where there is none. */
export function axesOf(course) {
  if (!course || course.wall.length < 2) return ['env_steps'];
  return Object.keys(AXES).filter((name) => course[name].length && course[name][course[name].length - 1] > course[name][0]);
}

/** Where the points of a series stand on an axis. series: {steps, times?}; times are wall times, seconds since 1970. */
export function placesOf(series, axis, course) {
  if (axis === 'env_steps' && series.steps && series.steps.length) return series.steps;
  if (series.times && series.times.length) return axis === 'wall' ? series.times : series.times.map((time) => between(course.wall, course[axis], time));
  return (series.steps || []).map((step) => between(course.env_steps, course[axis], step));
}

/** The ends of an axis, which all plots share. */
export function extentOf(axis, course) {
  const places = course[axis];
  return [places[0], places[places.length - 1]];
}

/** The value of `to` where `from`, which never falls, has a value; straight lines lie between the moments. */
export function between(from, to, value) {
  let [low, high] = [0, from.length - 1];
  if (value <= from[low]) return to[low];
  if (value >= from[high]) return to[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= value) low = middle;
    else high = middle;
  }
  const span = from[high] - from[low];
  return span ? to[low] + ((to[high] - to[low]) * (value - from[low])) / span : to[high];
}

/** A wall time as short as its neighbours allow; span: seconds between the ends of what is shown. */
export function timeText(wall, span) {
  const text = new Date(wall * 1000).toISOString();
  return span < 900 ? text.slice(11, 19) : span < 172800 ? text.slice(11, 16) : text.slice(5, 16).replace('T', ' ');
}
