'use strict';

// The whole test suite of abstract-level, which every implementation passes, on disk and in memory.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('tape');
const suite = require('abstract-level/test');
const { ForrestLevel } = require('..');

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'forrest-level-suite-'));
let number = 0;

if (process.argv[2] === 'memory') {
  suite({ test, factory: (options) => new ForrestLevel('memory:', options) });
} else {
  suite({ test, factory: (options) => new ForrestLevel(path.join(home, `store-${++number}`), options) });
}

test.onFinish(() => fs.rmSync(home, { recursive: true, force: true }));
