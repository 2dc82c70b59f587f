'use strict';

// What the package adds to abstract-level, whose own suite is in suite.js: options, errors, durability, read-only
// databases, the bounds of pages, the order of closing.

const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { ForrestLevel } = require('..');
const { Writes } = require('../writes');
const { place } = require('./common');

const code = (expected) => (error) => {
  const found = error.code === 'LEVEL_DATABASE_NOT_OPEN' && error.cause ? error.cause.code : error.code;
  assert.equal(found, expected, error.stack);
  return true;
};

test('a store lasts over closing, with its values of all encodings', async (t) => {
  const location = place(t, 'a/b/store');
  const db = new ForrestLevel(location);
  await db.put('tree', 'Bäume 🌲');
  await db.put(Buffer.from([0, 255]), new Uint8Array([1, 0, 2]), { keyEncoding: 'buffer', valueEncoding: 'view' });
  await db.put('', '');
  await db.put('json', { a: [1] }, { valueEncoding: 'json' });
  await db.close();
  await db.open();
  assert.equal(db.getSync('tree'), 'Bäume 🌲');
  assert.equal(await db.get('tree'), 'Bäume 🌲');
  const bytes = await db.get(Buffer.from([0, 255]), { keyEncoding: 'buffer', valueEncoding: 'buffer' });
  assert.deepEqual(bytes, Buffer.from([1, 0, 2]));
  assert.deepEqual(await db.get('json', { valueEncoding: 'json' }), { a: [1] });
  assert.deepEqual(await db.keys({ keyEncoding: 'buffer' }).all(), ['', [0, 255], 'json', 'tree'].map((key) => Buffer.from(key)));
  assert.deepEqual(await db.getMany(['json', 'none', '', 'tree']), ['{"a":[1]}', undefined, '', 'Bäume 🌲']);
  assert.deepEqual(await db.hasMany(['json', 'none', '']), [true, false, true]);
  await db.close();
});

test('a store is opened once, and its lock is free when close() resolves', async (t) => {
  const location = place(t);
  const first = new ForrestLevel(location);
  await first.put('a', '1');
  await assert.rejects(new ForrestLevel(location).open(), code('LEVEL_LOCKED'));
  for (let round = 0; round < 20; round++) {
    // Works that are on their way delay it.
    const writes = Array.from({ length: 50 }, (_, i) => first.put(`key ${i}`, String(round)));
    const reads = [first.get('a'), first.iterator().all(), first.keys().next()];
    const closed = first.close();
    await Promise.all(writes);
    await Promise.allSettled(reads);
    await closed;
    const second = new ForrestLevel(location);
    await second.open();
    assert.equal(second.getSync('key 49'), String(round));
    await second.close();
    await first.open();
  }
  await first.close();
});

test('closing ends iterators, snapshots and batches that are open', async (t) => {
  const db = new ForrestLevel(place(t));
  await db.batch(Array.from({ length: 5000 }, (_, i) => ({ type: 'put', key: String(i), value: 'v'.repeat(100) })));
  const open = [db.iterator(), db.keys(), db.values(), db.snapshot(), db.batch().put('x', 'y')];
  await open[0].next();
  const busy = open[1].nextv(1000);
  await db.close();
  assert.ok((await busy).length > 0);
  await assert.rejects(open[0].next(), code('LEVEL_ITERATOR_NOT_OPEN'));
  assert.throws(() => open[3].ref(), code('LEVEL_SNAPSHOT_NOT_OPEN'));
  await assert.rejects(open[4].write(), code('LEVEL_BATCH_NOT_OPEN'));
  await assert.rejects(db.get('1'), code('LEVEL_DATABASE_NOT_OPEN'));
  assert.throws(() => db.getSync('1'), code('LEVEL_DATABASE_NOT_OPEN'));
  await db.close();
});

test('a database that is collected, not closed, releases its store', async (t) => {
  assert.equal(typeof global.gc, 'function', 'the tests run with --expose-gc');
  const location = place(t);
  await (async () => {
    const db = new ForrestLevel(location);
    await db.put('a', '1');
    await db.iterator().next();
    void db.snapshot();
  })();
  const db = new ForrestLevel(location);
  for (let tries = 0; db.status !== 'open'; tries++) {
    assert.ok(tries < 200, 'the lock is still held');
    global.gc();
    await new Promise((resolve) => setImmediate(resolve));
    await db.open().catch(code('LEVEL_LOCKED'));
  }
  assert.equal(db.getSync('a'), '1');
  await db.close();
});

test('options and arguments of the wrong kind are refused', async (t) => {
  const location = place(t);
  for (const wrong of [undefined, null, '', 1, {}, Buffer.from('x')]) {
    assert.throws(() => new ForrestLevel(wrong), TypeError);
  }
  for (const wrong of [
    { durability: 'always' }, { durability: 'toString' }, { memoryBytes: 0 }, { memoryBytes: -1 },
    { memoryBytes: 1.5 }, { memoryBytes: '1' }, { memoryBytes: 1n }, { workers: NaN }, { compression: 'zstd' }, { compression: 7 }
  ]) {
    const opened = new ForrestLevel(location, wrong).open();
    await assert.rejects(opened, (error) => error.cause instanceof TypeError, JSON.stringify(wrong, String));
  }
  // Below the limits of the store.
  await assert.rejects(new ForrestLevel(location, { memoryBytes: 1 }).open(), code('LEVEL_INVALID_ARGUMENT'));
  const db = new ForrestLevel(location);
  await db.open();
  await assert.rejects(db.put('a', 'b', { durability: 'never' }), TypeError);
  assert.throws(() => db.iterator({ highWaterMarkBytes: -1 }), TypeError);
  assert.throws(() => db.iterator({ highWaterMarkBytes: 'x' }), TypeError);
  await assert.rejects(db.checkpoint(7), TypeError);
  await assert.rejects(db.approximateSize('a'), code('LEVEL_INVALID_KEY'));
  await assert.rejects(db.put('k'.repeat(65536), ''), code('LEVEL_LIMIT_EXCEEDED'));
  await assert.rejects(db.batch([{ type: 'put', key: 'k'.repeat(70000), value: '' }]), code('LEVEL_LIMIT_EXCEEDED'));
  await assert.rejects(db.get('k'.repeat(65536)), code('LEVEL_LIMIT_EXCEEDED'));
  // A snapshot of another database, and what is none.
  const other = new ForrestLevel('memory:');
  await other.open();
  const foreign = other.snapshot();
  await assert.rejects(db.get('a', { snapshot: foreign }), TypeError);
  const fake = { ref() {}, unref() {} };
  await assert.rejects(db.get('a', { snapshot: fake }), TypeError);
  assert.throws(() => db.iterator({ snapshot: fake }), TypeError);
  await db.put('still', 'there');
  assert.equal(db.getSync('still'), 'there');
  await other.close();
  await db.close();
});

test('the native functions refuse what is not theirs', () => {
  const binding = require('../binding');
  const values = [undefined, null, 0, 1, -1, NaN, Infinity, 1n, '', 'x', Symbol('s'), {}, [], () => {}, Buffer.alloc(3),
    new DataView(new ArrayBuffer(4)), new Proxy({}, {}), Object.create(null), new Date()];
  let calls = 0;
  for (const [name, call] of Object.entries(binding)) {
    if (name === 'version' || name === 'open') continue;
    for (const first of values) {
      for (const second of values) {
        assert.throws(() => call(first, second, first, second, first, second, first), (error) => error instanceof TypeError, name);
        calls++;
      }
    }
  }
  assert.ok(calls > 5000);
  const { ForrestLevel: Level } = require('..');
  const memory = new Level('memory:');
  return memory.open().then(async () => {
    const snapshot = binding.snapshot;
    // Handles of another kind.
    const store = await binding.open('memory:', 1, 0, 0, 0, undefined);
    const state = snapshot(store);
    assert.throws(() => binding.snapshot(state), TypeError);
    assert.throws(() => binding.closeSnapshot(store), TypeError);
    assert.throws(() => binding.next(store, 1, 1), TypeError);
    // Handles that were copied or wrapped are none.
    assert.throws(() => binding.snapshot(Object.create(store)), TypeError);
    assert.throws(() => binding.snapshot(new Proxy(store, {})), TypeError);
    assert.throws(() => binding.snapshot({ ...store }), TypeError);
    // Bytes of batches that claim more than there is.
    for (const bytes of [[1], [1, 0, 0, 0, 0, 0, 0, 0], [1, 255, 255, 255, 255, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0, 0],
      [0, 0, 0, 0, 0, 1, 0, 0, 0]]) {
      await assert.rejects(binding.write(store, Buffer.from(bytes), 0), TypeError);
    }
    for (const bytes of [[1], [255, 255, 255, 255], [2, 0, 0, 0, 1]]) {
      await assert.rejects(binding.getMany(store, undefined, Buffer.from(bytes)), TypeError);
    }
    binding.closeSnapshot(state);
    binding.closeSnapshot(state);
    await binding.close(store);
    assert.throws(() => binding.close(store), code('LEVEL_DATABASE_NOT_OPEN'));
    assert.throws(() => binding.write(store, Buffer.alloc(0), 0), code('LEVEL_DATABASE_NOT_OPEN'));
    await memory.close();
  });
});

test('what is missing, exists or is damaged is reported with its code', async (t) => {
  const location = place(t);
  await assert.rejects(new ForrestLevel(location, { createIfMissing: false }).open(), code('LEVEL_IO_ERROR'));
  await assert.rejects(new ForrestLevel(location, { readOnly: true }).open(), code('LEVEL_IO_ERROR'));
  assert.ok(!fs.existsSync(location), 'nothing was created');
  const db = new ForrestLevel(location, { errorIfExists: true });
  await db.put('a', 'b');
  await db.close();
  await assert.rejects(new ForrestLevel(location, { errorIfExists: true }).open(), code('LEVEL_EXISTS'));
  await new ForrestLevel(location, { createIfMissing: false }).open().then(() => {}, assert.fail);
  const file = path.join(path.dirname(location), 'file');
  fs.writeFileSync(file, 'no directory');
  await assert.rejects(new ForrestLevel(file).open(), (error) => /^LEVEL_/.test(error.cause.code));
});

test('what is cached is read while all other threads are busy', async (t) => {
  const db = new ForrestLevel(place(t));
  await db.put('oak', 'Quercus');
  let busy = 8;
  const works = Array.from({ length: busy }, () => new Promise((resolve) => {
    crypto.pbkdf2('', '', 200_000, 64, 'sha512', () => resolve(busy--));
  }));
  for (let i = 0; i < 100; i++) {
    assert.equal(await db.get('oak'), 'Quercus');
    assert.equal(await db.get('elm'), undefined);
    assert.equal(await db.has('oak'), true);
    assert.equal(await db.has('elm'), false);
  }
  assert.equal(busy, 8);
  await Promise.all(works);
  await db.close();
});

test('damage is reported and never returned as data', async (t) => {
  for (const isInTables of [false, true]) {
    const location = place(t);
    // What a log has that was not synced may be torn by a power loss, and is not taken for damage.
    const db = new ForrestLevel(location, { durability: 'sync' });
    for (let i = 0; i < 50; i++) await db.put(`k${i}`, 'v'.repeat(1000));
    if (isInTables) await db.compactRange('', '\uffff');
    await db.close();
    const files = fs.readdirSync(location).map((name) => path.join(location, name));
    const [largest] = files.sort((a, b) => fs.statSync(b).size - fs.statSync(a).size);
    const bytes = fs.readFileSync(largest);
    for (let at = 300; at < 900; at++) bytes[at] ^= 0xFF;
    fs.writeFileSync(largest, bytes);
    const again = new ForrestLevel(location);
    const reads = async () => {
      await again.open();
      await again.values().all();
    };
    await assert.rejects(reads(), code('LEVEL_CORRUPTION'), largest);
    if (isInTables) await assert.rejects(again.verify(), code('LEVEL_CORRUPTION'));
    await again.close();
  }
});

test('a read-only database refuses changes and sees those of the writer after refresh()', async (t) => {
  const location = place(t);
  const writer = new ForrestLevel(location);
  await writer.put('a', '1');
  const reader = new ForrestLevel(location, { readOnly: true });
  await reader.open();
  assert.equal(reader.getSync('a'), '1');
  await writer.put('a', '2');
  assert.equal(reader.getSync('a'), '1');
  await reader.refresh();
  assert.equal(reader.getSync('a'), '2');
  for (const change of [
    () => reader.put('b', '1'), () => reader.del('a'), () => reader.clear(), () => reader.clear({ limit: 1 }),
    () => reader.batch([{ type: 'del', key: 'a' }]), () => reader.batch().del('a').write()
  ]) {
    await assert.rejects(change(), code('LEVEL_READONLY'));
  }
  // The store that the reader sees stays while the writer replaces it.
  await writer.clear();
  await writer.compactRange('', '\uffff');
  assert.deepEqual(await reader.iterator().all(), [['a', '2']]);
  await reader.refresh();
  assert.deepEqual(await reader.iterator().all(), []);
  await reader.close();
  await writer.close();
});

test('durabilities are accepted by every change', async (t) => {
  for (const location of [place(t), 'memory:']) {
    const db = new ForrestLevel(location, { durability: 'memory' });
    for (const options of [{ sync: true }, { durability: 'sync' }, { durability: 'buffered' }, { durability: 'memory' }, {}]) {
      await db.put('a', '1', options);
      await db.batch([{ type: 'put', key: 'b', value: '2' }], options);
      await db.batch().put('c', '3').write(options);
      await db.clear({ gte: 'a', lt: 'b', ...options });
      await db.del('b', options);
      assert.deepEqual(await db.keys().all(), ['c']);
    }
    if (location !== 'memory:') await db.sync();
    await db.close();
  }
});

test('a page ends with the pair that reaches its bytes', async (t) => {
  const db = new ForrestLevel(place(t));
  await db.batch(Array.from({ length: 3000 }, (_, i) => ({ type: 'put', key: String(i).padStart(6, '0'), value: 'v'.repeat(94) })));
  for (const [options, expected] of [[{}, 164], [{ highWaterMarkBytes: 1000 }, 10], [{ highWaterMarkBytes: 1 }, 1], [{ highWaterMarkBytes: 0 }, 1]]) {
    const iterator = db.iterator(options);
    assert.equal((await iterator.nextv(3000)).length, expected);
    let count = expected;
    for (let items; (items = await iterator.nextv(3000)).length > 0;) count += items.length;
    assert.equal(count, 3000);
    await iterator.close();
  }
  // One pair that is larger than a page comes alone.
  await db.put('a', 'x'.repeat(1 << 20));
  const iterator = db.values({ gte: 'a' });
  assert.equal((await iterator.next()).length, 1 << 20);
  await iterator.close();
  assert.equal((await db.iterator({ limit: 2500 }).all()).length, 2500);
  assert.equal((await db.keys({ reverse: true, limit: 7 }).all()).at(0), 'a');
  await db.close();
});

test('a buffer that is kept keeps at most its page, and none changes another', async (t) => {
  const db = new ForrestLevel(place(t), { keyEncoding: 'buffer', valueEncoding: 'buffer' });
  await db.batch(Array.from({ length: 2000 }, (_, i) => ({ type: 'put', key: Buffer.from([i >> 8, i & 255]), value: Buffer.alloc(200, i) })));
  const entries = await db.iterator().all();
  const many = await db.getMany(entries.map(([key]) => key));
  for (const value of [...entries.map(([, value]) => value), ...many]) assert.ok(value.buffer.byteLength <= 128 * 1024);
  entries[0][1].fill(7);
  many[0].fill(7);
  assert.deepEqual(entries[1][1], Buffer.alloc(200, 1));
  assert.deepEqual(await db.get(Buffer.from([0, 0])), Buffer.alloc(200, 0));
  await db.close();
});

test('changes of one moment are written together', async () => {
  const written = [];
  const writes = new Writes(async (bytes, durability) => written.push([bytes.length, durability]));
  const sets = (count, durability) => Array.from({ length: count }, () => writes.put('key', 'value', durability));
  const large = () => writes.put('key', 'v'.repeat(20_000), 3);
  await Promise.all([...sets(3, 0), writes.del('key', 0), ...sets(1, 3), large(), ...sets(2, 3)]);
  // Each has 9 bytes before its key.
  assert.deepEqual(written.splice(0), [[3 * 17 + 12, 0], [17, 3], [20_012, 3], [2 * 17, 3]]);
  await Promise.all(sets(2500, 0));
  assert.deepEqual(written.splice(0).map(([bytes]) => bytes / 17), [1000, 1000, 500]);
  for (const change of sets(2, 0)) await change;
  assert.deepEqual(written.splice(0), [[2 * 17, 0]]);
});

test('a write begins when the one before has ended', async () => {
  const begun = [];
  const writes = new Writes((bytes) => new Promise((resolve, reject) => {
    begun.push({ bytes: bytes.length, resolve, reject });
  }));
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const all = [
    writes.put('k', '1', 0),
    writes.put('k', 'x'.repeat(20_000), 0),
    writes.batch(Buffer.alloc(5), 0),
    writes.put('k', '', 0)
  ];
  await turn();
  // What comes while others run joins the group that waits.
  all.push(writes.del('k', 0));
  let isSettled = false;
  const settled = writes.settled().then(() => { isSettled = true; });
  all.push(writes.put('k', '123', 0));
  for (const expected of [11, 20_010, 5, 20]) {
    assert.deepEqual(begun.map(({ bytes }) => bytes), [expected]);
    assert.equal(isSettled, false);
    const { resolve, reject } = begun.pop();
    // One that fails does not end those after it.
    if (expected === 5) reject(new Error('refused'));
    else resolve();
    await turn();
  }
  await settled;
  assert.deepEqual(begun.map(({ bytes }) => bytes), [13]);
  begun.pop().resolve();
  const states = (await Promise.allSettled(all)).map(({ status }) => status);
  assert.deepEqual(states, ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled']);
});

test('changes of several writes keep their order, and sync() comes after them', async (t) => {
  const db = new ForrestLevel(place(t));
  await db.open();
  for (let round = 0; round < 50; round++) {
    const changes = [db.put('k', 'first'), db.put('k', 'x'.repeat(20_000))];
    for (let i = 0; i < 1500; i++) changes.push(db.put(`other ${i}`, ''));
    changes.push(db.batch([{ type: 'put', key: 'k', value: 'batch' }]), db.clear(), db.put('k', String(round)));
    await db.sync();
    assert.deepEqual(await db.iterator().all(), [['k', String(round)]]);
    await Promise.all(changes);
  }
  await db.close();
});

test('changes that are not awaited keep their order', async (t) => {
  const db = new ForrestLevel(place(t));
  await db.open();
  const changes = [];
  for (let i = 0; i < 200; i++) changes.push(db.put(`key ${i}`, 'first'), db.put(`key ${i}`, String(i)));
  changes.push(db.del('key 7'));
  await Promise.all(changes);
  assert.equal(await db.get('key 7'), undefined);
  for (let i = 0; i < 200; i++) if (i !== 7) assert.equal(await db.get(`key ${i}`), String(i));
  // close() waits for them.
  const last = db.put('last', '1');
  await db.close();
  await last;
  await db.open();
  assert.equal(await db.get('last'), '1');
  await db.close();
});

test('a change that is refused fails alone', async (t) => {
  const db = new ForrestLevel(place(t));
  await db.open();
  const large = 'x'.repeat(70_000);
  const results = await Promise.allSettled([db.put('a', '1'), db.put(large, ''), db.put('b', '2'), db.del(large), db.put('c', 'y'.repeat(5000))]);
  assert.deepEqual(results.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled']);
  assert.deepEqual(await db.getMany(['a', 'b']), ['1', '2']);
  assert.equal((await db.get('c')).length, 5000);
  // Each of a group fails when the store cannot write it.
  const closed = db.close();
  const late = await Promise.allSettled([db.put('d', '1'), db.put('e', '2')]);
  assert.deepEqual(late.map(({ status }) => status), ['rejected', 'rejected']);
  await closed;
});

test('a change takes its bytes when it is called', async (t) => {
  const db = new ForrestLevel(place(t), { keyEncoding: 'buffer', valueEncoding: 'buffer' });
  const value = Buffer.alloc(100, 1);
  const key = Buffer.from('key');
  await db.open();
  const put = db.put(key, value);
  key.fill(0);
  value.fill(2);
  await put;
  assert.deepEqual(await db.get(Buffer.from('key')), Buffer.alloc(100, 1));
  await db.close();
});

test('work leaves the event loop free', async (t) => {
  const db = new ForrestLevel(place(t));
  const value = 'x'.repeat(1000);
  for (let round = 0; round < 20; round++) {
    await db.batch(Array.from({ length: 1000 }, (_, i) => ({ type: 'put', key: `${round} ${i}`, value: value + i })));
  }
  for (const work of [() => db.compactRange('', '\uffff'), () => db.verify(), () => db.sync(), () => db.clear()]) {
    const call = process.hrtime.bigint();
    const promise = work();
    const blocked = Number(process.hrtime.bigint() - call) / 1e6;
    let turns = 0;
    let isDone = false;
    promise.finally(() => { isDone = true; });
    while (!isDone) {
      turns++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await promise;
    assert.ok(turns > 0 && blocked < 50, `${blocked} ms`);
  }
  assert.deepEqual(await db.keys().all(), []);
  await db.close();
});

test('additional methods', async (t) => {
  const location = place(t);
  const db = new ForrestLevel(location);
  assert.equal(db.location, location);
  // Deferred until the database is open.
  assert.equal(await db.approximateSize('a', 'z'), 0);
  await db.batch(Array.from({ length: 1000 }, (_, i) => ({ type: 'put', key: `k${i}`, value: 'v'.repeat(100) })));
  const size = await db.approximateSize('k', 'l');
  assert.ok(size > 50_000 && size < 200_000, String(size));
  await db.compactRange('a', 'z');
  const copy = `${location}-copy`;
  await db.checkpoint(copy);
  await assert.rejects(db.checkpoint(copy), code('LEVEL_INVALID_ARGUMENT'));
  const second = new ForrestLevel(copy, { readOnly: true });
  assert.equal((await second.keys().all()).length, 1000);
  await second.close();
  await db.close();
  await assert.rejects(db.compactRange('a', 'z'), code('LEVEL_DATABASE_NOT_OPEN'));
});

test('clear() of a snapshot removes what it has', async (t) => {
  const db = new ForrestLevel(place(t));
  await db.batch(['a', 'b', 'c'].map((key) => ({ type: 'put', key, value: '1' })));
  const snapshot = db.snapshot();
  await db.put('d', '1');
  await db.put('b', '2');
  await db.clear({ snapshot, gt: 'a' });
  assert.deepEqual(await db.keys().all(), ['a', 'd']);
  assert.deepEqual(await db.keys({ snapshot }).all(), ['a', 'b', 'c']);
  // More keys than a batch of it.
  await db.batch(Array.from({ length: 2500 }, (_, i) => ({ type: 'put', key: `e${String(i).padStart(4, '0')}`, value: '' })));
  await db.clear({ gte: 'e', reverse: true, limit: 2400 });
  assert.deepEqual(await db.keys({ gte: 'e', reverse: true, limit: 1 }).all(), ['e0099']);
  await snapshot.close();
  await db.close();
});

test('memory: is there again after close() and open() of the same database', async () => {
  const db = new ForrestLevel('memory:');
  await db.put('a', '1');
  await db.close();
  await db.open();
  assert.equal(db.getSync('a'), '1');
  assert.equal(db.supports.permanence, false);
  await assert.rejects(db.compactRange('a', 'b'), code('LEVEL_NOT_SUPPORTED'));
  await assert.rejects(new ForrestLevel('memory:', { readOnly: true }).open(), code('LEVEL_NOT_SUPPORTED'));
  await db.close();
});
