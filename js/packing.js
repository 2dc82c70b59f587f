'use strict';

// The bytes in which many changes, keys and pairs cross to the native addon and back. crates/forrest-node describes
// them: changes.rs what goes there, pages.rs what comes back.

const ModuleError = require('module-error');

const HEAD = 9;
const LENGTH_MAX = 0xFFFFFFFF;
const ABSENT = 0xFFFFFFFF;
const ENDS = 1;
const ASCII = 2;
// Values in a page of more bytes are copied, so that one that is kept does not keep all of the page.
const SHARED_MAX = 64 * 1024;

/** Changes, or keys, one after the other in a buffer that grows. */
class Packer {
  #buffer;
  #length = 0;

  constructor(bytes = 256) {
    this.#buffer = Buffer.allocUnsafe(bytes);
  }

  get bytes() {
    return this.#buffer.subarray(0, this.#length);
  }

  set(key, value) {
    this.#change(1, key, value);
  }

  delete(key) {
    this.#change(0, key, '');
  }

  key(key) {
    this.#reserve(4 + bytesMax(key));
    const start = this.#length;
    this.#length += 4;
    this.#buffer.writeUInt32LE(this.#add(key), start);
  }

  #change(tag, key, value) {
    this.#reserve(HEAD + bytesMax(key) + bytesMax(value));
    const start = this.#length;
    this.#length += HEAD;
    this.#buffer[start] = tag;
    this.#buffer.writeUInt32LE(this.#add(key), start + 1);
    this.#buffer.writeUInt32LE(this.#add(value), start + 5);
  }

  /** Adds bytes for which there is room, and returns their number. */
  #add(data) {
    const start = this.#length;
    if (typeof data === 'string') {
      this.#length += this.#buffer.write(data, start, 'utf8');
    } else {
      this.#buffer.set(viewed(data), start);
      this.#length += data.byteLength;
    }
    return this.#length - start;
  }

  #reserve(bytes) {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

/** Most bytes that a key or value may take. */
function bytesMax(data) {
  if (typeof data === 'string') {
    // Three bytes for each code unit; counted for long strings, for which that would be much.
    return data.length < 1024 ? data.length * 3 : Buffer.byteLength(data);
  }
  if (!ArrayBuffer.isView(data)) {
    throw new TypeError('A key or value must be encoded as a string, Buffer or Uint8Array');
  }
  if (data.byteLength > LENGTH_MAX) {
    throw new ModuleError(`A key or value of ${data.byteLength} bytes; at most ${LENGTH_MAX} bytes are allowed`, {
      code: 'LEVEL_LIMIT_EXCEEDED'
    });
  }
  return data.byteLength;
}

function viewed(data) {
  return data instanceof Uint8Array ? data : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** The words at the beginning of a page. */
function wordsOf(page) {
  // They are aligned in an array of its own, which the addon makes.
  const aligned = page.byteOffset % 4 === 0 ? page : new Uint8Array(page);
  return new Uint32Array(aligned.buffer, aligned.byteOffset, page.length >>> 2);
}

/** How to take a part of a page as a string or a buffer. */
function taker(page, asText, whole) {
  if (asText && whole !== null) return (from, to) => whole.substring(from, to);
  if (asText) return (from, to) => page.toString('utf8', from, to);
  if (page.length <= SHARED_MAX) return (from, to) => page.subarray(from, to);
  return (from, to) => Buffer.from(page.subarray(from, to));
}

/**
 * The pairs of a page, and whether the range ends with it. `mode` is what is wanted of each: 'iterator' for an array of
 * key and value, 'keys' or 'values'.
 */
function unpackPairs(page, mode, options) {
  const words = wordsOf(page);
  const [count, flags] = words;
  const keyAsText = options.keyEncoding === 'utf8';
  const valueAsText = options.valueEncoding === 'utf8';
  const start = (2 + 2 * count) * 4;
  // One string of the whole page costs less than one for each item.
  const isText = (keyAsText || !options.keys) && (valueAsText || !options.values);
  const whole = isText && (flags & ASCII) !== 0 ? page.toString('latin1', start) : null;
  const key = taker(page, keyAsText, whole);
  const value = taker(page, valueAsText, whole);
  const items = new Array(count);
  let at = whole === null ? start : 0;
  for (let i = 0; i < count; i++) {
    const middle = at + words[2 + 2 * i];
    const end = middle + words[3 + 2 * i];
    if (mode === 'keys') items[i] = key(at, middle);
    else if (mode === 'values') items[i] = value(middle, end);
    else {
      items[i] = [
        options.keys ? key(at, middle) : undefined,
        options.values ? value(middle, end) : undefined
      ];
    }
    at = end;
  }
  return { items, isLast: (flags & ENDS) !== 0 };
}

/** The values of a page; undefined for those that are missing. */
function unpackValues(page, asText) {
  const words = wordsOf(page);
  const [count, flags] = words;
  const start = (2 + count) * 4;
  const whole = asText && (flags & ASCII) !== 0 && page.length <= SHARED_MAX ? page.toString('latin1', start) : null;
  const value = taker(page, asText, whole);
  const values = new Array(count);
  let at = whole === null ? start : 0;
  for (let i = 0; i < count; i++) {
    const length = words[2 + i];
    if (length === ABSENT) {
      values[i] = undefined;
    } else {
      values[i] = value(at, at + length);
      at += length;
    }
  }
  return values;
}

module.exports = { Packer, unpackPairs, unpackValues };
