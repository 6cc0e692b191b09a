// Opponents of one player between its snapshots, as stacked shares of its games.

import {ink, series} from './colours.js';
import {h, part, svg} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {counted} from '../kit/format.js';
import {extentText, frame, keyboard, legend, short, whole} from './elements.js';

const HINT = 'Point at a span, or move with the arrow keys.';
const [LEFT, TOP, HEIGHT] = [44, 8, 200];

/** Draws an OpponentMix in a part of its own. */
export function draw(root, data, options = {}) {
  root.append(part(`mix-${data.player}`, mount, data, options));
}

function mount(box, ...given) {
  let [data, options] = given;
  const {body, tell, head, id} = frame(box, {title: `Opponents of ${data.player}`, hint: HINT, level: options.level});
  const holder = h('div', {class: 'plot-scroll plot-fit', tabindex: 0, id: `${id}-bars`, role: 'application',
    'aria-label': `Opponents of ${data.player}: left and right arrow keys read the shares.`});
  const keys = h('div');
  body.append(keys, holder);
  const cursor = svg('rect', {y: TOP, height: HEIGHT, fill: 'none', stroke: ink('ink'), 'stroke-width': 2, visibility: 'hidden', 'pointer-events': 'none'});
  let current = -1, room = 0;

  function redraw() {
    head({title: `Opponents of ${data.player}`, summary: summaryOf(data), table: data.spans.length ? () => tableOf(data) : null});
    body.hidden = !data.spans.length;
    if (!data.spans.length) return;
    room = holder.clientWidth || 0;
    show(keys, legend(data.opponents.map((label, index) => ({label, colour: series(index), shape: 'square'}))));
    show(holder, picture(data, widthOf(room), point));
    holder.firstChild.append(cursor);
    if (current >= 0) point(Math.min(current, data.spans.length - 1));
  }
  function point(index) {
    current = index;
    const width = widthOf(room) / data.spans.length;
    for (const [name, value] of [['x', LEFT + index * width], ['width', Math.max(width - 1, 1)], ['visibility', 'visible']]) cursor.setAttribute(name, value);
    tell(sentence(data, data.spans[index]));
  }
  redraw();
  keyboard(holder, {step: (dx) => data.spans.length && point(Math.min(Math.max(current + dx, 0), data.spans.length - 1))});
  const resized = new ResizeObserver(() => { if (Math.abs((holder.clientWidth || 0) - room) > 1) redraw(); });
  resized.observe(box);
  return {
    update(...next) {
      [data, options] = next;
      redraw();
    },
    remove() { resized.disconnect(); },
  };
}

// As wide as its room, so that its labels are as large on a phone as elsewhere.
function widthOf(room) {
  return Math.min(Math.max(room - LEFT - 12, 220), 900);
}

function picture(data, room, point) {
  const [across, down] = [LEFT + room + 12, TOP + HEIGHT + 40];
  const drawn = svg('svg', {width: across, height: down, viewBox: `0 0 ${across} ${down}`, role: 'img', 'aria-label': summaryOf(data)});
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const y = TOP + HEIGHT * (1 - share);
    drawn.append(svg('path', {d: `M${LEFT - 4} ${y}H${LEFT + room}`, stroke: ink('line')}),
      svg('text', {x: LEFT - 8, y: y + 4, class: 'plot-label', 'text-anchor': 'end', fill: ink('muted')}, `${100 * share} %`));
  }
  const width = room / data.spans.length;
  data.spans.forEach((span, index) => drawn.append(column(span, index, width, () => point(index))));
  drawn.append(...labels(data, width, room));
  return drawn;
}

function column(span, index, width, enter) {
  const group = svg('g', {onpointerenter: enter});
  let below = 0;
  span.shares.forEach((share, number) => {
    const height = share * HEIGHT;
    if (height > 0.2) {
      group.append(svg('rect', {x: LEFT + index * width, y: TOP + HEIGHT - below - height, width: Math.max(width - 1, 0.5),
        height, fill: series(number)}));
    }
    below += height;
  });
  return group;
}

function labels(data, width, room) {
  const every = Math.ceil(data.spans.length / Math.max(Math.floor(room / 100), 2));
  const steps = data.spans.flatMap((span, index) => (index % every ? [] : [svg('text', {
    x: LEFT + (index + 0.5) * width, y: TOP + HEIGHT + 16, class: 'plot-label', 'text-anchor': 'middle', fill: ink('muted')},
  short(span.trained_steps))]));
  return [...steps, svg('text', {x: LEFT + room / 2, y: TOP + HEIGHT + 34, class: 'plot-label', 'text-anchor': 'middle',
    fill: ink('muted')}, 'trained steps at the end of each span')];
}

function sentence(data, span) {
  const shares = data.opponents.flatMap((opponent, index) => {
    const score = span.scores[index];
    return span.shares[index] ? [`${opponent} ${(100 * span.shares[index]).toFixed(0)} % (scored ${score.toFixed(2)})`] : [];
  });
  return `Until ${span.snapshot}, ${counted(span.games, 'game')}: ${shares.join(', ')}`;
}

function summaryOf(data) {
  if (!data.spans.length) return 'No snapshot was taken of it yet.';
  const last = data.spans[data.spans.length - 1];
  return `Shares of its games against each opponent, from snapshot to snapshot. ${sentence(data, last)}. ` +
    `${extentText(data.snapshots)}`.trim();
}

function tableOf(data) {
  return {
    columns: [{label: 'until'}, {label: 'games', number: true}, ...data.opponents.map((label) => ({label, number: true}))],
    rows: data.spans.map((span) => [span.snapshot, whole(span.games),
      ...span.shares.map((share) => `${(100 * share).toFixed(0)} %`)]),
  };
}
