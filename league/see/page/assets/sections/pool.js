// A rating pool: tests of one policy against another as they are played, the ratings, and the workers.

import {badge, card, figure, h, note, part, scroll, svg} from '../kit/dom.js';
import {deedDone, deedWords} from '../kit/deeds.js';
import {show} from '../kit/patch.js';
import {table} from '../kit/table.js';
import {count, elo, fixed, percent} from '../kit/format.js';

const KINDS = {H1: 'good', H0: 'bad', undecided: 'plain', withdrawn: 'plain', '': 'warn'};
const WORDS = {H1: 'accepted', H0: 'rejected', '': 'playing'};
const SCORES = ['0', '¼', '½', '¾', '1'];

/** Draws a pool into `main`. context: {get, post, link, announce, readOnly, refresh, query, games}. */
export function draw(main, pool, context) {
  const chosen = pool.tests.find((test) => String(test.number) === context.query.test);
  const {table: ratings} = pool;
  show(main, h('h1', {tabindex: -1, id: 'heading'}, `Pool ${pool.name}`),
    h('dl', {class: 'figures'}, figure('game', ratings.game), figure('policies', count(ratings.rows.length)), figure('games', count(ratings.games)),
      figure('uncertainty', `${Math.round(ratings.uncertainty)} Elo`), figure('tests open', count(pool.tests.filter((test) => !test.outcome).length)), figure('batches in hand', count(pool.hands.length))),
    chosen ? detail(chosen, pool, context) : null,
    context.readOnly ? null : h('details', {id: 'pool-ask', class: 'card', open: !pool.tests.length}, h('summary', null, 'Test one against another'), part('pool-form', mount, pool, context)),
    card('Tests', pool.tests.length ? table({id: 'pool-tests', caption: 'Tests', keyOf: (test) => test.number, rows: pool.tests, columns: columns(pool, context)}) : note('No test has been asked for yet.')),
    card('Ratings', table({id: 'pool-ratings', caption: 'Ratings', keyOf: (row) => row.name, rows: ratings.rows, columns: [
      {key: 'name', label: 'Policy'}, {key: 'elo', label: 'Elo', number: true, cell: (row) => h('b', null, elo(row.elo))},
      {key: 'low', label: '95 %', number: true, rank: 2, cell: (row) => (row.status === 'anchor' ? 'anchor' : `${elo(row.low)} to ${elo(row.high)}`)},
      {key: 'games', label: 'Games', number: true, rank: 1, cell: (row) => count(row.games)}, {key: 'note', label: 'Note', rank: 1, cell: (row) => (row.status === 'set aside' ? row.note : '')}]})),
    card('At play', pool.hands.length ? table({id: 'pool-hands', caption: 'Batches in hand', keyOf: (hand) => `${hand.worker} ${hand.first} ${hand.second}`, rows: pool.hands, columns: [
      {key: 'worker', label: 'Worker'}, {key: 'first', label: 'First'}, {key: 'second', label: 'Second'}, {key: 'games', label: 'Games', number: true, rank: 1},
      {key: 'test', label: 'Test', number: true, cell: (hand) => hand.test || '–'}]})
      : note('Nobody plays. ', h('code', null, `league pool run ${pool.path}`), ' plays here; ', h('code', null, `league pool serve ${pool.path}`), ' takes workers, which join by its address and token.')));
}

function state(test) {
  return badge(test.outcome in WORDS ? `${test.outcome ? 'H1 ' : ''}${WORDS[test.outcome]}` : test.outcome, KINDS[test.outcome]);
}

function columns(pool, context) {
  return [
    {key: 'number', label: 'Test', cell: (test) => h('a', {href: context.link(pool.name, {test: test.number}), id: `test-${test.number}`}, String(test.number))},
    {key: 'first', label: 'First against second', cell: (test) => `${test.first} – ${test.second}`},
    {key: 'outcome', label: 'State', cell: state},
    {key: 'ratio', label: 'LLR', number: true, cell: (test) => `${fixed(test.ratio, 2)} of ${fixed(test.ratio < 0 ? test.lower : test.upper, 2)}`},
    {key: 'elo', label: 'Elo', number: true, rank: 3, cell: (test) => elo(test.elo)},
    {key: 'games', label: 'Games', number: true, rank: 2, cell: (test) => count(test.games)},
    {key: 'pairs', label: 'Pairs by score', rank: 1, value: (test) => test.pairs[4], cell: (test) => test.pairs.join(' ')},
    {key: 'by', label: 'By', rank: 1},
  ];
}

// One test: where its ratio stands between its bounds, and the pairs by their score.
function detail(test, pool, context) {
  const share = Math.max(0, Math.min(1, (test.ratio - test.lower) / (test.upper - test.lower)));
  const most = Math.max(...test.pairs, 1);
  const withdraw = async () => {
    try {
      await deedDone(await context.post(`/folders/${encodeURIComponent(pool.name)}/deeds/withdraw`, {arguments: {number: String(test.number)}}), context.get, () => {});
    } catch (error) {
      context.announce(error.message);
    }
    context.refresh();
  };
  const interval = test.low === null || test.high === null ? '' : ` [${elo(test.low)}, ${elo(test.high)}]`;
  return h('section', {class: 'card', key: `test-${test.number}`, id: 'pool-test'},
    h('h2', null, `Test ${test.number}: ${test.first} against ${test.second}`),
    h('p', null, state(test), ` stronger by ${test.elo1} Elo rather than ${test.elo0}, with errors ${percent(test.alpha)} and ${percent(test.beta)}. `,
      `${count(test.games)} games: ${count(test.wins)} won, ${count(test.draws)} drawn, ${count(test.losses)} lost; Elo ${elo(test.elo)}${interval}.`, test.why ? ` ${test.why}` : null),
    test.reason || test.by ? note([test.reason, test.by ? `by ${test.by}` : ''].filter(Boolean).join(', ')) : null,
    h('p', {class: 'llr'}, `H0 ${fixed(test.lower, 2)}`, h('progress', {max: 1, value: share, 'aria-label': 'Log-likelihood ratio between its bounds'}), `${fixed(test.upper, 2)} H1`),
    svg('svg', {viewBox: '0 0 200 64', class: 'pentanomial', role: 'img', 'aria-label': `Pairs of games by the score of the first: ${test.pairs.map((pairs, place) => `${SCORES[place]} in ${pairs}`).join(', ')}`},
      test.pairs.flatMap((pairs, place) => [svg('rect', {x: 4 + 40 * place, y: 48 - 44 * pairs / most, width: 32, height: 44 * pairs / most, class: 'fill-1'}), svg('text', {x: 20 + 40 * place, y: 60, 'text-anchor': 'middle'}, SCORES[place])])),
    h('p', null, context.readOnly || test.outcome ? null : h('button', {type: 'button', class: 'quiet', id: 'test-withdraw', onclick: withdraw}, 'Withdraw it'), ' ', h('a', {href: context.link(pool.name, {})}, 'Close')));
}

function mount(box, given, first) {
  let [pool, context] = [given, first];
  const outcome = h('div', {class: 'outcome', role: 'status', id: 'ask-outcome'});
  const names = h('datalist', {id: 'ask-names'});
  const known = () => show(names, pool.table.rows.map((row) => h('option', {key: row.name, value: row.name})));
  const form = h('form', {class: 'fields', id: 'ask-form', onsubmit: async (event) => {
    event.preventDefault();
    const given = Object.fromEntries(pool.arguments.map(({name}) => [name, document.getElementById(`ask-${name}`).value.trim()]));
    try {
      const begun = await context.post(`/folders/${encodeURIComponent(pool.name)}/deeds/test`, {arguments: given});
      await deedDone(begun, context.get, (deed) => outcome.replaceChildren(deedWords(deed, () => '')));
      context.refresh();
    } catch (error) {
      outcome.replaceChildren(h('p', {class: 'refused'}, badge('refused', 'bad'), ` ${error.message}`));
    }
  }}, pool.arguments.map((argument) => h('label', {for: `ask-${argument.name}`}, argument.name + (argument.is_required ? '' : ' (optional)'), h('span', null, argument.what),
    h('input', {id: `ask-${argument.name}`, autocomplete: 'off', required: argument.is_required, value: argument.default || '', list: argument.is_required ? 'ask-names' : null}))),
  names, h('div', null, h('button', {type: 'submit', id: 'ask-do'}, 'Test it')));
  box.append(form, outcome);
  known();
  return {update(next, newest) { [pool, context] = [next, newest]; known(); }};
}
