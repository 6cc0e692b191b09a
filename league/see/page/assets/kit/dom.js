// Elements without markup in strings: nothing from a run can become a script.

import {drawn, recorded} from './patch.js';

const SVG = 'http://www.w3.org/2000/svg';
const PROPERTIES = new Set(['value', 'checked']);

function fill(element, attributes, children) {
  const record = recorded(element);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false && !PROPERTIES.has(name)) continue;
    if (name.startsWith('on')) record.listen(name.slice(2), value);
    else if (name === 'key') record.key = value;
    else if (PROPERTIES.has(name)) record.properties[name] = value;
    else record.attribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  Object.assign(element, record.properties); // behind the children: a select has its options by now
  return element;
}

/**
 * An HTML element; attributes `onclick` and the like take functions. `id`, or `key` where it has none, says which
 * element of an earlier drawing it continues. A listener reads from its event: the element drawn may never be shown.
 */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * A part that keeps what it holds from drawing to drawing.
 * mount: (box, ...args) => {update(...args), remove()}, called once the box is shown; `update` with each later drawing.
 */
export function part(key, mount, ...args) {
  const box = h('div', {key, 'data-part': ''});
  drawn(box).part = {mount, args};
  return box;
}

/** A panel with a heading. */
export function card(title, ...children) {
  return h('section', {class: 'card', key: title || null}, title ? h('h2', null, title) : null, children);
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
  return h('div', {class: 'figure', key: name}, h('dt', null, name),
    h('dd', {class: String(value).length > 9 ? 'long' : null}, value, more ? h('small', null, ' ', more) : null));
}

/** A region that scrolls sideways by keyboard too. */
export function scroll(label, ...children) {
  return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label}, children);
}
