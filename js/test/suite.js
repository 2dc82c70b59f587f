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

// The suite leaves some hundred databases open, and an emulator has few addresses.
class SmallLevel extends ForrestLevel {
  _open(options) {
    return super._open({ memoryBytes: 16 << 20, ...options });
  }
}

if (process.argv[2] === 'memory') {
  suite({ test, factory: (options) => new ForrestLevel('memory:', options) });
} else {
  const factory = (options) => {
    // A database that nobody can reach any more is closed when it is collected.
    if (++number % 50 === 0) globalThis.gc();
    return new SmallLevel(path.join(home, `store-${number}`), options);
  };
  suite({ test, factory });
}

test.onFinish(() => fs.rmSync(home, { recursive: true, force: true }));
