// Ratings of snapshots over their players' training, and scores against yardsticks.

import {draw as lines} from './lines.js';
import {elo, extentText, short, whole} from './elements.js';

/** Draws a RatingsOverTime. */
export function draw(root, data, options = {}) {
  const series = data.curves.map(({player, index, points}) => ({label: player, colour: index, ...columns(points, 'elo')}));
  const most = Math.max(...series.flatMap((one) => one.steps), 1);
  data.fixed.slice(0, 3).forEach((point, number) => series.push({
    label: point.policy, colour: 7 + 8 * (number + 1), steps: [0, most], values: [point.elo, point.elo]}));
  lines(root, {title: 'Ratings', x: 'trained steps of the player', y: 'Elo', series, summary: summaryOf(data),
    table: () => tableOf(data)}, {height: 340, ...options});
}

/** Draws a Yardsticks: one plot for each yardstick. */
export function drawYardsticks(root, data, options = {}) {
  for (const yardstick of new Set(data.curves.map((curve) => curve.yardstick))) {
    const curves = data.curves.filter((curve) => curve.yardstick === yardstick);
    const series = curves.map(({player, index, points}) => ({label: player, colour: index, ...columns(points, 'score')}));
    const summary = `Mean score of snapshots against ${yardstick}, draws one half, with 90 % intervals. It never changes: ` +
      'a league that gets stronger climbs here.';
    lines(root, {title: `Against ${yardstick}`, x: 'trained steps of the player', y: 'score', series, summary},
      {range: [0, 1], ...options});
  }
  for (const {probe, yardstick, scale, points} of data.probes) {
    const steps = points.map((point) => point.env_steps);
    const series = [{label: yardstick, ...columns(points, 'value'), steps}];
    const better = scale === 'loss' ? 'Less is better' : 'More is better';
    const last = points[points.length - 1];
    const now = last ? ` Now ${short(last.value)} (${last.snapshot}${last.note ? `, ${last.note}` : ''}).` : '';
    lines(root, {title: `Probe ${probe}: ${yardstick}`, x: 'env steps', y: scale, series,
      summary: `Measured while training goes, with intervals. ${better}.${now}`},
    {...(scale === 'score' ? {range: [0, 1]} : {}), ...options});
  }
}

function columns(points, field) {
  const take = (name) => points.map((point) => point[name]);
  return {steps: take('trained_steps'), values: take(field), low: take('low'), high: take('high')};
}

function summaryOf(data) {
  const best = data.curves.flatMap((curve) => curve.points).sort((a, b) => b.elo - a.elo)[0];
  if (!best) return 'Nothing is rated yet.';
  return `Elo of each player's snapshots with 95 % intervals; counted are ${data.counts}. Best: ${best.policy}, ` +
    `${elo(best.elo)} (${best.low.toFixed(0)} to ${best.high.toFixed(0)}). ${extentText(data.players)}`.trim();
}

function tableOf(data) {
  const points = [...data.curves.flatMap((curve) => curve.points), ...data.fixed].sort((a, b) => b.elo - a.elo);
  return {
    columns: [{label: 'policy'}, {label: 'Elo', number: true}, {label: '95 % interval', number: true},
      {label: 'games', number: true}, {label: 'trained steps', number: true}],
    rows: points.map((point) => [point.policy, point.elo.toFixed(0), `${point.low.toFixed(0)} to ${point.high.toFixed(0)}`,
      whole(point.games), whole(point.trained_steps)]),
  };
}
