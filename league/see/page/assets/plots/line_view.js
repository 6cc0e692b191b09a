// Lines along the chosen axis, as columns for uPlot: aligned, smoothed, with gaps and marks.

import {AXES, axesOf, between, extentOf, placesOf} from './course.js';
import {choices} from './view_state.js';

export const FEW = 60; // points that are marked one by one

/**
 * The lines along the chosen axis, with one column of places for all: uPlot takes undefined for "no point here" and null
 * for a gap. data, options: of `draw` in lines.js.
 */
export function viewOf(data, options) {
  const {course} = options, chosen = choices();
  const axis = data.x ? data.x : axesOf(course).includes(chosen.x) ? chosen.x : 'env_steps';
  const series = data.series.filter((one) => one.values.length);
  const lines = series.map((one, number) => ({...one, colour: (one.colour ?? number) % 8, dash: one.dash ?? Math.floor((one.colour ?? number) / 8),
    places: data.x ? one.steps : placesOf(one, axis, course)}));
  const gaps = axis === 'wall' && course ? course.gaps : [];
  const breaks = gaps.map(([from, to]) => (from + to) / 2);
  const places = [...new Set([...lines.flatMap((one) => [...one.places]), ...(lines.length ? breaks : [])])].sort((a, b) => a - b);
  const index = new Map(places.map((place, number) => [place, number]));
  const columns = [places];
  const weight = data.x ? 0 : chosen.smoothing;
  for (const line of lines) {
    const column = (values) => {
      const filled = new Array(places.length).fill(undefined);
      line.places.forEach((place, number) => { filled[index.get(place)] = values[number]; });
      for (const one of breaks) filled[index.get(one)] = null;
      return filled;
    };
    line.isSmoothed = weight > 0 && !line.low;
    line.shown = line.isSmoothed ? smoothed(line.values, weight) : line.values;
    columns.push(column(line.shown));
    if (line.low) columns.push(column(line.low), column(line.high));
    if (line.isSmoothed) columns.push(column(line.values));
  }
  const own = !data.x && course && axesOf(course).includes(axis);
  const marks = own && chosen.marks ? course.marks.map((mark) => ({...mark, at: axis === 'wall' ? mark.time : between(course.wall, course[axis], mark.time)})) : [];
  const extent = own ? extentOf(axis, course) : [places[0], places[places.length - 1]];
  const form = JSON.stringify([axis, lines.map((line) => [line.label, line.colour, line.isSmoothed, Boolean(line.low), line.values.length <= FEW]), weight]);
  return {axis, label: AXES[axis] || axis, lines, columns, gaps, marks, form,
    extent: [Math.min(extent[0], places[0]), Math.max(extent[1], places[places.length - 1])]};
}

// The mean of a value and those before it, whose weights fall off; without the pull of a first value of 0.
function smoothed(values, weight) {
  let [sum, total] = [0, 0];
  return values.map((value) => {
    sum = sum * weight + (1 - weight) * value;
    total = total * weight + (1 - weight);
    return sum / total;
  });
}
