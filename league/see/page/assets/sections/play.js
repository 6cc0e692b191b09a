import {card, h, note, part, svg} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {chances, mountPlayer, picture, valueText} from '../replay/player.js';

export const title = 'Play';

const state = {run: '', game: null, showEvaluation: true, showHints: false, review: null, error: ''};

function choice(id, label, options, chosen) {
  const value = options.some(([known]) => known === chosen) ? chosen : options[0]?.[0];
  return h('span', {class: 'pair'}, h('label', {for: id}, label), h('select', {id, value}, options.map(([known, text]) => h('option', {value: known}, text))));
}

function setUp(data, context, draw) {
  const policies = [...data.policies, ...data.bots];
  const seats = Array.from({length: Math.max(data.seats, 1)}, (_, seat) => [String(seat), `seat ${seat}`]);
  const form = h('form', {class: 'filters', onsubmit: async (event) => {
    event.preventDefault();
    const field = (id) => document.getElementById(id);
    await act(context, draw, () => context.post(`/runs/${encodeURIComponent(context.run)}/play`, {
      policy: field('play-policy').value, seat: Number(field('play-seat').value), greedy: field('play-greedy').checked,
    }));
  }},
  choice('play-policy', 'Against', policies.map((name) => [name, name]), context.query.policy),
  choice('play-seat', 'You hold', seats, '0'),
  h('label', {for: 'play-greedy'}, h('input', {type: 'checkbox', id: 'play-greedy'}), ' it always takes its likeliest move'),
  h('button', {type: 'submit'}, 'Start'));
  return card(`A game of ${data.game}`, form,
    data.policies.length ? null : note('The run has no snapshot yet, so only bots play.'));
}

const remembered = (run) => `play ${run}`; // the server keeps a game for half an hour, a reload keeps its number

function forget(run) {
  state.game = null;
  state.review = null;
  sessionStorage.removeItem(remembered(run));
}

async function takeUp(context, draw) {
  const id = sessionStorage.getItem(remembered(context.run));
  if (!id || (state.game && state.run === context.run)) return;
  try {
    const game = await context.get(`/runs/${encodeURIComponent(context.run)}/play/${encodeURIComponent(id)}`);
    Object.assign(state, {game, run: context.run, review: null, error: ''});
    draw();
  } catch {
    forget(context.run); // it has ended, or the server is another one
  }
}

async function act(context, draw, call) {
  try {
    state.game = await call();
    state.run = context.run;
    sessionStorage.setItem(remembered(context.run), state.game.id);
    state.review = null;
    state.error = '';
    context.announce(state.game.outcome || 'Your move.');
  } catch (error) {
    state.error = error.message;
    context.announce(error.message);
  }
  draw();
}

function board(game, choose) {
  const drawn = picture(game.svg);
  const names = new Map(game.options.map((option) => [option.action, option.name]));
  for (const target of game.targets) {
    drawn.append(svg('rect', {key: `target-${target.action}`, x: target.x, y: target.y, width: target.width, height: target.height, fill: 'transparent', class: 'target',
      'data-action': target.action, onclick: () => choose(target.action)}, svg('title', {}, names.get(target.action)))); // the buttons beside it are the way by keyboard
  }
  return h('div', {class: 'board'}, drawn);
}

function moveList(game, showEvaluation) {
  const rows = game.moves.map((moves) => h('li', null, moves.map((move) => {
    const who = move.seat === game.seat ? 'you' : game.seats[move.seat].name;
    const value = showEvaluation && move.value !== null ? ` (${valueText(move.value)})` : '';
    return h('div', null, `${game.seat_names[move.seat]}, ${who}: ${move.action}${value}`);
  })));
  return h('ol', {class: 'moves', tabindex: 0, 'aria-label': 'Moves so far'}, rows);
}

function thoughts(game) {
  const parts = [];
  const last = [...game.moves].reverse().flat().find((move) => move.seat !== game.seat && (move.value !== null || move.probs.length));
  if (state.showEvaluation && last) {
    parts.push(h('h3', null, `${game.seats[last.seat].name} before ${last.action}`), h('p', null, valueText(last.value)), chances(last.probs, last.action));
  }
  if (state.showHints && game.hint) {
    parts.push(h('h3', null, 'Hint for your move'), h('p', null, valueText(game.hint.value)),
      chances(game.hint.actions.slice(0, 8).map((each) => [each.name, each.chance]), null));
  }
  if (!parts.length) parts.push(note('Nothing to show: bots say nothing, and what is hidden stays hidden until the end.'));
  return parts;
}

function toggle(id, label, key, draw) {
  const box = h('input', {type: 'checkbox', id, checked: state[key], onchange: (event) => { state[key] = event.currentTarget.checked; draw(); }});
  return h('label', {for: id}, box, ` ${label}`);
}

function table(context, draw) {
  const game = state.game;
  const path = `/runs/${encodeURIComponent(context.run)}/play/${encodeURIComponent(game.id)}`;
  const choose = (action) => act(context, draw, () => context.post(path, {action}));
  const options = h('div', {class: 'options', role: 'group', 'aria-label': 'Your moves'}, game.options.map((option) =>
    h('button', {type: 'button', id: `play-move-${option.action}`, class: 'quiet', onclick: () => choose(option.action)}, option.name)));
  const said = game.outcome || (game.simultaneous ? 'Choose: the others choose too, and all is shown at once.' : 'Your move.');
  const review = h('button', {type: 'button', id: 'play-look', onclick: async () => { state.review = await context.get(`${path}/replay`); draw(); }}, 'Look back at the game');
  return card(`${game.env}: you are ${game.seat_names[game.seat]} against ${game.seats.find((_, seat) => seat !== game.seat)?.name ?? 'nobody'}`,
    h('div', {class: 'player'},
      h('div', {class: 'stage'}, board(game, choose), h('p', {class: 'said', id: 'play-said'}, said), options,
        h('details', {id: 'play-text'}, h('summary', null, 'As text'), h('pre', {tabindex: 0, 'aria-label': 'The state as text'}, game.text))),
      h('div', {class: 'side'},
        h('div', {class: 'controls'},
          h('button', {type: 'button', id: 'play-back', disabled: !game.can_take_back, onclick: () => choose(null)}, 'Take back'),
          h('button', {type: 'button', id: 'play-end', onclick: () => { forget(context.run); draw(); }}, 'New game'),
          game.outcome ? review : null),
        toggle('play-evaluation', 'show its evaluation', 'showEvaluation', draw), toggle('play-hints', 'show hints', 'showHints', draw),
        thoughts(game), h('h3', null, 'Moves'), moveList(game, state.showEvaluation))));
}

// A review never changes: its player goes on through every drawing.
function mountReview(box, game) {
  box.id = 'play-review';
  return {remove: mountPlayer(box, game).remove};
}

function mount(box, ...given) {
  let [data, context] = given;
  function draw() {
    const focused = document.activeElement?.id;
    const parts = state.game && state.run === context.run ? [table(context, draw)] : [setUp(data, context, draw)];
    if (state.error) parts.unshift(h('p', {class: 'card bad-edge', role: 'alert'}, state.error));
    if (state.review) parts.push(card('The whole game', part(`review-${state.game.id}-${state.review.frames.length}`, mountReview, state.review)));
    show(box, parts);
    const again = focused && document.getElementById(focused);
    if (focused?.startsWith('play-') && (!again || again.disabled)) box.querySelector('.options button, #play-end')?.focus(); // the column is full, or the game over
  }
  draw();
  takeUp(context, draw);
  return {
    update(...next) {
      [data, context] = next;
      draw();
    },
  };
}

export function render(root, data, context) {
  root.append(part('play', mount, data, context));
}
