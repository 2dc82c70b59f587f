'use strict';

// Iterators of pairs, keys and values. They read pages on another thread, each of a bounded number of bytes, and take
// items from the page that was read last.

const { AbstractIterator, AbstractKeyIterator, AbstractValueIterator } = require('abstract-level');
const ModuleError = require('module-error');
const binding = require('./binding');
const { unpackPairs } = require('./packing');

// Items of the first page after opening or seeking: many callers want only a few.
const FIRST_ITEMS = 16;
const PAGE_ITEMS = 1000;
// As LevelDB's users know it.
const HIGH_WATER_MARK_BYTES = 16 * 1024;
// Bytes of a page of all(), which keeps all items in memory anyway.
const ALL_BYTES = 64 * 1024;

/** As abstract-level's, which it does not export. */
class AbortError extends ModuleError {
  constructor() {
    super('Operation has been aborted', { code: 'LEVEL_ABORTED' });
  }

  get name() {
    return 'AbortError';
  }
}

/** The class of iterators over `mode`, derived from abstract-level's. */
function iterators(Base, mode) {
  return class extends Base {
    #iteration;
    #format;
    #bytesMax;
    #items = [];
    #at = 0;
    #isLast = false;
    #isFirst = true;
    #signal = null;
    #abort = null;

    /** `open` makes the native iteration: (keys, values) => handle. */
    constructor(db, options, open) {
      const keys = mode === 'keys' || (mode === 'iterator' && options.keys !== false);
      const values = mode === 'values' || (mode === 'iterator' && options.values !== false);
      const { keyEncoding, valueEncoding, signal } = options;
      const bytesMax = options.highWaterMarkBytes ?? HIGH_WATER_MARK_BYTES;
      if (!Number.isSafeInteger(bytesMax) || bytesMax < 0) {
        throw new TypeError("The option 'highWaterMarkBytes' must be a whole number of bytes");
      }
      // What may fail comes first: after this the database has the iterator, and closes it.
      const iteration = open(keys, values);
      super(db, options);
      this.#iteration = iteration;
      this.#format = { keys, values, keyEncoding, valueEncoding };
      this.#bytesMax = bytesMax;
      if (signal != null) {
        this.#signal = signal;
        this.#abort = () => binding.abort(iteration);
        signal.addEventListener('abort', this.#abort, { once: true });
      }
    }

    _seek(target) {
      binding.seek(this.#iteration, target);
      this.#items = [];
      this.#at = 0;
      this.#isLast = false;
      this.#isFirst = true;
    }

    // Not async: an item that is there needs no promise.
    _next() {
      if (this.#at < this.#items.length) return this.#items[this.#at++];
      if (this.#isLast) return undefined;
      const items = this.#isFirst ? FIRST_ITEMS : PAGE_ITEMS;
      return this.#next(Math.min(items, this.limit - this.count));
    }

    async #next(items) {
      this.#items = await this.#page(items, this.#bytesMax);
      this.#at = 0;
      return this.#items[this.#at++];
    }

    async _nextv(size) {
      const cached = this.#cached(size);
      if (cached.length > 0) return cached;
      return this.#page(size, this.#bytesMax);
    }

    async _all() {
      let all = this.#cached(Infinity);
      let left = this.limit - this.count - all.length;
      while (left > 0) {
        const items = await this.#page(Math.min(left, PAGE_ITEMS), Math.max(ALL_BYTES, this.#bytesMax));
        if (items.length === 0) break;
        if (all.length === 0) all = items;
        else for (const item of items) all.push(item);
        left -= items.length;
      }
      return all;
    }

    /** Takes up to `size` items of the page that was read. */
    #cached(size) {
      const items = this.#items.slice(this.#at, this.#at + size);
      this.#at += items.length;
      return items;
    }

    /** Reads a page; an empty one is the end. */
    async #page(size, bytes) {
      if (this.#isLast) return [];
      let page;
      try {
        page = await binding.next(this.#iteration, Math.min(size, Number.MAX_SAFE_INTEGER), bytes);
      } catch (error) {
        throw error.code === 'LEVEL_ABORTED' ? new AbortError() : error;
      }
      // The page was read before the signal came.
      if (this.#signal?.aborted) throw new AbortError();
      const { items, isLast } = unpackPairs(page, mode, this.#format);
      this.#isFirst = false;
      this.#isLast = isLast;
      return items;
    }

    async _close() {
      this.#items = [];
      this.#isLast = true;
      if (this.#signal !== null) this.#signal.removeEventListener('abort', this.#abort);
      this.#signal = null;
      binding.closeIteration(this.#iteration);
    }
  };
}

module.exports = {
  ForrestIterator: iterators(AbstractIterator, 'iterator'),
  ForrestKeyIterator: iterators(AbstractKeyIterator, 'keys'),
  ForrestValueIterator: iterators(AbstractValueIterator, 'values')
};
