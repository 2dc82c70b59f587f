'use strict';

// Compares forrest-level with classic-level: the same calls on both, in processes that take turns. Each turn begins
// with a new store. Prints the median of the turns, in operations per second, and the range.
//
//   node bench/compare.js [TURNS] [PAIRS]
//
// Both keep what they have in memory: 512 MiB each, and nothing is compressed. Writes are as both do them by default:
// passed to the system, not synced. Keys are 16 bytes, values 100; encodings are those of each line.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const STORES = {
  forrest: (location) => {
    const { ForrestLevel } = require('..');
    return new ForrestLevel(location, { memoryBytes: 512 << 20, compression: false });
  },
  classic: (location) => {
    const { ClassicLevel } = require('classic-level');
    return new ClassicLevel(location, { cacheSize: 448 << 20, writeBufferSize: 32 << 20, compression: false });
  }
};

// Made before the clock starts.
const keys = [];
const keyOf = (number) => keys[number];

function makeKeys(pairs) {
  for (let number = 0; number < pairs; number++) {
    keys.push((BigInt(number) * 0x9E3779B97F4A7C15n & 0xFFFFFFFFFFFFFFFFn).toString(16).padStart(16, '0'));
  }
}

/** What is measured: a name, and a function that returns the number of operations that it made. */
function* workloads(db, pairs) {
  const value = 'v'.repeat(100);
  const some = Math.min(pairs, 20_000);
  const buffers = { keyEncoding: 'buffer', valueEncoding: 'buffer' };
  yield ['batches of 1000', async () => {
    for (let i = 0; i < pairs; i += 1000) {
      await db.batch(Array.from({ length: 1000 }, (_, j) => ({ type: 'put', key: keyOf(i + j), value })));
    }
    return pairs;
  }];
  yield ['chained batches of 1000', async () => {
    for (let i = 0; i < pairs; i += 1000) {
      const batch = db.batch();
      for (let j = 0; j < 1000; j++) batch.put(keyOf(i + j), value);
      await batch.write();
    }
    return pairs;
  }];
  yield ['put, each awaited', async () => {
    for (let i = 0; i < some; i++) await db.put(keyOf(i), value);
    return some;
  }];
  yield ['put, 100 at a time', async () => {
    for (let i = 0; i < some; i += 100) await Promise.all(Array.from({ length: 100 }, (_, j) => db.put(keyOf(i + j), value)));
    return some;
  }];
  yield ['get, each awaited', async () => {
    for (let i = 0; i < some; i++) if (await db.get(keyOf(i * 7 % pairs)) === undefined) throw new Error('missing');
    return some;
  }];
  yield ['get, 100 at a time', async () => {
    for (let i = 0; i < some; i += 100) await Promise.all(Array.from({ length: 100 }, (_, j) => db.get(keyOf((i + j) * 7 % pairs))));
    return some;
  }];
  yield ['getSync', async () => {
    for (let i = 0; i < pairs; i++) if (db.getSync(keyOf(i)) === undefined) throw new Error('missing');
    return pairs;
  }];
  yield ['getMany of 100', async () => {
    for (let i = 0; i < pairs; i += 100) await db.getMany(Array.from({ length: 100 }, (_, j) => keyOf((i + j) * 7 % pairs)));
    return pairs;
  }];
  for (const [name, options] of [['strings', {}], ['buffers', buffers]]) {
    yield [`iterator, for await, ${name}`, async () => {
      let count = 0;
      for await (const [key] of db.iterator(options)) count += key.length === 16;
      return count;
    }];
    yield [`iterator().all(), ${name}`, async () => (await db.iterator(options).all()).length];
    yield [`keys, nextv(1000), ${name}`, async () => {
      const iterator = db.keys(options);
      let count = 0;
      for (let items; (items = await iterator.nextv(1000)).length > 0;) count += items.length;
      await iterator.close();
      return count;
    }];
  }
  yield ['ranges of 10 pairs', async () => {
    for (let i = 0; i < some; i += 10) await db.iterator({ gte: keyOf(i), limit: 10 }).all();
    return some / 10;
  }];
  yield ['clear of all pairs', async () => {
    await db.clear();
    return pairs;
  }];
}

async function turn(name, pairs) {
  makeKeys(pairs);
  const home = fs.mkdtempSync(path.join(process.env.BENCH_DIRECTORY ?? os.tmpdir(), 'level-bench-'));
  try {
    const db = STORES[name](path.join(home, 'store'));
    await db.open();
    for (const [what, run] of workloads(db, pairs)) {
      // What one leaves is not the next one's to collect.
      global.gc();
      const start = process.hrtime.bigint();
      const count = await run();
      const seconds = Number(process.hrtime.bigint() - start) / 1e9;
      console.log(JSON.stringify({ store: name, what, rate: Math.round(count / seconds) }));
    }
    await db.close();
  } finally {
    fs.rmSync(home, { recursive: true, force: true });
  }
}

function compare(turns, pairs) {
  const rates = new Map();
  for (let number = 0; number < turns; number++) {
    // Who begins takes turns too.
    const names = Object.keys(STORES);
    for (const name of number % 2 ? names.reverse() : names) {
      const child = spawnSync(process.execPath, ['--expose-gc', __filename, '--turn', name, pairs], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
      if (child.status !== 0) throw new Error(`${name}: ${child.status ?? child.signal}`);
      for (const line of child.stdout.trim().split('\n')) {
        const { what, store, rate } = JSON.parse(line);
        if (!rates.has(what)) rates.set(what, {});
        (rates.get(what)[store] ??= []).push(rate);
      }
    }
  }
  const thousands = (rate) => (rate / 1000).toFixed(rate < 10_000 ? 1 : 0);
  const shown = (list) => {
    const sorted = [...list].sort((a, b) => a - b);
    return { median: sorted[sorted.length >> 1], text: `${thousands(sorted[sorted.length >> 1])} (${thousands(sorted[0])} to ${thousands(sorted.at(-1))})` };
  };
  console.log(`node ${process.version}, ${turns} turns, ${pairs} pairs; thousands per second: median (least to most)\n`);
  console.log('| calls | forrest-level | classic-level | ratio |\n|---|---|---|---|');
  for (const [what, { forrest, classic }] of rates) {
    const [ours, theirs] = [shown(forrest), shown(classic)];
    console.log(`| ${what} | ${ours.text} | ${theirs.text} | ${(ours.median / theirs.median).toFixed(2)} |`);
  }
}

if (process.argv[2] === '--turn') turn(process.argv[3], Number(process.argv[4]));
else compare(Number(process.argv[2] ?? 5), process.argv[3] ?? '200000');
