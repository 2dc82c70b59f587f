// The page of a store: keyspaces, ranges of pairs, a value, and figures that move. It asks the server for JSON, and shows
// what it gets as text: nothing of the store becomes markup.
'use strict';

const token = new URLSearchParams(location.search).get('token');
const byId = (id) => document.getElementById(id);
const LIMIT = 100;
const POLL_MS = 2000;
const POINTS = 120;

const view = { keyspace: null, prefix: '', from: null, reverse: false, pages: [null], last: null, turn: 0 };

// Keys go in headers, because a URL is too short for the largest.
async function ask(path, query = {}, keys = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const url = path + '?' + new URLSearchParams(given);
  const headers = { authorization: 'Bearer ' + token };
  for (const [name, key] of Object.entries(keys)) if (key !== null) headers['forrest-' + name] = key;
  const response = await fetch(url, { headers }).catch(() => {
    throw new Error('The server does not respond.');
  });
  const json = await response.json();
  if (!response.ok) throw new Error(json.error);
  return json;
}

function say(text) {
  byId('state').textContent = text;
}

async function guarded(work) {
  try {
    await work();
    say('');
  } catch (error) {
    say(error.message);
  }
}

// Bytes as hexadecimal digits, as text with escapes, and back.

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function bytesOf(hex) {
  return Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

// The parts of a text: [text, whether it is an escape].
function partsOf(bytes) {
  const parts = [];
  const add = (text, escape) => {
    const last = parts[parts.length - 1];
    if (last && last[1] === escape) last[0] += text;
    else parts.push([text, escape]);
  };
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at];
    const length = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    let text = null;
    try {
      text = decoder.decode(bytes.subarray(at, at + length));
    } catch {
      // It is no text.
    }
    const named = { 9: '\\t', 10: '\\n', 13: '\\r', 92: '\\\\' }[byte];
    // Control characters, and those that change the direction of text, or have no width.
    if (named) add(named, true);
    else if (text === null || /[\p{C}\u200b-\u200f\u2028-\u202e\u2060-\u2069]/u.test(text)) {
      const count = text === null ? 1 : length;
      for (const other of bytes.subarray(at, at + count)) add('\\x' + other.toString(16).padStart(2, '0'), true);
      at += count;
      continue;
    } else add(text, false);
    at += length;
  }
  return parts;
}

function show(element, hex, more) {
  element.replaceChildren();
  for (const [text, escape] of partsOf(bytesOf(hex))) {
    const part = document.createElement('span');
    if (escape) part.className = 'escape';
    part.textContent = text;
    element.append(part);
  }
  if (more) element.append(' …');
}

function hexOf(text) {
  const bytes = [];
  const encoder = new TextEncoder();
  const escapes = { t: 9, n: 10, r: 13, '\\': 92 };
  for (let at = 0; at < text.length; ) {
    if (text[at] !== '\\') {
      const character = String.fromCodePoint(text.codePointAt(at));
      bytes.push(...encoder.encode(character));
      at += character.length;
    } else if (text[at + 1] in escapes) {
      bytes.push(escapes[text[at + 1]]);
      at += 2;
    } else if (/^\\x[0-9a-fA-F]{2}/.test(text.slice(at))) {
      bytes.push(parseInt(text.slice(at + 2, at + 4), 16));
      at += 4;
    } else {
      throw new Error('after a backslash comes one of t, n, r, \\ and xNN');
    }
  }
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

// Numbers.

function count(number) {
  return number === null || number === undefined ? '–' : Math.round(number).toLocaleString('en');
}

function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < units.length) {
    bytes /= 1024;
    unit += 1;
  }
  return (unit === 0 ? Math.round(bytes) : bytes.toPrecision(3)) + ' ' + units[unit];
}

// Keyspaces and pairs.

async function keyspaces() {
  const { store, home, keyspaces } = await ask('/api/keyspaces');
  document.title = (store || 'Forrest') + ' – Forrest';
  byId('store').textContent = store || 'Forrest';
  byId('home').textContent = home;
  if (!keyspaces.some((own) => own.name === view.keyspace)) {
    const first = keyspaces.find((own) => own.name === 'default' && own.keys !== 0) ?? keyspaces[0];
    view.keyspace = first?.name ?? null;
  }
  byId('keyspaces').replaceChildren(...keyspaces.map((own) => {
    const [item, button, about] = ['li', 'button', 'small'].map((name) => document.createElement(name));
    button.textContent = own.name;
    button.setAttribute('aria-current', own.name === view.keyspace);
    about.textContent = own.keys === null ? '' : `about ${count(own.keys)} keys, ${size(own.bytes)}`;
    button.append(about);
    button.addEventListener('click', () => guarded(async () => {
      view.keyspace = own.name;
      begin();
      await keyspaces_and_pairs();
    }));
    item.append(button);
    return item;
  }));
}

function begin() {
  view.prefix = hexOf(byId('prefix').value);
  view.from = byId('from').value === '' ? null : hexOf(byId('from').value);
  view.reverse = byId('reverse').checked;
  view.pages = [null];
  byId('value').hidden = true;
}

async function pairs() {
  if (view.keyspace === null) return;
  const after = view.pages[view.pages.length - 1];
  const from = after === null ? view.from : null;
  const { keyspace, prefix, reverse } = view;
  const turn = (view.turn += 1);
  byId('before').disabled = byId('after').disabled = true;
  const range = await ask('/api/range', { keyspace, reverse, limit: LIMIT }, { prefix, after, from });
  // A later request has taken over the table.
  if (turn !== view.turn) return;
  view.last = range.pairs.length > 0 ? range.pairs[range.pairs.length - 1].key : null;
  byId('pairs').replaceChildren(...range.pairs.map((pair) => {
    const row = document.createElement('tr');
    const [key, value, bytes] = ['td', 'td', 'td'].map((name) => document.createElement(name));
    show(key, pair.key, false);
    show(value, pair.value, pair.value.length < 2 * pair.bytes);
    bytes.textContent = count(pair.bytes);
    bytes.className = 'number';
    row.append(key, value, bytes);
    row.tabIndex = 0;
    row.addEventListener('click', () => guarded(() => one(pair.key)));
    row.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') guarded(() => one(pair.key));
    });
    return row;
  }));
  byId('empty').hidden = range.pairs.length > 0;
  byId('before').disabled = view.pages.length === 1;
  byId('after').disabled = !range.more;
}

function expiryOf(ms) {
  if (ms === null) return '';
  // Later than JavaScript's dates end.
  return ms > 8.64e15 ? ', expires' : ', expires ' + new Date(ms).toISOString();
}

async function one(key) {
  const value = await ask('/api/value', { keyspace: view.keyspace }, { key });
  show(byId('value-key'), key, false);
  const shown = value.value.length / 2;
  byId('value-about').textContent = count(value.bytes) + ' bytes'
    + (shown < value.bytes ? `, the first ${count(shown)} are shown` : '')
    + expiryOf(value.expires_ms);
  show(byId('value-text'), value.value, shown < value.bytes);
  byId('value').hidden = false;
}

async function keyspaces_and_pairs() {
  await keyspaces();
  await pairs();
}

// Figures. Counters become rates.

const cards = [
  { name: 'changes a second', of: (rate) => rate('forrest_changes_total'), as: count },
  { name: 'bytes changed a second', of: (rate) => rate('forrest_change_bytes_total'), as: size },
  { name: 'gets and scans a second', of: (rate) => rate('forrest_call_seconds_count{call="get"}') + rate('forrest_call_seconds_count{call="scan"}'), as: count },
  {
    name: 'pages found in the cache',
    as: (share) => (100 * share).toFixed(1) + ' %',
    of: (rate) => {
      const [hits, misses] = [rate('forrest_cache_hits_total'), rate('forrest_cache_misses_total')];
      return hits + misses > 0 ? hits / (hits + misses) : NaN;
    },
  },
  {
    name: 'memtables, cache and indexes', as: size,
    of: (_, now) => now('forrest_memtable_bytes') + now('forrest_cache_bytes') + now('forrest_index_bytes'),
  },
  { name: 'tables', of: (_, now) => now('forrest_table_bytes'), as: size },
];
let before = null;

function draw(card) {
  const points = card.points.map((point) => (Number.isFinite(point) ? point : 0));
  const most = Math.max(...points, 1e-9);
  const at = (point, number) => `${(number / (POINTS - 1)) * 100},${30 - (point / most) * 28}`;
  card.path.setAttribute('d', points.length > 1 ? 'M' + points.map(at).join('L') : '');
}

async function figures() {
  const { of, written_ms, figures } = await ask('/api/figures');
  const time = written_ms ?? Date.now();
  const age = Math.round((Date.now() - time) / 1000);
  const old = age > 10 ? `, ${count(age)} s ago` : '';
  byId('of').textContent = of === 'writer' ? `(of the process that writes${old})` : '(of this server)';
  const now = (name) => figures[name] ?? NaN;
  if (before !== null && time > before.time) {
    const seconds = (time - before.time) / 1000;
    const rate = (name) => Math.max(0, (figures[name] ?? 0) - (before.figures[name] ?? 0)) / seconds;
    for (const card of cards) {
      const point = card.of(rate, now);
      card.points.push(point);
      if (card.points.length > POINTS) card.points.shift();
      card.value.textContent = Number.isFinite(point) ? card.as(point) : '–';
      draw(card);
    }
  }
  if (before === null || time > before.time) before = { time, figures };
  byId('figures').replaceChildren(...Object.keys(figures).sort().map((name) => {
    const row = document.createElement('tr');
    const [called, value] = ['td', 'td'].map((kind) => document.createElement(kind));
    called.textContent = name;
    value.textContent = (figures[name] ?? NaN).toLocaleString('en', { maximumFractionDigits: 6 });
    value.className = 'number';
    row.append(called, value);
    return row;
  }));
}

function layOut() {
  const SVG = 'http://www.w3.org/2000/svg';
  for (const card of cards) {
    const box = document.createElement('div');
    box.className = 'card';
    card.value = document.createElement('b');
    card.value.textContent = '–';
    const picture = document.createElementNS(SVG, 'svg');
    picture.setAttribute('viewBox', '0 0 100 32');
    picture.setAttribute('preserveAspectRatio', 'none');
    picture.setAttribute('aria-hidden', 'true');
    card.path = document.createElementNS(SVG, 'path');
    card.points = [];
    picture.append(card.path);
    box.append(card.name, card.value, picture);
    byId('cards').append(box);
  }
}

layOut();
byId('form').addEventListener('submit', (event) => {
  event.preventDefault();
  guarded(async () => {
    begin();
    await pairs();
  });
});
byId('after').addEventListener('click', () => guarded(async () => {
  if (view.last !== null) view.pages.push(view.last);
  await pairs();
}));
byId('before').addEventListener('click', () => guarded(async () => {
  view.pages.pop();
  await pairs();
}));

async function poll() {
  try {
    await figures();
  } catch (error) {
    byId('of').textContent = '(' + error.message + ')';
  }
  setTimeout(poll, POLL_MS);
}

guarded(keyspaces_and_pairs).then(poll);
