// Player of one recorded game: scrub, play, keyboard, and the thoughts of each seat. Imports nothing, so that a file can hold it.

const SPEEDS = [['slow', 1600], ['normal', 700], ['fast', 200]];

const SVG_TAGS = new Set(['svg', 'path', 'line', 'circle']);
const TOLD = 3; // moves that turned the game most
const TURN = 0.25; // of the range of all estimates: a smaller change turns nothing

function make(tag, attributes, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
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

/** The estimates of each seat over a game, [[{at, value, move}]], the end of the game among them. */
export function estimates(game) {
  const seats = game.seat_names.map(() => []);
  game.frames.forEach((frame, index) => frame.moves.forEach((move) => {
    if (move.value !== null && !move.is_opening) seats[move.seat].push({at: index - 1, value: move.value, move});
  }));
  return withEnd(game, seats);
}

// The estimates of another policy in the places of all seats, each with the move that was made there.
function estimatesBeside(game, {since, answers}) {
  const seats = game.seat_names.map(() => []);
  answers.forEach((moves, index) => moves.forEach(({seat, value}) => {
    const at = since + index, move = game.frames[at + 1]?.moves.find((made) => made.seat === seat);
    if (value !== null && move) seats[seat].push({at, value, move});
  }));
  return withEnd(game, seats);
}

function withEnd(game, seats) {
  const end = game.frames.length - 1;
  return seats.map((points, seat) => (points.length && game.returns ? [...points, {at: end, value: game.returns[seat], move: null}] : points));
}

/** The moves after which the next estimate of the same seat changed most, [{seat, at, move, from, to}], in order. */
export function turningMoves(lines) {
  const values = lines.flat().map((point) => point.value);
  const least = TURN * (Math.max(...values) - Math.min(...values));
  const changes = lines.flatMap((points, seat) => points.slice(1).map((point, index) => (
    {seat, at: points[index].at + 1, move: points[index].move, from: points[index].value, to: point.value})));
  return changes.filter(({from, to}) => Math.abs(to - from) >= least && to !== from)
    .sort((one, other) => Math.abs(other.to - other.from) - Math.abs(one.to - one.from)).slice(0, TOLD).sort((one, other) => one.at - other.at);
}

const signed = (value) => `${value >= 0 ? '+' : '−'}${Math.abs(value).toFixed(2)}`;

// The curve of a game, and its turning moves as buttons; null where nobody estimated anything.
function evaluation(game, name, seek, opinions) {
  const isCurve = (lines) => Math.max(...lines.map((points) => points.length)) > 1;
  const [lines, ...others] = [estimates(game), ...opinions.map((opinion) => estimatesBeside(game, opinion))].filter(isCurve);
  if (!lines) return null;
  const [width, height, last] = [300, 90, game.frames.length - 1];
  const most = Math.max(...[lines, ...others].flat(2).map((point) => Math.abs(point.value)), 1e-9);
  const x = (at) => 4 + (width - 8) * at / last, y = (value) => height / 2 - (height / 2 - 5) * value / most;
  const cursor = make('line', {class: 'cursor', y1: 0, y2: height});
  const turns = turningMoves(lines);
  const drawn = make('svg', {viewBox: `0 0 ${width} ${height}`, class: 'evaluation', role: 'img', 'aria-label': `Expected returns over the game, from ${signed(-most)} to ${signed(most)}`,
    onclick: (event) => { const box = drawn.getBoundingClientRect(); seek(Math.round(last * ((event.clientX - box.left) / box.width * width - 4) / (width - 8))); }},
  make('line', {class: 'zero', x1: 0, x2: width, y1: height / 2, y2: height / 2}), cursor,
  [lines, ...others].map((each, number) => each.map((points, seat) => (points.length ? make('path', {class: `line line-${seat % 8 + 1}${number ? ' line-beside' : ''}`,
    d: points.map((point, index) => `${index ? 'L' : 'M'}${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`).join('')}) : null))),
  turns.map((turn) => make('circle', {class: `turn line-${turn.seat % 8 + 1}`, cx: x(turn.at - 1), cy: y(turn.from), r: 3.5})));
  const legend = make('ul', {class: 'legend'}, lines.map((points, seat) => (points.length ? make('li', null, make('span', {class: `swatch swatch-${seat % 8 + 1}`, 'aria-hidden': 'true'}), name(seat)) : null)));
  const told = turns.map((turn) => make('li', null, make('button', {type: 'button', onclick: () => seek(turn.at)}, `${name(turn.seat)}: ${turn.move.action}`), ` ${signed(turn.from)} → ${signed(turn.to)}`));
  return {
    element: make('section', {class: 'course'}, make('h2', null, 'Expected returns'), drawn, legend, others.length ? make('p', {class: 'quiet'}, 'Dashed: what those beside expect.') : null, turns.length ? [make('h3', null, 'Moves that turned it'), make('ol', {class: 'turns'}, told)] : null),
    mark(at) { cursor.setAttribute('x1', x(at)); cursor.setAttribute('x2', x(at)); },
  };
}

/**
 * Shows a game in `root`.
 * game: {title, seats: [{name, digest, source}], seat_names, outcome, returns, frames: [{svg, text, moves: [{seat, action, value, probs, is_opening}]}]}.
 * Returns {remove, beside}: remove ends its timer; beside(opinion) shows what another policy would do in each position,
 * {name, since, answers: [[move] of each position from step `since` on]}.
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
  const opinions = [], seek = (number) => { stop(); show(number); };
  let course = evaluation(game, seat, seek, opinions);
  const agreement = make('p', {class: 'quiet'});
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
    if (course) course.mark(at);
    slider.value = at;
    slider.setAttribute('aria-valuetext', `step ${at} of ${last}`);
    said.textContent = at === 0 ? 'The start of the game.' : frame.moves.map(described).join('; ') + (at === last ? `. ${game.outcome}` : '');
    const thinking = (next ? next.moves : []).filter((move) => move.value !== null || move.probs.length);
    thoughts.replaceChildren(...thinking.map((move) => make('section', null,
      make('h3', null, `${seat(move.seat)} thinks`), make('p', null, `${valueText(move.value)}, then plays ${move.action}`), chances(move.probs, move.action))));
    const beside = opinions.flatMap(({name, since, answers}) => (answers[at - since] || []).map((move) => make('section', {class: 'opinion'},
      make('h3', null, `${game.seat_names[move.seat]}: ${name} would play ${move.action}`), make('p', null, valueText(move.value)), chances(move.probs, move.action))));
    thoughts.append(...beside);
    if (!thinking.length && !beside.length) thoughts.append(make('p', {class: 'quiet'}, next ? 'No values or probabilities were recorded for this decision.' : 'The game is over.'));
    [...list.querySelectorAll('button')].forEach((entry, index) => {
      if (index + 1 === at) entry.setAttribute('aria-current', 'step'); else entry.removeAttribute('aria-current');
    });
    const current = list.querySelector('[aria-current]');
    if (current) list.scrollTop = current.offsetTop - list.offsetTop - list.clientHeight / 2;
    if (at === last) stop();
  }

  function beside(opinion) {
    const place = opinions.findIndex(({name}) => name === opinion.name);
    opinions.splice(place < 0 ? opinions.length : place, 1, opinion);
    const fresh = evaluation(game, seat, seek, opinions);
    if (fresh && course) course.element.replaceWith(fresh.element);
    else if (fresh) root.querySelector('.side').prepend(fresh.element);
    course = fresh || course;
    const told = opinions.map(({name, since, answers}) => {
      const made = answers.flatMap((moves, index) => moves.map((move) => game.frames[since + index + 1]?.moves.find((one) => one.seat === move.seat)?.action === move.action));
      return `${name} would have made ${made.filter(Boolean).length} of ${made.length} moves.`;
    });
    agreement.textContent = told.join(' ');
    [...list.children].forEach((entry, index) => {
      const others = opinions.flatMap(({name, since, answers}) => (answers[index - since] || []).filter((move) => game.frames[index + 1].moves.find((one) => one.seat === move.seat)?.action !== move.action)
        .map((move) => `${name}: ${move.action}`));
      entry.querySelector('.other-move')?.remove();
      if (others.length) entry.append(make('span', {class: 'other-move quiet'}, ` ${others.join(', ')}`));
    });
    show(at);
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
    make('div', {class: 'side'}, course ? course.element : null, make('h2', null, 'Thoughts'), thoughts, make('h2', null, 'Moves'), agreement, list)));
  show(at);
  return {beside, remove: () => { if (timer !== null) clearInterval(timer); }};
}
