'use strict';

// Finds the native addon: one file for each platform that the package is built for.

const path = require('node:path');

const platform = `${process.platform}-${process.arch}`;
const file = path.join(__dirname, 'prebuilds', platform, 'forrest-level.node');

try {
  module.exports = require(file);
} catch (cause) {
  throw new Error(
    `forrest-level has no native addon that loads on ${platform} (${file}): ${cause.message}. ` +
    'There are addons for Linux with glibc on x64 and arm64. Elsewhere, build one in a checkout of Forrest: ' +
    '"cargo xtask node --here".',
    { cause }
  );
}
