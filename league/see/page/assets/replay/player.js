// Player of one recorded game: scrub, play, keyboard, and the thoughts of each seat. Imports nothing, so that a file can hold it.

const SPEEDS = [['slow', 1600], ['normal', 700], ['fast', 200]];

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** The picture of a state: SVG text as an element. */
export function picture(text) {
  const parsed = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  return document.importNode(parsed, true);
}

/** The likeliest actions of one decision as bars; `chosen` is marked. */
export function chances(probs, chosen) {
  return make('ol', {class: 'chances'}, probs.map(([name, chance]) => {
    const bar = make('span', {class: 'bar', 'aria-hidden': 'true'});
    bar.style.width = `${Math.round(chance * 100)}%`;
    return make('li', {class: name === chosen ? 'chosen' : null}, make('span', {class: 'action'}, name),
      make('span', {class: 'track', 'aria-hidden': 'true'}, bar), make('span', {class: 'share'}, `${(chance * 100).toFixed(1)} %`));
  }));
}

/** A value as text; null where there is none. */
export function valueText(value) {
  return value === null || value === undefined ? 'no value' : `value ${value >= 0 ? '+' : ''}${value.toFixed(3)}`;
}

/**
 * Shows a game in `root`.
 * game: {title, seats: [{name, digest, source}], seat_names, outcome, frames: [{svg, text, moves: [{seat, action, value, probs, is_opening}]}]}.
 * Returns {remove}, which ends its timer.
 */
export function mountPlayer(root, game) {
  let at = 0, timer = null, delay = SPEEDS[1][1];
  const last = game.frames.length - 1;
  const board = make('div', {class: 'board'});
  const said = make('p', {class: 'said', 'aria-live': 'polite'});
  const thoughts = make('div', {class: 'thoughts'});
  const list = make('ol', {class: 'moves', tabindex: 0, 'aria-label': 'Moves'});
  const slider = make('input', {type: 'range', min: 0, max: last, value: 0, 'aria-label': 'Step of the game', oninput: () => show(Number(slider.value))});
  const play = make('button', {type: 'button', onclick: toggle}, 'Play');
  const button = (label, sign, to) => make('button', {type: 'button', 'aria-label': label, onclick: () => { stop(); show(to()); }}, sign);
  const speed = make('select', {'aria-label': 'Speed', onchange: () => { delay = Number(speed.value); if (timer !== null) { stop(); toggle(); } }},
    SPEEDS.map(([name, ms]) => make('option', {value: ms, selected: ms === delay}, name)));
  const asText = make('pre', {class: 'as-text', tabindex: 0, 'aria-label': 'The state as text'});

  const seat = (number) => `${game.seat_names[number]} (${game.seats[number].name})`;
  const described = (move) => `${seat(move.seat)}: ${move.action}${move.is_opening ? ' (random opening)' : ''}`;

  game.frames.slice(1).forEach((frame, index) => {
    const entry = make('button', {type: 'button', onclick: () => { stop(); show(index + 1); }},
      frame.moves.map((move) => `${game.seat_names[move.seat]} ${move.action}`).join(', '));
    list.append(make('li', null, entry));
  });

  function show(number) {
    at = Math.max(0, Math.min(last, number));
    const frame = game.frames[at], next = game.frames[at + 1];
    board.replaceChildren(picture(frame.svg));
    asText.textContent = frame.text;
    slider.value = at;
    slider.setAttribute('aria-valuetext', `step ${at} of ${last}`);
    said.textContent = at === 0 ? 'The start of the game.' : frame.moves.map(described).join('; ') + (at === last ? `. ${game.outcome}` : '');
    const thinking = (next ? next.moves : []).filter((move) => move.value !== null || move.probs.length);
    thoughts.replaceChildren(...thinking.map((move) => make('section', null,
      make('h3', null, `${seat(move.seat)} thinks`), make('p', null, `${valueText(move.value)}, then plays ${move.action}`), chances(move.probs, move.action))));
    if (!thinking.length) thoughts.append(make('p', {class: 'quiet'}, next ? 'No values or probabilities were recorded for this decision.' : 'The game is over.'));
    [...list.querySelectorAll('button')].forEach((entry, index) => {
      if (index + 1 === at) entry.setAttribute('aria-current', 'step'); else entry.removeAttribute('aria-current');
    });
    const current = list.querySelector('[aria-current]');
    if (current) list.scrollTop = current.offsetTop - list.offsetTop - list.clientHeight / 2;
    if (at === last) stop();
  }

  function stop() {
    if (timer !== null) clearInterval(timer);
    timer = null;
    play.textContent = 'Play';
  }

  function toggle() {
    if (timer !== null) { stop(); return; }
    if (at === last) show(0);
    timer = setInterval(() => show(at + 1), delay);
    play.textContent = 'Pause';
  }

  const keys = {ArrowLeft: () => show(at - 1), ArrowRight: () => show(at + 1), Home: () => show(0), End: () => show(last)};
  root.addEventListener('keydown', (event) => {
    if (event.target === slider || event.target === speed || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === ' ' && event.target.tagName !== 'BUTTON') { event.preventDefault(); toggle(); return; }
    if (!keys[event.key]) return;
    event.preventDefault();
    stop();
    keys[event.key]();
  });

  root.append(make('div', {class: 'player', tabindex: -1},
    make('div', {class: 'stage'}, board, said,
      make('div', {class: 'controls', role: 'group', 'aria-label': 'Player'},
        button('To the start', '|<', () => 0), button('One step back', '<', () => at - 1), play,
        button('One step on', '>', () => at + 1), button('To the end', '>|', () => last), slider, speed),
      make('details', null, make('summary', null, 'As text'), asText)),
    make('div', {class: 'side'}, make('h2', null, 'Thoughts'), thoughts, make('h2', null, 'Moves'), list)));
  show(at);
  return {remove: () => { if (timer !== null) clearInterval(timer); }};
}
