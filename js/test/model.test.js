'use strict';

// Random changes and reads, compared with a sorted map. A failure prints the seed.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { ForrestLevel } = require('..');
const { place, random } = require('./common');

const STEPS = 1500;
const ENCODINGS = ['utf8', 'buffer', 'view'];

/** Keys with much in common, and characters of one to four bytes. */
function keyOf(below) {
  const letters = ['a', 'b', 'ä', '€', '🌲'];
  return Array.from({ length: below(5) }, () => letters[below(letters.length)]).join('');
}

const compare = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));

function rangeOf(below) {
  const range = {};
  if (below(3) === 0) range[below(2) ? 'gt' : 'gte'] = keyOf(below);
  if (below(3) === 0) range[below(2) ? 'lt' : 'lte'] = keyOf(below);
  if (below(2) === 0) range.reverse = true;
  if (below(3) === 0) range.limit = below(20);
  return range;
}

function expected(map, { gt, gte, lt, lte, reverse, limit }) {
  let entries = [...map].filter(([key]) =>
    (gt === undefined || compare(key, gt) > 0) && (gte === undefined || compare(key, gte) >= 0) &&
    (lt === undefined || compare(key, lt) < 0) && (lte === undefined || compare(key, lte) <= 0));
  entries.sort(([a], [b]) => (reverse ? compare(b, a) : compare(a, b)));
  if (limit !== undefined) entries = entries.slice(0, limit);
  return entries;
}

async function step(db, map, below) {
  const key = keyOf(below);
  const value = 'v'.repeat(below(40)) + below(1000);
  switch (below(9)) {
    case 0:
      await db.put(key, value);
      map.set(key, value);
      return;
    case 1:
      await db.del(key);
      map.delete(key);
      return;
    case 2: {
      const batch = Array.from({ length: below(20) }, (_, i) =>
        (below(3) ? { type: 'put', key: keyOf(below), value: `b${i}` } : { type: 'del', key: keyOf(below) }));
      if (below(2)) await db.batch(batch);
      else {
        const chained = db.batch();
        for (const op of batch) op.type === 'put' ? chained.put(op.key, op.value) : chained.del(op.key);
        await chained.write();
      }
      for (const op of batch) op.type === 'put' ? map.set(op.key, op.value) : map.delete(op.key);
      return;
    }
    case 3: {
      if (below(4) !== 0) return;
      const range = rangeOf(below);
      await db.clear(range);
      for (const [gone] of expected(map, range)) map.delete(gone);
      return;
    }
    case 4: {
      const keys = Array.from({ length: below(30) }, () => keyOf(below));
      assert.deepEqual(await db.getMany(keys), keys.map((one) => map.get(one)));
      assert.deepEqual(await db.hasMany(keys), keys.map((one) => map.has(one)));
      return;
    }
    case 5:
      assert.equal(await db.get(key), map.get(key));
      assert.equal(db.getSync(key), map.get(key));
      assert.equal(await db.has(key), map.has(key));
      return;
    case 6: {
      const iterator = db.iterator({ highWaterMarkBytes: below(200) });
      const target = keyOf(below);
      await iterator.next();
      iterator.seek(target);
      const found = [];
      for (let entry; (entry = await iterator.next()) !== undefined && found.length < 10;) found.push(entry);
      assert.deepEqual(found, expected(map, { gte: target, limit: 10 }));
      await iterator.close();
      return;
    }
    default: {
      const range = rangeOf(below);
      const wanted = expected(map, range);
      const options = { ...range, highWaterMarkBytes: below(100) };
      assert.deepEqual(await db.iterator(options).all(), wanted);
      assert.deepEqual(await db.keys(range).all(), wanted.map(([one]) => one));
      const values = [];
      for await (const one of db.values(options)) values.push(one);
      assert.deepEqual(values, wanted.map(([, one]) => one));
      const encoding = ENCODINGS[below(3)];
      const entries = await db.iterator({ ...range, valueEncoding: encoding }).all();
      assert.deepEqual(entries.map(([, one]) => Buffer.from(one).toString()), wanted.map(([, one]) => one));
    }
  }
}

for (const location of ['disk', 'memory:']) {
  test(`a database is a sorted map (${location})`, async (t) => {
    const seed = Number(process.env.FORREST_SEED ?? Date.now() % 1e9);
    const below = random(seed);
    const place1 = location === 'disk' ? place(t) : location;
    const db = new ForrestLevel(place1);
    const map = new Map();
    const states = [];
    try {
      await db.open();
      for (let number = 0; number < STEPS; number++) {
        await step(db, map, below);
        if (below(100) === 0) states.push([db.snapshot(), new Map(map)]);
        if (below(150) === 0 && states.length > 0) {
          const [snapshot, then] = states.shift();
          assert.deepEqual(await db.iterator({ snapshot }).all(), expected(then, {}));
          await snapshot.close();
        }
        if (below(300) === 0 && location === 'disk') {
          for (const [snapshot] of states.splice(0)) await snapshot.close();
          await db.close();
          await db.open();
        }
      }
      assert.deepEqual(await db.iterator().all(), expected(map, {}));
    } catch (error) {
      throw new Error(`FORREST_SEED=${seed}`, { cause: error });
    } finally {
      await db.close();
    }
  });
}
