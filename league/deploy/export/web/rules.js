// The rules of the games with a board in the page: a state has cells (0 empty, 1 and 2 a stone of seat 0 and 1), the
// seat to move, and, at the end, its winner (-1 for a draw). A test plays them beside the games of Python.
const RULES = (() => {
  const lined = (rows, columns, needed, falls) => {
    const inside = (row, column) => row >= 0 && row < rows && column >= 0 && column < columns;
    const landing = (cells, action) => {
      if (!falls) return action;
      let row = rows - 1;
      while (row >= 0 && cells[row * columns + action]) row -= 1;
      return row * columns + action;
    };
    const reached = (cells, cell, stone) => [[0, 1], [1, 0], [1, 1], [1, -1]].some(([down, across]) => {
      let count = 1;
      for (const way of [1, -1]) {
        let [row, column] = [Math.floor(cell / columns) + way * down, (cell % columns) + way * across];
        while (inside(row, column) && cells[row * columns + column] === stone) {
          count += 1;
          [row, column] = [row + way * down, column + way * across];
        }
      }
      return count >= needed;
    });
    return {
      rows,
      columns,
      begin: () => ({ cells: Array(rows * columns).fill(0), seat: 0, winner: null }),
      legal: ({ cells }) => Array.from({ length: falls ? columns : rows * columns }, (_, action) => !cells[action]),
      actionOf: (cell) => (falls ? cell % columns : cell),
      play: ({ cells: before, seat }, action) => {
        const [cells, cell] = [[...before], landing(before, action)];
        cells[cell] = seat + 1;
        const full = cells.every((stone) => stone);
        return { cells, seat: 1 - seat, winner: reached(cells, cell, seat + 1) ? seat : full ? -1 : null };
      },
    };
  };

  const SIDE = 8;
  const PASS = SIDE * SIDE;
  const DIRECTIONS = [-1, 0, 1].flatMap((down) => [-1, 0, 1].map((across) => [down, across])).filter(([a, b]) => a || b);
  const turned = (cells, cell, stone) => cells[cell] ? [] : DIRECTIONS.flatMap(([down, across]) => {
    const found = [];
    let [row, column] = [Math.floor(cell / SIDE) + down, (cell % SIDE) + across];
    while (row >= 0 && row < SIDE && column >= 0 && column < SIDE) {
      const there = cells[row * SIDE + column];
      if (there === stone) return found;
      if (!there) return [];
      found.push(row * SIDE + column);
      [row, column] = [row + down, column + across];
    }
    return [];
  });
  const moves = (cells, seat) => cells.map((_, cell) => turned(cells, cell, seat + 1).length > 0);
  const othello = {
    rows: SIDE,
    columns: SIDE,
    begin: () => {
      const cells = Array(PASS).fill(0);
      [cells[28], cells[35], cells[27], cells[36]] = [1, 1, 2, 2];
      return { cells, seat: 0, winner: null };
    },
    legal: ({ cells, seat }) => {
      const found = moves(cells, seat);
      return [...found, !found.includes(true)];
    },
    actionOf: (cell) => cell,
    play: ({ cells: before, seat }, action) => {
      const cells = [...before];
      for (const cell of action === PASS ? [] : [action, ...turned(before, action, seat + 1)]) cells[cell] = seat + 1;
      const ended = ![0, 1].some((each) => moves(cells, each).includes(true));
      const lead = cells.reduce((sum, stone) => sum + (stone === 1) - (stone === 2), 0);
      return { cells, seat: 1 - seat, winner: !ended ? null : lead > 0 ? 0 : lead < 0 ? 1 : -1 };
    },
  };

  // bool [2, rows, columns], as all three games show it: the stones of the seat to move, then the other's.
  const board = ({ cells, seat }) => [seat + 1, 2 - seat].flatMap((stone) => cells.map((each) => Number(each === stone)));
  return {
    board,
    games: { connect_four: lined(6, 7, 4, true), tic_tac_toe: lined(3, 3, 3, false), othello },
  };
})();
