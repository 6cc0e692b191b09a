// Drawings in place: what is shown becomes like what was drawn, and keeps what its reader holds.

const DRAWN = Symbol('drawn');

/** What was drawn of an element, beside what a reader made of it since. */
export function drawn(element) {
  return element[DRAWN];
}

function dispatch(event) {
  const {listeners} = event.currentTarget[DRAWN];
  if (listeners[event.type]) listeners[event.type](event);
}

/** The record of an element that is being drawn. */
export function recorded(element) {
  const record = {
    key: null, attributes: {}, properties: {}, listeners: {}, part: null, running: null,
    attribute(name, text) {
      record.attributes[name] = text;
      element.setAttribute(name, text);
    },
    listen(type, listener) {
      record.listeners[type] = listener;
      element.addEventListener(type, dispatch);
    },
  };
  element[DRAWN] = record;
  return record;
}

/**
 * Make the children of `live` like those of `fresh`, which it uses up. Elements with the same id or key, and others in
 * their order, stay; only what was drawn otherwise than before changes. So open details, typed text and scroll stay.
 */
export function patch(live, fresh) {
  const held = document.activeElement;
  const caret = held && 'selectionStart' in held ? [held.selectionStart, held.selectionEnd] : null;
  const added = [];
  children(live, fresh, added);
  for (const node of added) start(node);
  if (held !== document.activeElement && held.isConnected && live.contains(held)) { // a move takes the focus away
    held.focus({preventScroll: true});
    if (caret && caret[0] !== null) held.setSelectionRange(...caret);
  }
}

/** `patch` with a list of children, in which null, undefined and false stand for nothing. */
export function show(live, ...parts) {
  const fresh = document.createDocumentFragment();
  fresh.append(...parts.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  patch(live, fresh);
}

/** Mount the parts of a tree that has just been shown. */
function start(node) {
  for (const box of boxes(node)) {
    const record = box[DRAWN];
    if (!record.running) record.running = record.part.mount(box, ...record.part.args) || {};
  }
}

function stop(node) {
  for (const box of boxes(node)) {
    const {running} = box[DRAWN];
    if (running && running.remove) running.remove();
  }
}

function boxes(node) {
  if (!(node instanceof Element)) return [];
  const found = [...node.querySelectorAll('[data-part]')];
  return node.matches('[data-part]') ? [node, ...found] : found;
}

function keyOf(node) {
  return node[DRAWN] && (node[DRAWN].key ?? node[DRAWN].attributes.id) || null;
}

// The keys of siblings as they come; a second one of the same key is told apart by its number.
function counter() {
  const seen = new Map();
  return (node) => {
    const key = keyOf(node);
    if (key === null) return null;
    seen.set(key, (seen.get(key) || 0) + 1);
    return `${key} ${seen.get(key)}`;
  };
}

function alike(one, other) {
  return one.nodeName === other.nodeName && !one[DRAWN] === !other[DRAWN] && keyOf(one) === keyOf(other) && one[DRAWN]?.part?.mount === other[DRAWN]?.part?.mount;
}

function children(live, fresh, added) {
  const keyed = new Map(), loose = [];
  const [keysOfLive, keysOfFresh] = [counter(), counter()];
  for (const node of live.childNodes) {
    const key = keysOfLive(node);
    if (key !== null) keyed.set(key, node);
    else loose.push(node);
  }
  const pairs = [...fresh.childNodes].map((wanted) => {
    const key = keysOfFresh(wanted);
    const place = key === null ? loose.findIndex((node) => alike(node, wanted)) : -1;
    const node = key === null ? loose[place] : keyed.get(key);
    if (!node || !alike(node, wanted)) return [wanted, null];
    if (key === null) loose.splice(place, 1);
    else keyed.delete(key);
    return [wanted, node];
  });
  for (const node of [...keyed.values(), ...loose]) {
    stop(node);
    node.remove();
  }
  let at = live.firstChild;
  for (const [wanted, node] of pairs) {
    if (node && node === at?.nextSibling) { // the one before it comes later: one move instead of a move of all others
      move(live, at, null);
      at = node;
    }
    if (!node) {
      live.insertBefore(wanted, at);
      added.push(wanted);
    } else {
      if (node === at) at = at.nextSibling;
      else move(live, node, at);
      update(node, wanted, added);
    }
  }
}

function move(parent, node, before) {
  if (parent.moveBefore && parent.isConnected) parent.moveBefore(node, before); // keeps focus and scroll
  else parent.insertBefore(node, before);
}

function update(node, wanted, added) {
  if (!(node instanceof Element)) {
    if (node.data !== wanted.data) node.data = wanted.data;
    return;
  }
  const [before, after] = [node[DRAWN], wanted[DRAWN]];
  if (!after) return foreign(node, wanted, added);
  for (const name of Object.keys(before.attributes)) if (!(name in after.attributes)) node.removeAttribute(name);
  for (const [name, text] of Object.entries(after.attributes)) if (before.attributes[name] !== text) node.setAttribute(name, text);
  for (const type of Object.keys(after.listeners)) node.addEventListener(type, dispatch);
  const {running} = before;
  if (!after.part) children(node, wanted, added);
  for (const [name, value] of Object.entries(after.properties)) if (before.properties[name] !== value) node[name] = value;
  node[DRAWN] = {...after, running};
  if (running && running.update) running.update(...after.part.args);
}

// An element of somebody else, such as the picture of a game, has no record: it shows what it was given.
function foreign(node, wanted, added) {
  for (const {name} of [...node.attributes]) if (!wanted.hasAttribute(name)) node.removeAttribute(name);
  for (const {name, value} of wanted.attributes) {
    if (name === 'style') node.style.cssText = wanted.style.cssText; // the content policy forbids the attribute
    else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  children(node, wanted, added);
}
