// Asks a served policy for the first move of Connect Four: node play.mjs ADDRESS TOKEN
const [address, token] = process.argv.slice(2);

async function ask(method, path, message) {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(address + path, { method, headers, body: message && JSON.stringify(message) });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

const { session } = await ask("POST", "/v1/sessions"); // one for each game
const board = Array.from({ length: 2 }, () => Array.from({ length: 6 }, () => Array(7).fill(0)));
const { action } = await ask("POST", "/v1/act", { observation: { board }, mask: Array(7).fill(1), session });
console.log(action);
