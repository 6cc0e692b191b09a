// Plays the policy: on a board where the rules are in the page, else for one observation after the other.
const facts = JSON.parse(document.getElementById('facts').textContent);

const policy = (() => {
  const bytes = Uint8Array.from(atob(document.getElementById('weights').textContent), (each) => each.charCodeAt(0));
  const numbers = new Float32Array(bytes.buffer);
  const weights = {};
  let at = 0;
  for (const [name, shape] of facts.layout) {
    const size = shape.reduce((a, b) => a * b, 1);
    weights[name] = np.tensor(shape, Float64Array.from(numbers.subarray(at, at + size)));
    at += size;
  }
  const zeros = () => np.full([1, facts.core], 0);
  const run = (inputs) => step(weights, inputs);

  // The largest difference from the network's own outputs, relative above 1.
  function difference() {
    const { inputs, outputs } = facts.check;
    const found = run(inputs.map(([shape, data]) => np.tensor(shape, Float64Array.from(data))));
    const far = outputs.flatMap((wanted, n) => wanted.map((want, k) =>
      Math.abs(found[n].data[k] - want) / Math.max(1, Math.abs(want))));
    return far.reduce((a, b) => Math.max(a, b), 0);
  }

  // fields: name -> numbers; returns dist_params, value and, with memory, the core state of the seat's next decision.
  function decide(fields, mask, core) {
    const inputs = facts.fields.map(([name, shape]) => np.tensor([1, ...shape], Float64Array.from(fields[name])));
    if (facts.actions) inputs.push(np.tensor([1, facts.actions], Float64Array.from(mask, Number)));
    if (facts.core) inputs.push(core ?? zeros());
    const [params, value, next] = run(inputs);
    return { params: [...params.data], value: value.data[0], core: next ?? null };
  }

  function chances(logits) {
    const top = Math.max(...logits);
    const parts = logits.map((each) => Math.exp(each - top));
    const total = parts.reduce((a, b) => a + b);
    return parts.map((each) => each / total);
  }

  function choose(logits, draws) {
    if (!draws) return logits.indexOf(Math.max(...logits));
    const parts = chances(logits);
    let left = Math.random();
    const found = parts.findIndex((part) => { left -= part; return left < 0; });
    return found < 0 ? parts.indexOf(Math.max(...parts)) : found;
  }
  return { run, difference, decide, chances, choose };
})();

function element(tag, attributes = {}, ...inside) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...inside);
  return made;
}

const main = document.querySelector('main');
const status = element('p', { id: 'status' });
status.setAttribute('role', 'status');

function showBoard(rules) {
  const names = facts.seats.length === 2 ? facts.seats : ['first', 'second'];
  const board = element('div', { id: 'board' });
  board.style.gridTemplateColumns = `repeat(${rules.columns}, 1fr)`;
  const cells = Array.from({ length: rules.rows * rules.columns }, (_, cell) =>
    element('button', { onclick: () => move(rules.actionOf(cell)) }, element('span')));
  board.append(...cells);
  const pass = element('button', { id: 'pass', onclick: () => move(cells.length) }, 'Pass');
  const side = element('select', { id: 'side', onchange: begin }, ...names.map((name, seat) => element('option', { value: seat }, name)));
  const draws = element('input', { type: 'checkbox', id: 'draws' });
  const again = element('button', { id: 'again', onclick: begin }, 'New game');
  main.append(status, board, element('div', { className: 'row' }, pass, again,
    element('label', {}, 'You are ', side), element('label', {}, draws, ' It draws its moves')));
  let state = null;
  let core = null;
  let last = [];

  function begin() {
    [state, core, last] = [rules.begin(), null, []];
    answer();
  }
  const mine = () => state.seat === Number(side.value);
  function move(action) {
    if (state.winner !== null || !mine() || !rules.legal(state)[action]) return;
    play(action);
    answer();
  }
  function play(action) {
    const before = state.cells;
    state = rules.play(state, action);
    last = state.cells.flatMap((stone, cell) => (stone && !before[cell] ? [cell] : []));
  }
  function answer() {
    while (state.winner === null && !mine()) {
      const decided = policy.decide({ [facts.fields[0][0]]: RULES.board(state) }, rules.legal(state), core);
      core = decided.core;
      play(policy.choose(decided.params, draws.checked));
    }
    draw();
  }
  function draw() {
    const legal = rules.legal(state);
    const open = state.winner === null && mine();
    cells.forEach((cell, n) => {
      const stone = state.cells[n];
      const may = open && !stone && legal[rules.actionOf(n)];
      cell.className = [may ? 'legal' : '', last.includes(n) ? 'last' : ''].join(' ');
      cell.firstChild.className = stone ? `stone${stone}` : '';
      const what = stone ? names[stone - 1] : may ? 'empty, legal' : 'empty';
      cell.setAttribute('aria-label', `row ${Math.floor(n / rules.columns) + 1} column ${(n % rules.columns) + 1}: ${what}`);
    });
    pass.hidden = legal.length !== cells.length + 1;
    pass.disabled = !open || !legal[cells.length];
    const won = { [-1]: 'A draw.', [Number(side.value)]: 'You win.' };
    status.textContent = state.winner === null ? `Your move: ${names[state.seat]}.` : won[state.winner] ?? 'The policy wins.';
  }
  begin();
}

function showFields() {
  const boxes = facts.fields.map(([name, shape], n) => {
    const [, data] = facts.check.inputs[n];
    const box = element('textarea', { id: `field-${name}`, rows: 3, value: JSON.stringify(data) });
    main.append(element('label', {}, `${name}, ${JSON.stringify(shape)} row by row`, box));
    return [name, box];
  });
  const mask = element('textarea', { id: 'mask', rows: 2, value: JSON.stringify(Array(facts.actions).fill(1)) });
  if (facts.actions) main.append(element('label', {}, 'action mask, 1 where legal', mask));
  const table = element('table', { id: 'answer' });
  let core = null;
  const numbers = (box) => JSON.parse(box.value).flat(Infinity);
  const ask = () => {
    try {
      const decided = policy.decide(Object.fromEntries(boxes.map(([name, box]) => [name, numbers(box)])), numbers(mask), core);
      core = decided.core;
      const shown = facts.numbered ? policy.chances(decided.params) : decided.params;
      table.replaceChildren(...shown.map((each, n) =>
        element('tr', {}, element('th', {}, String(n)), element('td', {}, each.toFixed(4)))));
      status.textContent = `Value ${decided.value.toFixed(3)}; ${facts.numbered ? 'chance of each action' : 'dist_params'}:`;
    } catch (error) {
      status.textContent = `That is no observation of this game: ${error.message}`;
    }
  };
  const forget = () => { core = null; status.textContent = 'A new episode.'; };
  main.append(element('div', { className: 'row' }, element('button', { id: 'ask', onclick: ask }, 'Ask'),
    element('button', { id: 'forget', onclick: forget, hidden: !facts.core }, 'New episode')), status, table);
}

const far = policy.difference();
if (far <= 1e-5) {
  const rules = RULES.games[facts.game];
  if (rules && facts.numbered) showBoard(rules);
  else showFields();
  main.append(element('footer', {}, `${facts.member}, made by League ${facts.version}. Nothing leaves this page. `
    + `It computes its network within ${far.toExponential(0)}.`));
} else {
  main.append(element('p', { id: 'status' }, `This browser computes other numbers than the network: ${far} apart.`));
}
