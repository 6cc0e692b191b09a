// The game between snapshots: the plane it lies in, the Nash mixture, alpha-rank, and the cycles.

import {diverging, ink, roleIndex, series} from './colours.js';
import {h, part, svg} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {fit} from '../kit/table.js';
import {elo, extentText, frame, keyboard, legend} from './elements.js';

const HINT = 'Point at a snapshot, or move with the arrow keys.';
const SIZE = 420;
const ROWS = 15;

/** Draws a MetaGame. options: pick (snapshot id) for a point that is clicked or entered. */
export function draw(root, data, options = {}) {
  drawDisc(root, data, options);
  drawBars(root, data, options);
}

/** The disc plot: a policy beats those that lie counter-clockwise of it, by twice the area of the triangle with the centre. */
export function drawDisc(root, data, options = {}) {
  root.append(part('disc', mountDisc, data, options));
}

function mountDisc(box, ...given) {
  let [data, options] = given;
  const {body, tell, head, id} = frame(box, {title: 'Disc plot of the payoff', hint: HINT, level: options.level});
  const holder = h('div', {class: 'plot-scroll plot-fit disc', tabindex: 0, id: `${id}-disc`, role: 'application',
    'aria-label': 'Disc plot. Left and right arrow keys move between snapshots, Enter opens one.'});
  const keys = h('div');
  body.append(keys, holder);
  let current = null;

  function redraw() {
    head({title: 'Disc plot of the payoff', summary: discSummary(data), table: data.members.length ? () => tableOf(data) : null});
    body.hidden = !data.members.length;
    if (!data.members.length) return;
    const roles = [...new Set(data.members.map((member) => member.role))];
    show(keys, legend(roles.map((role) => ({label: role.replaceAll('_', ' '), colour: series(roleIndex(role))}))));
    const chosen = data.members.findIndex((member) => member.policy === current);
    show(holder, disc(data, chosen, point, (policy) => options.pick && options.pick(policy)));
    if (chosen >= 0) tell(discText(data, chosen));
  }
  function point(index) {
    if (data.members[index].policy === current) return;
    current = data.members[index].policy;
    redraw();
  }
  redraw();
  keyboard(holder, {
    step: (dx, dy) => {
      const place = data.members.findIndex((member) => member.policy === current);
      point(Math.min(Math.max(place + (dx || dy), 0), data.members.length - 1));
    },
    enter: () => options.pick && current !== null && options.pick(current),
  });
  return {
    update(...next) {
      [data, options] = next;
      redraw();
    },
  };
}

const gainsOf = (members, index) => members.map((other) => members[index].x * other.y - members[index].y * other.x);

// Points in the colours of their roles; where one is chosen, in those of what it does to the others.
function disc(data, chosen, point, pick) {
  const members = data.members;
  const most = Math.max(...members.map((member) => Math.hypot(member.x, member.y)), 1e-6);
  const scale = (SIZE / 2 - 34) / most;
  const at = members.map(({x, y}) => ({x: SIZE / 2 + x * scale, y: SIZE / 2 - y * scale}));
  const gains = chosen < 0 ? [] : gainsOf(members, chosen);
  const largest = Math.max(...gains.map(Math.abs), 1e-6);
  const colours = diverging();
  const dots = members.map((member, index) => svg('circle', {
    key: member.policy, cx: at[index].x, cy: at[index].y, r: 5 + 11 * Math.sqrt(member.nash), class: 'disc-point', 'stroke-width': 1.5,
    fill: chosen < 0 ? series(roleIndex(member.role)) : index === chosen ? ink('ink') : colours(0.5 + gains[index] / (2 * largest))[0],
    stroke: ink(chosen < 0 || index === chosen ? 'ground' : 'muted'), onpointerenter: () => point(index), onclick: () => pick(member.policy)}));
  const ray = chosen < 0 ? [] : [svg('path', {key: 'ray', d: `M${SIZE / 2} ${SIZE / 2}L${at[chosen].x} ${at[chosen].y}`, stroke: ink('muted'),
    'stroke-width': 1.5, 'stroke-dasharray': '3 3'})];
  return svg('svg', {width: SIZE, height: SIZE, viewBox: `0 0 ${SIZE} ${SIZE}`, role: 'img', 'aria-label': discSummary(data)}, backdrop(), ray, dots);
}

function discText({members}, index) {
  const {policy, nash, alpha_rank: rank} = members[index];
  return `${policy}: ${elo(members[index].elo)}, Nash ${nash.toFixed(3)}, alpha-rank ${rank.toFixed(3)}. ` +
    `Blue: it beats them, by up to ${percent(Math.max(...gainsOf(members, index), 0))} over a half. Orange: it loses to them.`;
}

function percent(gain) {
  return `${(100 * gain).toFixed(0)} %`;
}

function backdrop() {
  const [middle, far] = [SIZE / 2, SIZE - 14];
  const radius = SIZE / 2 - 20;
  return [
    svg('circle', {cx: middle, cy: middle, r: radius, fill: ink('panel'), stroke: ink('line')}),
    svg('path', {d: `M14 ${middle}H${far}M${middle} 14V${far}`, stroke: ink('line')}),
    svg('path', {d: `M${middle + radius * 0.82} ${middle - radius * 0.5}A${radius} ${radius} 0 0 0 ${middle + radius * 0.5} ` +
      `${middle - radius * 0.82}l-1 9m1 -9l9 1`, fill: 'none', stroke: ink('muted'), 'stroke-width': 2}),
    svg('text', {x: middle + radius * 0.74, y: middle - radius * 0.74, class: 'plot-label', fill: ink('muted')}, 'is beaten'),
  ];
}

/** Bars of the Nash mixture and of alpha-rank, and the surest cycle. */
export function drawBars(root, data, options = {}) {
  root.append(part('bars', mountBars, data, options));
}

function mountBars(box, data, options) {
  const title = 'Nash mixture and alpha-rank';
  const {body, head} = frame(box, {title, level: options.level, saves: false});
  const update = (next, given) => {
    head({title, summary: barsSummary(next)});
    show(body, next.members.length ? bars(next, given) : null);
    narrow();
  };
  const narrow = () => {
    const region = body.querySelector('.plot-scroll');
    if (region) fit(region);
  };
  update(data, options);
  const resized = new ResizeObserver(narrow);
  resized.observe(box);
  return {update, remove() { resized.disconnect(); }};
}

function bars(data, options) {
  const rows = data.members.slice(0, ROWS).map((member) => h('tr', {key: member.policy},
    h('th', {scope: 'row'}, name(member, options)),
    h('td', {class: 'number'}, member.elo === null ? '' : member.elo.toFixed(0)),
    bar(member.nash, 0, null), bar(member.alpha_rank, 1, 'rank-3'),
    h('td', {class: 'number rank-1'}, signed(member.advantage))));
  const heads = ['snapshot', 'Elo', 'Nash', 'alpha-rank', 'beats it by'].map((label, place) =>
    h('th', {scope: 'col', class: {3: 'rank-3', 4: 'rank-1'}[place] || null}, label));
  const found = [h('p', {class: 'plot-note'}, 'Heaviest in the Nash mixture first; the last column is the win rate over a half against the mixture.'),
    h('div', {class: 'plot-scroll', tabindex: 0, role: 'region', 'aria-label': 'Nash mixture and alpha-rank'},
      h('table', {class: 'bars'}, h('caption', {class: 'visually-hidden'}, 'Nash mixture and alpha-rank of snapshots'),
        h('thead', {}, h('tr', {}, heads)), h('tbody', {}, rows)))];
  if (data.strongest.length) {
    const steps = data.strongest.map(([policy, rate]) => h('li', {}, `${policy} beats the next with ${(100 * rate).toFixed(0)} %`));
    found.push(h('p', {class: 'plot-note'}, 'The surest cycle:'), h('ol', {class: 'plot-cycle'}, steps));
  }
  return found;
}

function name(member, options) {
  const href = options.link ? options.link('snapshot', member.policy) : null;
  return href ? h('a', {href}, member.policy) : member.policy;
}

function bar(value, index, rank) {
  const width = 60;
  return h('td', {class: rank ? `bar ${rank}` : 'bar'},
    svg('svg', {width, height: 12, 'aria-hidden': 'true'},
      svg('rect', {width, height: 12, fill: ink('line'), opacity: 0.6}),
      svg('rect', {width: Math.max(width * value, value > 0.0005 ? 1 : 0), height: 12, fill: series(index)})),
    h('span', {class: 'number'}, value.toFixed(3)));
}

function signed(value) {
  const text = Math.abs(value).toFixed(3);
  return Number(text) === 0 ? text : `${value > 0 ? '+' : '\u2212'}${text}`;
}

function discSummary(data) {
  if (!data.members.length) return 'There are not two snapshots to compare yet.';
  return 'A snapshot beats those that lie counter-clockwise of it, seen from the centre; points on one ray are even. A strong ' +
    `order is an arc, a cycle goes round the centre. The plot holds ${(100 * data.explained).toFixed(0)} % of the payoff. ` +
    `${extentText(data.snapshots)}`.trim();
}

function barsSummary(data) {
  if (!data.members.length) return 'There are not two snapshots to compare yet.';
  const warning = data.misleads ? ' One number per policy misleads here.' : '';
  const text = data.text ? `${data.text[0].toUpperCase()}${data.text.slice(1).split(';')[0]}.` : '';
  return `${text}${warning} The Nash mixture is the one that no snapshot beats; counted are ${data.counts}.`.trim();
}

function tableOf(data) {
  return {
    columns: [{label: 'snapshot'}, {label: 'x', number: true}, {label: 'y', number: true}, {label: 'Nash', number: true},
      {label: 'alpha-rank', number: true}],
    rows: data.members.map((member) => [member.policy, member.x.toFixed(3), member.y.toFixed(3), member.nash.toFixed(3),
      member.alpha_rank.toFixed(3)]),
  };
}
