import {card, h, note, part, svg} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {advisors, mountAsking} from '../kit/asking.js';
import {chances, picture, valueText} from '../replay/player.js';

export const title = 'Play';

const state = {run: '', game: null, showEvaluation: true, showHints: false, review: null, error: '', beside: {name: '', answers: []}};

function choice(id, label, options, chosen) {
  const value = options.some(([known]) => known === chosen) ? chosen : options[0]?.[0];
  return h('span', {class: 'pair'}, h('label', {for: id}, label), h('select', {id, value}, options.map(([known, text]) => h('option', {key: known, value: known}, text))));
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
  state.beside.answers = [];
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
    askBeside(context, draw);
  } catch (error) {
    state.error = error.message;
    context.announce(error.message);
  }
  draw();
}

const pathOf = (run, game) => `/runs/${encodeURIComponent(run)}/play/${encodeURIComponent(game.id)}`;

// The policy beside the game answers each new position: what it would do there, in the place of whoever acts.
async function askBeside(context, draw) {
  const {game, beside} = state;
  if (!game || !beside.name) return;
  beside.answers = beside.answers.slice(0, game.step + (game.outcome ? 0 : 1));
  const since = beside.answers.length;
  if (since > game.step) return;
  try {
    const {answers} = await context.get(`${pathOf(context.run, game)}/opinion?${new URLSearchParams({policy: beside.name, since})}`);
    if (state.game !== game || state.beside !== beside || beside.answers.length !== since) return;
    beside.answers = [...beside.answers, ...answers];
  } catch (error) {
    state.error = error.message;
  }
  draw();
}

function besideChoice(data, context, draw) {
  const names = ['', ...data.policies, ...data.bots];
  return h('span', {class: 'pair'}, h('label', {for: 'play-beside'}, 'Beside it'), h('select', {id: 'play-beside', value: state.beside.name, onchange: (event) => {
    state.beside = {name: event.currentTarget.value, answers: []};
    draw();
    askBeside(context, draw);
  }}, names.map((name) => h('option', {key: name || 'nobody', value: name}, name || 'nobody'))));
}

// What the policy beside would do at a step, in the place of a seat.
function opinion(step, seat) {
  const move = (state.beside.answers[step] || []).find((one) => one.seat === seat);
  return move ? h('section', {class: 'opinion', key: 'opinion'}, h('h3', null, `${state.beside.name} would play ${move.action}`), h('p', null, valueText(move.value)), chances(move.probs, move.action)) : null;
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

// The last answer of the policies, and the position of the person, each beside what another policy would do there.
function thoughts(game) {
  const parts = [];
  const step = game.moves.findLastIndex((moves) => moves.some((move) => move.seat !== game.seat));
  const last = step < 0 ? null : game.moves[step].find((move) => move.seat !== game.seat);
  const other = last && opinion(step, last.seat);
  if (state.showEvaluation && last && (last.value !== null || last.probs.length || other)) {
    parts.push(h('div', {class: 'thoughts', key: 'answer'}, h('section', null, h('h3', null, `${game.seats[last.seat].name} played ${last.action}`), h('p', null, valueText(last.value)), chances(last.probs, last.action)), other));
  }
  const own = opinion(game.step, game.seat);
  if (state.showHints && (game.hint || own)) {
    parts.push(h('h3', null, 'Hints for your move'), h('div', {class: 'thoughts', key: 'hints'}, game.hint ? h('section', null, h('p', null, valueText(game.hint.value)),
      chances(game.hint.actions.slice(0, 8).map((each) => [each.name, each.chance]), null)) : null, own));
  }
  if (!parts.length) parts.push(note('Nothing to show: bots say nothing, and what is hidden stays hidden until the end.'));
  return parts;
}

function toggle(id, label, key, draw) {
  const box = h('input', {type: 'checkbox', id, checked: state[key], onchange: (event) => { state[key] = event.currentTarget.checked; draw(); }});
  return h('label', {for: id}, box, ` ${label}`);
}

function table(data, context, draw) {
  const game = state.game;
  const path = pathOf(context.run, game);
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
        besideChoice(data, context, draw), thoughts(game), h('h3', null, 'Moves'), moveList(game, state.showEvaluation))));
}

// A review never changes: its player goes on through every drawing.
function mountReview(box, review, game, context) {
  const ask = (policy) => context.get(`${pathOf(context.run, game)}/opinion?${new URLSearchParams({policy})}`);
  return mountAsking(box, review, {id: 'play-review', ask, names: advisors(context)});
}

function mount(box, ...given) {
  let [data, context] = given;
  function draw() {
    const focused = document.activeElement?.id;
    const parts = state.game && state.run === context.run ? [table(data, context, draw)] : [setUp(data, context, draw)];
    if (state.error) parts.unshift(h('p', {class: 'card bad-edge', role: 'alert'}, state.error));
    if (state.review) parts.push(card('The whole game', part(`review-${state.game.id}-${state.review.frames.length}`, mountReview, state.review, state.game, context)));
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
