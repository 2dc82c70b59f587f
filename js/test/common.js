'use strict';

// What the tests share: directories that go away, and programs that run beside a test.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

/** A path in a new directory, which is removed after the test. */
function place(t, name = 'store') {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'forrest-level-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return path.join(directory, name);
}

/**
 * Runs a program of a test in another process. `lines` are those that it has printed; `line(text)` resolves when it
 * prints one; `end` resolves with its code and signal.
 */
function program(t, source, ...args) {
  const preamble = `'use strict'; const { ForrestLevel } = require(${JSON.stringify(path.join(__dirname, '..'))});\n`;
  const body = `(async () => {${source}})().catch((error) => { console.error(error); process.exit(9); });`;
  const stdio = ['pipe', 'pipe', 'inherit'];
  // Under an emulator the path of the program is not that of Node.
  const [command, ...before] = (process.env.FORREST_NODE ?? process.execPath).split(' ');
  const child = spawn(command, [...before, '-e', preamble + body, ...args], { stdio });
  t.after(() => child.kill('SIGKILL'));
  const lines = [];
  const waiting = [];
  let rest = '';
  child.stdout.on('data', (data) => {
    const parts = (rest + data).split('\n');
    rest = parts.pop();
    lines.push(...parts);
    for (const wait of waiting.slice()) wait();
  });
  const end = new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })));
  const line = (test) => new Promise((resolve, reject) => {
    const look = () => {
      const found = lines.find((one) => (typeof test === 'string' ? one === test : test(one)));
      if (found !== undefined) resolve(found);
    };
    waiting.push(look);
    end.then(() => reject(new Error(`the program ended after ${JSON.stringify(lines.slice(-3))}`)));
    look();
  });
  return { child, lines, line, end, say: (text) => child.stdin.write(`${text}\n`) };
}

/** Random numbers from a seed: an xorshift. */
function random(seed) {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

module.exports = { place, program, random };
