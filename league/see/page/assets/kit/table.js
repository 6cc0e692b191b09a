// Tables that sort by a click on a heading, and fit: columns that matter least are left out where there is no room.

import {h, part, scroll} from './dom.js';
import {show} from './patch.js';

const remembered = new Map(); // id of a table -> {key, descending, shown}
const STEP = 100;

/**
 * A table that sorts by a click on a heading.
 * columns: [{key, label, number, value: row => sortable, cell: row => node or text, rank}]; the first column heads its
 * rows. rank: 1 for a column that is left out first where the table is too wide, up to 3; none for one that stays.
 */
export function table(spec) {
  return part(spec.id, mount, spec);
}

function mount(box, given) {
  let spec = given;
  const state = remembered.get(spec.id) || {key: null, descending: false, shown: STEP};
  remembered.set(spec.id, state);
  const draw = () => {
    show(box, view(spec, state, draw));
    fit(box.firstChild);
  };
  draw();
  const resized = new ResizeObserver(() => fit(box.firstChild));
  resized.observe(box);
  return {
    update(next) {
      spec = next;
      draw();
    },
    remove() { resized.disconnect(); },
  };
}

/** Leave out columns of a table, those of rank 1 first, until it fits into the region that would scroll. */
export function fit(region) {
  for (const level of [0, 1, 2, 3, 4, 5]) {
    region.dataset.fit = level;
    if (region.scrollWidth <= region.clientWidth) return;
  }
}

function view({columns, rows, caption, id, keyOf}, state, draw) {
  const more = rows.length - state.shown;
  const heads = columns.map((column) => h('th', {
    scope: 'col', key: column.key, class: classOf(column, state), 'aria-sort': column.key !== state.key ? 'none' : state.descending ? 'descending' : 'ascending',
  }, h('button', {type: 'button', id: `${id}-by-${column.key}`, onclick: () => {
    state.descending = state.key === column.key ? !state.descending : Boolean(column.number);
    state.key = column.key;
    draw();
  }}, column.label)));
  const body = ordered(columns, rows, state).slice(0, state.shown).map((row) => h('tr', {key: keyOf ? keyOf(row) : null},
    columns.map((column, index) => cellOf(column, row, index, state))));
  return [
    scroll(caption, h('table', null, h('caption', {class: 'visually-hidden'}, caption), h('thead', null, h('tr', null, heads)), h('tbody', null, body))),
    more > 0 ? h('button', {type: 'button', class: 'quiet', id: `${id}-more`, onclick: () => { state.shown += 10 * STEP; draw(); }},
      `Show more (${more} left)`) : null,
  ];
}

function cellOf(column, row, index, state) {
  const content = column.cell ? column.cell(row) : row[column.key];
  const shown = content === null || content === undefined ? '–' : content;
  return index ? h('td', {class: classOf(column, state)}, shown) : h('th', {scope: 'row'}, shown);
}

// The column that a table is sorted by stays, whatever its rank.
function classOf(column, state) {
  return [column.number ? 'number' : '', column.rank && column.key !== state.key ? `rank-${column.rank}` : ''].filter(Boolean).join(' ') || null;
}

function ordered(columns, rows, state) {
  const column = columns.find((each) => each.key === state.key);
  if (!column) return rows;
  const sortable = (row) => (column.value ? column.value(row) : row[column.key]);
  const sign = state.descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [sortable(a), sortable(b)];
    if (x === null || x === undefined) return 1;
    if (y === null || y === undefined) return -1;
    return sign * (x < y ? -1 : x > y ? 1 : 0);
  });
}
