// The lineage of snapshots: a lane for each player over its trained steps, with resets and transplants between lanes.

import {ink, roleIndex, series} from './colours.js';
import {h, part, svg} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {counted} from '../kit/format.js';
import {elo, extentText, frame, keyboard, legend, marker, moreText, short, whole} from './elements.js';

const HINT = 'Point at a snapshot, or move with the arrow keys.';
const SHAPES = {first: 'square', trained: 'circle', reset: 'diamond', transplant: 'triangle', outside: 'square'};
const HOW = {first: 'first weights', trained: 'trained on', reset: 'after a reset', transplant: 'after a transplant',
  outside: 'from outside'};
const AXES = {league_steps: 'trained steps of the whole league', trained_steps: 'trained steps of the player'};
const [LANE, TOP, RIGHT] = [46, 16, 24];

/** Draws a LineageGraph in a part of its own. options: title, level, pick (snapshot id) for a node that is clicked or entered. */
export function draw(root, data, options = {}) {
  root.append(part('lineage', mount, data, options));
}

function mount(box, ...given) {
  let [data, options] = given;
  const {body, tell, head, id} = frame(box, {title: options.title || 'Lineage', hint: HINT, level: options.level});
  const holder = h('div', {class: 'plot-scroll lineage', tabindex: 0, id: `${id}-graph`, role: 'application',
    'aria-label': 'Lineage. Left and right move along a player, up and down between players, Enter opens a snapshot.'});
  const keys = h('div'), controls = h('div', {class: 'plot-controls'});
  body.append(controls, keys, holder);
  const focus = svg('circle', {r: 11, fill: 'none', stroke: ink('ink'), 'stroke-width': 2.5, visibility: 'hidden', 'pointer-events': 'none'});
  let axisName = 'league_steps', view = null, current = null;

  function redraw() {
    head({title: options.title || 'Lineage', summary: summaryOf(data), table: data.nodes.length ? (most) => tableOf(data, most) : null,
      picture: () => holder.querySelector('svg')});
    body.hidden = !data.nodes.length;
    if (!data.nodes.length) return;
    show(controls, h('label', {}, 'Along ', h('select', {id: `${id}-along`, value: axisName, onchange: (event) => {
      axisName = event.currentTarget.value;
      redraw();
    }}, Object.entries(AXES).map(([name, label]) => h('option', {value: name}, label)))));
    show(keys, legendOf(data));
    view = layout(data, axisName, holder.clientWidth || 1100);
    const picture = svg('svg', {width: view.width, height: view.height, role: 'img', 'aria-label': summaryOf(data)});
    picture.append(...axis(view), ...lanes(data, view), ...links(data, view));
    data.nodes.forEach((node, index) => {
      const {x, y} = view.at[index];
      picture.append(marker(SHAPES[node.kind] || 'circle', x, y, 5.5, series(roleIndex(node.role)), {
        key: node.snapshot, stroke: ink('ground'), 'stroke-width': 1.5, class: 'lineage-node',
        onpointerenter: () => point(index), onclick: () => options.pick && options.pick(node.snapshot)}));
    });
    show(holder, picture);
    holder.firstChild.append(focus);
    mark();
  }
  function mark() {
    const index = data.nodes.findIndex((node) => node.snapshot === current);
    focus.setAttribute('visibility', index < 0 ? 'hidden' : 'visible');
    if (index < 0) return;
    for (const [name, side] of [['cx', 'x'], ['cy', 'y']]) focus.setAttribute(name, view.at[index][side]);
    tell(sentence(data.nodes[index]));
  }
  function point(index) {
    current = data.nodes[index].snapshot;
    mark();
  }
  const place = () => Math.max(data.nodes.findIndex((node) => node.snapshot === current), 0);
  redraw();
  keyboard(holder, {
    step: (dx, dy) => point(dx ? along(data, place(), dx) : across(data, view, place(), dy)),
    enter: () => options.pick && options.pick(data.nodes[place()].snapshot),
  });
  return {
    update(...next) {
      [data, options] = next;
      redraw();
    },
  };
}

function legendOf(data) {
  const roles = [...new Set(data.nodes.map((node) => node.role))];
  return legend([
    ...roles.map((role) => ({label: role.replaceAll('_', ' ') || 'from outside', colour: series(roleIndex(role)), shape: 'line'})),
    ...Object.keys(HOW).filter((kind) => data.nodes.some((node) => node.kind === kind))
      .map((kind) => ({label: HOW[kind], colour: ink('muted'), shape: SHAPES[kind]})),
  ]);
}

function layout(data, axisName, room) {
  const longest = Math.max(...data.lanes.map((lane) => lane.length));
  const left = Math.min(longest * 7 + 16, 200);
  const most = Math.max(...data.nodes.map((node) => node[axisName]), 1);
  const plot = Math.min(Math.max(room - left - 12 - RIGHT, 180), 1400);
  const at = data.nodes.map((node) => ({
    x: left + 12 + (plot * node[axisName]) / most, y: TOP + LANE * node.lane + LANE / 2}));
  return {at, left, most, plot, label: AXES[axisName], width: left + plot + 12 + RIGHT, height: TOP + LANE * data.lanes.length + 40};
}

function axis(view) {
  const bottom = view.height - 34;
  const parts = [svg('text', {x: view.left + 12 + view.plot / 2, y: view.height - 4, class: 'plot-label', fill: ink('muted'),
    'text-anchor': 'middle'}, view.label)];
  const ticks = view.plot < 400 ? 2 : 5;
  for (let number = 0; number <= ticks; number += 1) {
    const x = view.left + 12 + (view.plot * number) / ticks;
    parts.push(svg('path', {d: `M${x} ${TOP}V${bottom}`, stroke: ink('line')}),
      svg('text', {x, y: bottom + 14, class: 'plot-label', fill: ink('muted'), 'text-anchor': 'middle'},
        short((view.most * number) / ticks)));
  }
  return parts;
}

function lanes(data, view) {
  return data.lanes.map((lane, number) => svg('text', {x: view.left, y: TOP + LANE * number + LANE / 2 + 4,
    class: 'plot-label', 'text-anchor': 'end', fill: ink('ink')}, lane));
}

// A line within a lane; a curve from the lane whose weights were taken, dashed for a reset and thick for a transplant.
function links(data, view) {
  return data.nodes.flatMap((node, index) => {
    if (node.link === null) return [];
    const [from, to] = [view.at[node.link], view.at[index]];
    const parent = data.nodes[node.link];
    const same = parent.lane === node.lane;
    const middle = (from.y + to.y) / 2;
    const bend = Math.max(Math.abs(to.x - from.x) / 2, 30);
    const d = same && to.x >= from.x && node.kind === 'trained' ? `M${from.x} ${from.y}H${to.x}`
      : same ? `M${from.x} ${from.y}C${from.x + bend / 2} ${from.y - 22} ${to.x - bend / 2} ${to.y - 22} ${to.x} ${to.y}`
        : `M${from.x} ${from.y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}`;
    return [svg('path', {d, fill: 'none', stroke: series(roleIndex(node.role)),
      'stroke-width': node.kind === 'transplant' ? 3.5 : 1.8, opacity: same ? 1 : 0.75,
      'stroke-dasharray': node.kind === 'reset' ? '5 4' : node.skipped ? '1 4' : null})];
  });
}

function along(data, current, dx) {
  const lane = data.nodes[current].lane;
  let next = current + dx;
  while (next >= 0 && next < data.nodes.length && data.nodes[next].lane !== lane) next += dx;
  return next >= 0 && next < data.nodes.length ? next : current;
}

function across(data, view, current, dy) {
  const lane = Math.min(Math.max(data.nodes[current].lane + dy, 0), data.lanes.length - 1);
  let best = current;
  data.nodes.forEach((node, index) => {
    const gap = Math.abs(view.at[index].x - view.at[current].x);
    if (node.lane === lane && (data.nodes[best].lane !== lane || gap < Math.abs(view.at[best].x - view.at[current].x))) {
      best = index;
    }
  });
  return best;
}

function sentence(node) {
  const parts = [`${node.snapshot}, ${whole(node.trained_steps)} steps, ${elo(node.elo)}`, HOW[node.kind] || node.kind];
  if (node.donor) parts.push(`weights of ${node.donor}`);
  if (node.parent) parts.push(`parent ${node.parent}${node.skipped ? ` (${counted(node.skipped, 'snapshot')} between not shown)` : ''}`);
  parts.push(`taken by ${node.reason}`);
  if (node.hardest) parts.push(`hardest of ${counted(node.gate_opponents, 'opponent')} ${node.hardest[0]}, beaten with ${node.hardest[1].toFixed(2)}`);
  for (const [name, before, after] of node.changes) parts.push(`${name} ${value(before)} to ${value(after)}`);
  return parts.join('; ');
}

function value(number) {
  return number === null ? 'none' : short(number);
}

function summaryOf(data) {
  if (!data.nodes.length) return 'There is no snapshot yet.';
  const count = (kind) => data.nodes.filter((node) => node.kind === kind).length;
  const shown = [extentText(data.players), extentText(data.snapshots)].filter(Boolean).join(' ');
  const past = data.past.map((text) => `The league was ${text}.`).join(' ');
  return `${counted(data.nodes.length, 'snapshot')} of ${counted(data.lanes.length, 'player')}, ${count('reset')} after a reset and ` +
    `${count('transplant')} after a transplant. ${past} ${shown}`.replace(/ +/g, ' ').trim();
}

function tableOf(data, most) {
  return {
    columns: [{label: 'snapshot'}, {label: 'trained steps', number: true}, {label: 'how'}, {label: 'parent'},
      {label: 'donor'}, {label: 'reason'}, {label: 'Elo', number: true}],
    rows: data.nodes.slice(0, most).map((node) => [node.snapshot, whole(node.trained_steps), HOW[node.kind] || node.kind,
      node.parent, node.donor, node.reason, node.elo === null ? '' : node.elo.toFixed(0)]),
    more: moreText(data.nodes.length, most),
  };
}
