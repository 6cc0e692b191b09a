// Ratings of snapshots over their players' training, and scores against yardsticks.

import {roleIndex} from './colours.js';
import {draw as lines} from './lines.js';
import {elo, extentText, moreText, whole} from './elements.js';

const OF_PLAYER = 'trained steps of the player';

/** Draws a RatingsOverTime. */
export function draw(root, data, options = {}) {
  const series = data.curves.map(({player, role, index, points}) => ({label: player, colour: roleIndex(role), dash: index, ...columns(points, 'elo', 'policy', options)}));
  const most = Math.max(...series.flatMap((one) => one.steps), 1);
  data.fixed.slice(0, 3).forEach((point, number) => series.push({
    label: point.policy, colour: 7, dash: number + 1, values: [point.elo, point.elo], ...ends(most, options)}));
  lines(root, {title: 'Ratings', ...axis(options), y: 'Elo', series, summary: summaryOf(data),
    table: (limit) => tableOf(data, limit)}, {height: 340, ...options});
}

/** Draws a Yardsticks: all scores against bots in one plot, all probes of one scale in another. */
export function drawYardsticks(root, data, options = {}) {
  const names = [...new Set(data.curves.map((curve) => curve.yardstick))];
  if (names.length) {
    const several = new Set(data.curves.map((curve) => curve.player)).size > 1;
    const series = data.curves.map(({yardstick, player, role, index, points}) => ({
      label: several ? `${player} against ${yardstick}` : yardstick,
      ...(names.length > 1 ? {colour: names.indexOf(yardstick), dash: index} : {colour: roleIndex(role), dash: index}),
      ...columns(points, 'score', 'snapshot', options)}));
    lines(root, {title: names.length === 1 ? `Score against ${names[0]}` : 'Score against bots', ...axis(options), y: 'score', series,
      summary: `Mean score of snapshots in the league's own games, draws one half, with 90 % intervals. Bots never change: ` +
        'a league that gets stronger climbs here.'}, {range: [0, 1], ...options});
  }
  drawProbes(root, data.probes, options);
}

const CHANGING = ['past', 'best_response', 'exploiter']; // probes whose opponents change with the league

/** Draws a list of ProbeCurve: all scores against what never changes on one axis, other scales and others by themselves. */
export function drawProbes(root, probes, options = {}) {
  const isFixed = (one) => !CHANGING.includes(one.probe);
  for (const [title, scale, drawn] of groupsOf(probes.filter(isFixed), 'Score against yardsticks', 'Yardsticks')) {
    plot(root, title, scale, drawn, 'Measured while training goes, with intervals, against what never changes.', options);
  }
  if (options.fixedOnly) return;
  for (const [title, scale, drawn] of groupsOf(probes.filter((one) => !isFixed(one)), 'Score against its past and exploiters', 'Past and exploiters')) {
    plot(root, title, scale, drawn, 'Measured while training goes, with intervals; the opponents change with the league.', options);
  }
}

function groupsOf(probes, ofScores, ofOthers) {
  return [...new Set(probes.map((one) => one.scale))].map((scale) =>
    [scale === 'score' ? ofScores : `${ofOthers}: ${scale}`, scale, probes.filter((one) => one.scale === scale)]);
}

function plot(root, title, scale, drawn, summary, options) {
  const series = drawn.map(({yardstick, points}) => ({label: yardstick.replaceAll('_', ' '), steps: points.map((point) => point.env_steps), ...bands(points, 'value')}));
  const notes = drawn.flatMap(({yardstick, points}) => {
    const last = points[points.length - 1];
    return last && last.note ? [`${yardstick.replaceAll('_', ' ')}: ${last.note}.`] : [];
  });
  lines(root, {title, y: scale, series, summary: [summary, scale === 'loss' ? 'Less is better.' : 'More is better.', ...notes].join(' ')},
    {...(scale === 'score' ? {range: [0, 1]} : {}), ...options});
}

// Along the axis of the page where it knows when each snapshot came, else along the player's own steps.
function axis({course}) {
  return course ? {} : {x: OF_PLAYER};
}

function columns(points, field, name, {course}) {
  if (!course) return {steps: points.map((point) => point.trained_steps), ...bands(points, field)};
  const known = points.filter((point) => course.snapshots[point[name]] !== undefined);
  const times = known.map((point) => course.snapshots[point[name]]);
  return {steps: [], times, ...bands(known, field)};
}

function bands(points, field) {
  const take = (name) => points.map((point) => point[name]);
  return {values: take(field), low: take('low'), high: take('high')};
}

function ends(most, {course}) {
  return course ? {steps: [], times: [course.wall[0], course.wall[course.wall.length - 1]]} : {steps: [0, most]};
}

function summaryOf(data) {
  const best = data.curves.flatMap((curve) => curve.points).sort((a, b) => b.elo - a.elo)[0];
  if (!best) return 'Nothing is rated yet.';
  return `Elo of each player's snapshots with 95 % intervals; counted are ${data.counts}. Best: ${best.policy}, ` +
    `${elo(best.elo)} (${best.low.toFixed(0)} to ${best.high.toFixed(0)}). ${extentText(data.players)}`.trim();
}

function tableOf(data, limit) {
  const points = [...data.curves.flatMap((curve) => curve.points), ...data.fixed].sort((a, b) => b.elo - a.elo);
  return {
    columns: [{label: 'policy'}, {label: 'Elo', number: true}, {label: '95 % interval', number: true},
      {label: 'games', number: true}, {label: 'trained steps', number: true}],
    rows: points.slice(0, limit).map((point) => [point.policy, point.elo.toFixed(0), `${point.low.toFixed(0)} to ${point.high.toFixed(0)}`,
      whole(point.games), whole(point.trained_steps)]),
    more: moreText(points.length, limit),
  };
}
