// Opponents of one player between its snapshots, as stacked shares of its games.

import {ink, series} from './colours.js';
import {h, svg} from '../kit/dom.js';
import {counted} from '../kit/format.js';
import {extentText, frame, keyboard, legend, short, whole} from './elements.js';

const HINT = 'Point at a span, or move with the arrow keys.';
const [LEFT, TOP, HEIGHT, WIDTH] = [44, 8, 200, 640];

/** Draws an OpponentMix. */
export function draw(root, data, options = {}) {
  const {body, tell, id} = frame(root, {title: `Opponents of ${data.player}`, summary: summaryOf(data), hint: HINT, level: options.level,
    table: () => tableOf(data)});
  if (!data.spans.length) return;
  const holder = h('div', {class: 'plot-scroll plot-fit', tabindex: 0, id: `${id}-bars`, role: 'application',
    'aria-label': `Opponents of ${data.player}: left and right arrow keys read the shares.`});
  body.append(legend(data.opponents.map((label, index) => ({label, colour: series(index), shape: 'square'}))), holder);
  const [across, down] = [LEFT + WIDTH + 12, TOP + HEIGHT + 40];
  const picture = svg('svg', {width: across, height: down, viewBox: `0 0 ${across} ${down}`, role: 'img', 'aria-label': summaryOf(data)});
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const y = TOP + HEIGHT * (1 - part);
    picture.append(svg('path', {d: `M${LEFT - 4} ${y}H${LEFT + WIDTH}`, stroke: ink('line')}),
      svg('text', {x: LEFT - 8, y: y + 4, class: 'plot-label', 'text-anchor': 'end', fill: ink('muted')}, `${100 * part} %`));
  }
  const width = WIDTH / data.spans.length;
  const cursor = svg('rect', {y: TOP, width: Math.max(width - 1, 1), height: HEIGHT, fill: 'none', stroke: ink('ink'),
    'stroke-width': 2, visibility: 'hidden'});
  let current = -1;
  const point = (index) => {
    current = index;
    cursor.setAttribute('x', LEFT + index * width);
    cursor.setAttribute('visibility', 'visible');
    tell(sentence(data, data.spans[index]));
  };
  data.spans.forEach((span, index) => picture.append(column(span, index, width, () => point(index))));
  picture.append(cursor, ...labels(data, width));
  holder.append(picture);
  keyboard(holder, {step: (dx) => point(Math.min(Math.max(current + dx, 0), data.spans.length - 1))});
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

function labels(data, width) {
  const every = Math.ceil(data.spans.length / 6);
  const steps = data.spans.flatMap((span, index) => (index % every ? [] : [svg('text', {
    x: LEFT + (index + 0.5) * width, y: TOP + HEIGHT + 16, class: 'plot-label', 'text-anchor': 'middle', fill: ink('muted')},
  short(span.trained_steps))]));
  return [...steps, svg('text', {x: LEFT + WIDTH / 2, y: TOP + HEIGHT + 34, class: 'plot-label', 'text-anchor': 'middle',
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
