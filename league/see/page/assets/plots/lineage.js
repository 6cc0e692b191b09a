// The lineage of snapshots: a lane for each player over its trained steps, with resets and transplants between lanes.

import {ink, series} from './colours.js';
import {h, svg} from '../kit/dom.js';
import {counted} from '../kit/format.js';
import {elo, extentText, frame, keyboard, legend, marker, short, whole} from './elements.js';

const HINT = 'Point at a snapshot, or move with the arrow keys.';
const SHAPES = {first: 'square', trained: 'circle', reset: 'diamond', transplant: 'triangle', outside: 'square'};
const HOW = {first: 'first weights', trained: 'trained on', reset: 'after a reset', transplant: 'after a transplant',
  outside: 'from outside'};
const AXES = {league_steps: 'trained steps of the whole league', trained_steps: 'trained steps of the player'};
const [LANE, TOP, RIGHT] = [46, 16, 24];

/** Draws a LineageGraph. options: pick (snapshot id) for a node that is clicked or entered; memory as in heatmap.js. */
export function draw(root, data, options = {}) {
  const {body, tell, id} = frame(root, {title: options.title || 'Lineage', summary: summaryOf(data),
    table: () => tableOf(data), hint: HINT, level: options.level});
  if (!data.nodes.length) return;
  const roles = [...new Set(data.nodes.map((node) => node.role))];
  const holder = h('div', {class: 'plot-scroll lineage', tabindex: 0, id: `${id}-graph`, role: 'application',
    'aria-label': 'Lineage. Left and right move along a player, up and down between players, Enter opens a snapshot.'});
  body.append(legend([
    ...roles.map((role, index) => ({label: role.replaceAll('_', ' ') || 'from outside', colour: series(index), shape: 'line'})),
    ...Object.keys(HOW).filter((kind) => data.nodes.some((node) => node.kind === kind))
      .map((kind) => ({label: HOW[kind], colour: ink('muted'), shape: SHAPES[kind]})),
  ]), holder);
  const memory = options.memory || {};
  const select = h('select', {id: `${id}-along`, onchange: () => {
    memory.along = select.value;
    redraw();
  }}, Object.entries(AXES).map(([name, label]) =>
    h('option', {value: name, selected: name === (memory.along || 'league_steps')}, label)));
  body.prepend(h('div', {class: 'plot-controls'}, h('label', {}, 'Along ', select)));
  const focus = svg('circle', {r: 11, fill: 'none', stroke: ink('ink'), 'stroke-width': 2.5, visibility: 'hidden'});
  let view = null;
  let current = 0;
  function redraw() {
    view = layout(data, select.value, holder.clientWidth || 1100);
    const picture = svg('svg', {width: view.width, height: view.height, role: 'img', 'aria-label': summaryOf(data)});
    picture.append(...axis(view), ...lanes(data, view), ...links(data, view, roles));
    data.nodes.forEach((node, index) => {
      const {x, y} = view.at[index];
      picture.append(marker(SHAPES[node.kind] || 'circle', x, y, 5.5, series(roles.indexOf(node.role)), {
        stroke: ink('ground'), 'stroke-width': 1.5, class: 'lineage-node',
        onpointerenter: () => point(index), onclick: () => options.pick && options.pick(node.snapshot)}));
    });
    focus.setAttribute('visibility', 'hidden');
    picture.append(focus);
    holder.replaceChildren(picture);
  }
  function point(index) {
    current = index;
    const {x, y} = view.at[index];
    for (const [name, number] of Object.entries({cx: x, cy: y, visibility: 'visible'})) focus.setAttribute(name, number);
    tell(sentence(data.nodes[index]));
  }
  redraw();
  keyboard(holder, {
    step: (dx, dy) => point(dx ? along(data, current, dx) : across(data, view, current, dy)),
    enter: () => options.pick && options.pick(data.nodes[current].snapshot),
  });
}

function layout(data, axisName, room) {
  const longest = Math.max(...data.lanes.map((lane) => lane.length));
  const left = Math.min(longest * 7 + 16, 200);
  const most = Math.max(...data.nodes.map((node) => node[axisName]), 1);
  const plot = Math.min(Math.max(room - left - 12 - RIGHT, 420), 1400);
  const at = data.nodes.map((node) => ({
    x: left + 12 + (plot * node[axisName]) / most, y: TOP + LANE * node.lane + LANE / 2}));
  return {at, left, most, plot, label: AXES[axisName], width: left + plot + 12 + RIGHT, height: TOP + LANE * data.lanes.length + 40};
}

function axis(view) {
  const bottom = view.height - 34;
  const parts = [svg('text', {x: view.left + 12 + view.plot / 2, y: view.height - 4, class: 'plot-label', fill: ink('muted'),
    'text-anchor': 'middle'}, view.label)];
  for (let number = 0; number <= 5; number += 1) {
    const x = view.left + 12 + (view.plot * number) / 5;
    parts.push(svg('path', {d: `M${x} ${TOP}V${bottom}`, stroke: ink('line')}),
      svg('text', {x, y: bottom + 14, class: 'plot-label', fill: ink('muted'), 'text-anchor': 'middle'},
        short((view.most * number) / 5)));
  }
  return parts;
}

function lanes(data, view) {
  return data.lanes.map((lane, number) => svg('text', {x: view.left, y: TOP + LANE * number + LANE / 2 + 4,
    class: 'plot-label', 'text-anchor': 'end', fill: ink('ink')}, lane));
}

// A line within a lane; a curve from the lane whose weights were taken, dashed for a reset and thick for a transplant.
function links(data, view, roles) {
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
    return [svg('path', {d, fill: 'none', stroke: series(roles.indexOf(node.role)),
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

function tableOf(data) {
  return {
    columns: [{label: 'snapshot'}, {label: 'trained steps', number: true}, {label: 'how'}, {label: 'parent'},
      {label: 'donor'}, {label: 'reason'}, {label: 'Elo', number: true}],
    rows: data.nodes.map((node) => [node.snapshot, whole(node.trained_steps), HOW[node.kind] || node.kind,
      node.parent, node.donor, node.reason, node.elo === null ? '' : node.elo.toFixed(0)]),
  };
}
