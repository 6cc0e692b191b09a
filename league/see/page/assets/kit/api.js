// Requests to the page's own server. A change carries the word that only this page can read.

const BASE = '/api/v1';
let session = null;

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

async function answer(response) {
  let body = null;
  try {
    body = await response.json();
  } catch {
    throw new Refused(response.status, `the server answered ${response.status}`);
  }
  if (!response.ok) throw new Refused(response.status, body.error || `the server answered ${response.status}`);
  return body;
}

async function send(path, options) {
  try {
    return await fetch(BASE + path, {credentials: 'same-origin', ...options});
  } catch {
    throw new Refused(0, 'the server of this page does not answer: is `league serve` still running?');
  }
}

export async function get(path) {
  return answer(await send(path, {}));
}

export async function post(path, body) {
  const headers = {'content-type': 'application/json'};
  if (session) headers[session.header] = session.csrf;
  return answer(await send(path, {method: 'POST', headers, body: JSON.stringify(body)}));
}

/** Enter by the token in the address, or by the cookie of an earlier visit. */
export async function enter() {
  const token = new URLSearchParams(location.hash.replace(/^#/, '')).get('token');
  if (token) {
    history.replaceState(null, '', location.pathname);
    session = await post('/session', {token});
  } else {
    session = await get('/session');
  }
  return session;
}

export async function enterBy(token) {
  session = await post('/session', {token});
  return session;
}

/** Call `changed` with the counters of a run whenever they have moved on; returns a function that ends it. */
export function follow(run, changed, state) {
  const source = new EventSource(`${BASE}/runs/${encodeURIComponent(run)}/news`);
  source.addEventListener('changed', event => changed(JSON.parse(event.data)));
  source.onopen = () => state(true);
  source.onerror = () => state(false);
  return () => source.close();
}
