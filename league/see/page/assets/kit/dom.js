// Elements without markup in strings: nothing from a run can become a script.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** An HTML element; attributes `onclick` and the like take functions. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A panel with a heading. */
export function card(title, ...children) {
  return h('section', {class: 'card'}, title ? h('h2', null, title) : null, children);
}

/** A sentence in a lighter colour. */
export function note(...text) {
  return h('p', {class: 'muted'}, text);
}

/** A word with a colour: "good", "warn", "bad" or "plain". */
export function badge(text, kind = 'plain') {
  return h('span', {class: `badge ${kind}`}, text);
}

/** A large figure with its name below. */
export function figure(name, value, more) {
  return h('div', {class: 'figure'}, h('dt', null, name), h('dd', {class: String(value).length > 9 ? 'long' : null}, value, more ? h('small', null, ' ', more) : null));
}

/** A region that scrolls sideways by keyboard too. */
export function scroll(label, ...children) {
  return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label}, children);
}

const remembered = new Map(); // id of a table -> {key, descending, shown}
const STEP = 100;

/**
 * A table that sorts by a click on a heading.
 * columns: [{key, label, number, value: row => sortable, cell: row => node or text}]; the first column heads its rows.
 */
export function table({columns, rows, caption, id}) {
  const state = remembered.get(id) || {key: null, descending: false, shown: STEP};
  remembered.set(id, state);
  const body = h('tbody');
  const heads = new Map();
  const more = h('button', {type: 'button', class: 'quiet', id: `${id}-more`, onclick: () => { state.shown += 10 * STEP; draw(); }});

  function sortable(column, row) {
    return column.value ? column.value(row) : row[column.key];
  }

  function ordered() {
    const column = columns.find(each => each.key === state.key);
    if (!column) return rows;
    const sign = state.descending ? -1 : 1;
    return [...rows].sort((a, b) => {
      const [x, y] = [sortable(column, a), sortable(column, b)];
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
  }

  function draw() {
    body.replaceChildren(...ordered().slice(0, state.shown).map(row => h('tr', null, columns.map((column, index) => {
      const content = column.cell ? column.cell(row) : row[column.key];
      const shown = content === null || content === undefined ? '–' : content;
      return index ? h('td', {class: column.number ? 'number' : null}, shown) : h('th', {scope: 'row'}, shown);
    }))));
    for (const [key, head] of heads) {
      head.setAttribute('aria-sort', key !== state.key ? 'none' : state.descending ? 'descending' : 'ascending');
    }
    more.hidden = rows.length <= state.shown;
    more.textContent = `Show more (${rows.length - state.shown} left)`;
  }

  const head = h('tr', null, columns.map(column => {
    const cell = h('th', {scope: 'col', class: column.number ? 'number' : null}, h('button', {
      type: 'button', id: `${id}-by-${column.key}`,
      onclick: () => {
        state.descending = state.key === column.key ? !state.descending : Boolean(column.number);
        state.key = column.key;
        draw();
      },
    }, column.label));
    heads.set(column.key, cell);
    return cell;
  }));
  draw();
  const whole = h('table', null, h('caption', {class: 'visually-hidden'}, caption), h('thead', null, head), body);
  return h('div', null, scroll(caption, whole), more);
}
