// The game between snapshots: the plane it lies in, the Nash mixture, alpha-rank, and the cycles.

import {diverging, ink, series} from './colours.js';
import {h, svg} from '../kit/dom.js';
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
  const {body, tell, id} = frame(root, {title: 'Disc plot of the payoff', summary: discSummary(data), hint: HINT, level: options.level,
    table: () => tableOf(data)});
  if (!data.members.length) return;
  const members = data.members;
  const roles = [...new Set(members.map((member) => member.role))];
  const most = Math.max(...members.map((member) => Math.hypot(member.x, member.y)), 1e-6);
  const scale = (SIZE / 2 - 34) / most;
  const at = members.map(({x, y}) => ({x: SIZE / 2 + x * scale, y: SIZE / 2 - y * scale}));
  const holder = h('div', {class: 'plot-scroll plot-fit disc', tabindex: 0, id: `${id}-disc`, role: 'application',
    'aria-label': 'Disc plot. Left and right arrow keys move between snapshots, Enter opens one.'});
  const picture = svg('svg', {width: SIZE, height: SIZE, viewBox: `0 0 ${SIZE} ${SIZE}`, role: 'img', 'aria-label': discSummary(data)}, backdrop());
  const ray = svg('path', {stroke: ink('muted'), 'stroke-width': 1.5, 'stroke-dasharray': '3 3'});
  picture.append(ray);
  const dots = members.map((member, index) => svg('circle', {
    cx: at[index].x, cy: at[index].y, r: 5 + 11 * Math.sqrt(member.nash), fill: series(roles.indexOf(member.role)),
    stroke: ink('ground'), 'stroke-width': 1.5, class: 'disc-point', onpointerenter: () => point(index),
    onclick: () => options.pick && options.pick(member.policy)}));
  const ring = svg('circle', {r: 8, fill: ink('ink'), stroke: ink('ground'), 'stroke-width': 2, visibility: 'hidden',
    'pointer-events': 'none'});
  picture.append(...dots, ring);
  body.append(legend(roles.map((role, index) => ({label: role.replaceAll('_', ' '), colour: series(index)}))), holder);
  holder.append(picture);
  let current = -1;
  function point(index) {
    current = index;
    ray.setAttribute('d', `M${SIZE / 2} ${SIZE / 2}L${at[index].x} ${at[index].y}`);
    for (const [name, value] of Object.entries({cx: at[index].x, cy: at[index].y, visibility: 'visible'})) ring.setAttribute(name, value);
    const gains = members.map((other) => members[index].x * other.y - members[index].y * other.x);
    const colours = diverging();
    const largest = Math.max(...gains.map(Math.abs), 1e-6);
    members.forEach((other, number) => {
      const fill = number === index ? ink('ink') : colours(0.5 + gains[number] / (2 * largest))[0];
      dots[number].setAttribute('fill', fill);
      dots[number].setAttribute('stroke', ink(number === index ? 'ground' : 'muted'));
    });
    const {policy, nash, alpha_rank: rank} = members[index];
    tell(`${policy}: ${elo(members[index].elo)}, Nash ${nash.toFixed(3)}, alpha-rank ${rank.toFixed(3)}. ` +
      `Blue: it beats them, by up to ${percent(Math.max(...gains, 0))} over a half. Orange: it loses to them.`);
  }
  keyboard(holder, {
    step: (dx, dy) => point(Math.min(Math.max(current + (dx || dy), 0), members.length - 1)),
    enter: () => options.pick && current >= 0 && options.pick(members[current].policy),
  });
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
  const {body} = frame(root, {title: 'Nash mixture and alpha-rank', summary: barsSummary(data), level: options.level});
  if (!data.members.length) return;
  const rows = data.members.slice(0, ROWS).map((member) => h('tr', {},
    h('th', {scope: 'row'}, name(member, options)),
    h('td', {class: 'number'}, member.elo === null ? '' : member.elo.toFixed(0)),
    bar(member.nash, 0), bar(member.alpha_rank, 1),
    h('td', {class: 'number'}, signed(member.advantage))));
  const head = ['snapshot', 'Elo', 'Nash', 'alpha-rank', 'v Nash'].map((label) =>
    h('th', {scope: 'col'}, label));
  body.append(h('div', {class: 'plot-scroll', tabindex: 0, role: 'region', 'aria-label': 'Nash mixture and alpha-rank'},
    h('table', {class: 'bars'}, h('caption', {}, 'Snapshots, heaviest in the Nash mixture first; v Nash: win rate over a half against it'),
      h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows))));
  if (data.strongest.length) {
    const steps = data.strongest.map(([policy, rate]) => h('li', {}, `${policy} beats the next with ${(100 * rate).toFixed(0)} %`));
    body.append(h('p', {class: 'plot-note'}, 'The surest cycle:'), h('ol', {class: 'plot-cycle'}, steps));
  }
}

function name(member, options) {
  const href = options.link ? options.link('snapshot', member.policy) : null;
  return href ? h('a', {href}, member.policy) : member.policy;
}

function bar(value, index) {
  const width = 60;
  return h('td', {class: 'bar'},
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
