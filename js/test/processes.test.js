'use strict';

// Other processes and threads: readers beside a writer, a writer that is killed, processes that end with open stores.

const assert = require('node:assert/strict');
const path = require('node:path');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { ForrestLevel } = require('..');
const { place, program } = require('./common');

test('another process is locked out', async (t) => {
  const location = place(t);
  const db = new ForrestLevel(location);
  await db.put('a', '1');
  const other = program(t, `
    const db = new ForrestLevel(process.argv[1]);
    await db.open().catch((error) => console.log(error.code, error.cause.code));`, location);
  await other.line('LEVEL_DATABASE_NOT_OPEN LEVEL_LOCKED');
  await db.close();
});

test('several processes read what one writes, each a state of it', async (t) => {
  const location = place(t);
  const db = new ForrestLevel(location);
  await db.put('round', '0');
  const readers = Array.from({ length: 3 }, () => program(t, `
    const db = new ForrestLevel(process.argv[1], { readOnly: true });
    await db.open();
    console.log('open');
    for (let last = 0; last < 40;) {
      await db.refresh();
      // A batch is whole: all of its keys have its number.
      const values = await db.values().all();
      const numbers = new Set(values.map(Number));
      if (numbers.size !== 1) throw new Error('parts of batches: ' + [...numbers]);
      const [number] = numbers;
      if (number < last) throw new Error(number + ' after ' + last);
      last = number;
    }
    await db.close();
    console.log('done');`, location));
  await Promise.all(readers.map((reader) => reader.line('open')));
  for (let round = 1; round <= 40; round++) {
    const keys = ['round', ...Array.from({ length: 200 }, (_, i) => `key ${i}`)];
    await db.batch(keys.map((key) => ({ type: 'put', key, value: String(round) })));
    if (round % 10 === 0) await db.compactRange('', '\uffff');
  }
  for (const reader of readers) {
    await reader.line('done');
    assert.deepEqual(await reader.end, { code: 0, signal: null });
  }
  await db.close();
});

test('a writer that is killed loses nothing that it was promised', async (t) => {
  const location = place(t);
  for (let round = 0; round < 4; round++) {
    const writer = program(t, `
      const db = new ForrestLevel(process.argv[1]);
      for (let number = 0; ; number++) {
        await db.batch([{ type: 'put', key: 'a' + number, value: process.argv[2] },
          { type: 'put', key: 'b' + number, value: process.argv[2] }]);
        require('node:fs').writeSync(1, number + '\\n');
      }`, location, String(round));
    await writer.line((line) => Number(line) >= 200);
    writer.child.kill('SIGKILL');
    assert.equal((await writer.end).signal, 'SIGKILL');
    const promised = Math.max(...writer.lines.map(Number));
    const db = new ForrestLevel(location);
    for (let number = 0; number <= promised; number++) {
      assert.equal(await db.get(`a${number}`), String(round));
      assert.equal(await db.get(`b${number}`), String(round));
    }
    // A batch is whole, also the last one.
    assert.equal(await db.get(`a${promised + 1}`) === String(round), await db.get(`b${promised + 1}`) === String(round));
    await db.verify();
    await db.close();
  }
});

const ENDS = {
  'process.exit()': 'process.exit(0);',
  'the end of the program': '',
  'an exception': "process.on('uncaughtException', () => process.exit(0)); setImmediate(() => { throw new Error('x'); });",
  'process.exit() with works on their way':
    "for (let i = 0; i < 100; i++) { db.put('later ' + i, 'x'); db.get('k1'); db.iterator().all(); } process.exit(0);"
};

for (const [name, end] of Object.entries(ENDS)) {
  test(`${name} loses no change, of any durability`, async (t) => {
    for (const durability of ['memory', 'buffered', 'sync']) {
      const location = place(t);
      const writer = program(t, `
        const db = new ForrestLevel(process.argv[1], { durability: process.argv[2] });
        const iterator = db.iterator();
        for (let i = 0; i < 100; i++) await db.put('k' + i, 'v');
        await iterator.next();
        ${end}`, location, durability);
      assert.deepEqual(await writer.end, { code: 0, signal: null });
      const db = new ForrestLevel(location);
      assert.equal((await db.keys({ gte: 'k', lt: 'l' }).all()).length, 100, durability);
      await db.close();
    }
  });
}

test('process.exit() while a store is being closed loses no change', async (t) => {
  // The closing waits for works whose completion this thread does not see any more.
  for (let round = 0; round < 20; round++) {
    const location = place(t);
    const writer = program(t, `
      const db = new ForrestLevel(process.argv[1]);
      await db.put('k', 'v', { durability: 'memory' });
      for (let i = 0; i < 4; i++) db.getMany(['k']);
      db.close();
      setImmediate(() => process.exit(0));`, location);
    assert.deepEqual(await writer.end, { code: 0, signal: null });
    const db = new ForrestLevel(location);
    assert.equal(await db.get('k'), 'v', `round ${round}`);
    await db.close();
  }
});

const WORKER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { ForrestLevel } = require(workerData.package);
  (async () => {
    const db = new ForrestLevel(workerData.location, workerData.options);
    for (let i = 0; i < 300; i++) await db.put('k' + i, String(i));
    db.iterator();
    parentPort.postMessage(await db.get('k299'));
    if (workerData.closes) await db.close();
    else if (workerData.exits) process.exit(0);
    else for (;;) await db.put('more', 'x');
  })();`;

function worker(data) {
  const made = new Worker(WORKER, { eval: true, workerData: { package: path.join(__dirname, '..'), ...data } });
  const ended = new Promise((resolve) => made.on('exit', resolve));
  const message = new Promise((resolve, reject) => {
    made.on('message', resolve);
    made.on('error', reject);
  });
  return { made, message, ended };
}

test('workers have stores of their own, and leave them when they end', async (t) => {
  const data = [{ closes: true }, { exits: true }, { options: { durability: 'memory' } }, {}];
  const workers = data.map((one) => ({ location: place(t), ...one })).map((one) => ({ ...one, ...worker(one) }));
  for (const one of workers) {
    assert.equal(await one.message, '299');
    if (!one.closes && !one.exits) await one.made.terminate();
    await one.ended;
    const db = new ForrestLevel(one.location);
    assert.equal((await db.keys({ gte: 'k', lt: 'l' }).all()).length, 300);
    await db.close();
  }
});

test('two threads of a process cannot open one store', async (t) => {
  const location = place(t);
  const { made, message, ended } = worker({ location });
  await message;
  await assert.rejects(new ForrestLevel(location).open(), (error) => error.cause.code === 'LEVEL_LOCKED');
  const reader = new ForrestLevel(location, { readOnly: true });
  assert.equal(await reader.get('k7'), '7');
  await reader.close();
  await made.terminate();
  await ended;
});
