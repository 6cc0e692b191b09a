// Tables, legends and the frame that every plot stands in. Text goes in as text: never as markup.

import {h, svg} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {saveMenu} from './saving.js';

/**
 * The frame of a plot in a box of its own: heading, one sentence that says what it shows, the plot, a line that tells
 * what is pointed at, the same numbers as a table, which is made when it is opened, and the menu to save it.
 * Returns {body, tell, head, id}; head({title, summary, table, picture, rows}) is called with each new data.
 * table: most => {columns: [{label, number}], rows: [[cell]], more: sentence or ''} of at most so many rows.
 * picture: () => SVG element, by default the one in the body. rows: () => cells for CSV, by default those of the table.
 */
export function frame(box, {title, level = 3, hint = '', saves = true}) {
  const id = unusedId(`plot-${title.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`);
  const body = h('div', {class: 'plot-body'});
  const readout = h('p', {class: hint ? 'plot-readout plot-readout-tall' : 'plot-readout', 'aria-live': 'polite', id: `${id}-readout`}, hint);
  const heading = h(`h${level}`, {class: 'plot-title', id: `${id}-title`});
  const summary = h('p', {class: 'plot-summary', id: `${id}-summary`});
  const content = h('div');
  const words = h('summary');
  const details = h('details', {class: 'plot-table', id: `${id}-table`, ontoggle: () => fillTable()}, words, content);
  let given = {};
  const fillTable = () => {
    if (details.open && given.table) show(content, tableOf(given.title, given.table(MOST_ROWS)));
  };
  const all = () => {
    const {columns, rows} = given.table(Infinity);
    return [columns.map((column) => column.label), ...rows];
  };
  const menu = saves ? saveMenu(id, title, {picture: () => (given.picture ? given.picture() : body.querySelector('svg[role=img]')),
    rows: () => (given.rows ? given.rows() : all())}) : null;
  box.append(h('div', {class: 'plot-frame', role: 'group', 'aria-labelledby': `${id}-title`},
    h('div', {class: 'plot-head'}, heading, menu), summary, body, readout, details));
  const tell = (text) => setText(readout, text);
  const head = (next) => {
    given = next;
    setText(heading, next.title);
    setText(summary, next.summary || '');
    summary.hidden = !next.summary;
    details.hidden = !next.table;
    if (menu) menu.hidden = !next.table;
    setText(words, `${next.title} as a table`);
    fillTable();
  };
  return {body, tell, head, id};
}

const MOST_ROWS = 400;

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// The same plot has the same id each time it is drawn.
function unusedId(stem) {
  let id = stem;
  for (let number = 2; document.getElementById(`${id}-title`); number += 1) id = `${stem}-${number}`;
  return id;
}

/** A table in a region that scrolls; the cells are texts, numbers or elements. */
export function tableOf(caption, {columns, rows, more = ''}) {
  const head = h('tr', {}, columns.map((column) => h('th', {scope: 'col', class: side(column)}, column.label)));
  const body = rows.map((row) =>
    h('tr', {}, row.map((cell, place) => h('td', {class: side(columns[place])}, cell ?? ''))));
  const region = {class: 'plot-scroll', tabindex: 0, role: 'region', 'aria-label': `${caption}, table`};
  const parts = [
    h('div', region,
      h('table', {}, h('caption', {}, caption), h('thead', {}, head), h('tbody', {}, body))),
  ];
  if (more) parts.push(h('p', {class: 'plot-note'}, more));
  return parts;
}

function side(column) {
  return column.number ? 'number' : null;
}

/** A legend of colours and names. marks: [{label, colour, shape}]. */
export function legend(marks) {
  return h('ul', {class: 'plot-legend'}, marks.map(({label, colour, shape}) =>
    h('li', {}, svg('svg', {width: 14, height: 14, 'aria-hidden': 'true'}, marker(shape, 7, 7, 5, colour)), label)));
}

/** A mark whose shape says as much as its colour. */
export function marker(shape, x, y, size, colour, attributes = {}) {
  const given = {fill: colour, ...attributes};
  if (shape === 'square') {
    return svg('rect', {x: x - size, y: y - size, width: 2 * size, height: 2 * size, ...given});
  }
  if (shape === 'diamond') {
    const r = size * 1.35;
    return svg('path', {d: `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`, ...given});
  }
  if (shape === 'triangle') {
    const r = size * 1.3;
    return svg('path', {d: `M${x} ${y - r}L${x + r} ${y + r * 0.8}L${x - r} ${y + r * 0.8}Z`, ...given});
  }
  if (shape === 'line') {
    return svg('path', {d: `M${x - size} ${y}H${x + size}`, stroke: colour, 'stroke-width': 3, ...attributes});
  }
  return svg('circle', {cx: x, cy: y, r: size, ...given});
}

/** A piece of a line as a legend shows it. */
export function svgLine(stroke, dash) {
  return svg('svg', {width: 22, height: 10, 'aria-hidden': 'true'},
    svg('path', {d: 'M0 5H22', stroke, 'stroke-width': 3, 'stroke-dasharray': dash.length ? dash.join(' ') : null}));
}

/** Arrow keys, Home, End and Enter of a focused plot. step: (dx, dy) => void. */
export function keyboard(element, {step, enter = null, ends = null}) {
  const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  element.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in steps) step(...steps[event.key]);
    else if (ends && (event.key === 'Home' || event.key === 'End')) ends(event.key === 'Home');
    else if (enter && event.key === 'Enter') enter();
    else return;
    event.preventDefault();
  });
}

/** A note on the rows that a table of at most so many leaves out. */
export function moreText(total, most) {
  return total > most ? `${whole(total - most)} more are in the CSV.` : '';
}

/** "Showing 40 of 812 policies." or nothing where all are shown. */
export function extentText({what, total, offset, shown}) {
  if (shown >= total) return '';
  const first = offset ? `${offset + 1} to ${offset + shown}` : `the first ${shown}`;
  return `Shown: ${first} of ${total.toLocaleString('en')} ${what}.`;
}

/** A number as short as it is useful. */
export function short(value) {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e9) return `${trimmed(value / 1e9)}G`;
  if (size >= 1e6) return `${trimmed(value / 1e6)}M`;
  if (size >= 1e4) return `${trimmed(value / 1e3)}k`;
  if (size >= 100) return value.toFixed(0);
  if (size >= 0.001) return String(Number(value.toPrecision(3)));
  return value.toExponential(1);
}

function trimmed(value) {
  return String(Number(value.toPrecision(3)));
}

/** A whole number with commas. */
export function whole(value) {
  return value.toLocaleString('en');
}

/** An Elo with its sign. */
export function elo(value) {
  return value === null || value === undefined ? 'unrated' : `${value >= 0 ? '+' : '\u2212'}${Math.abs(value).toFixed(0)} Elo`;
}
