'use strict';

// ForrestLevel: an abstract-level database on a Forrest store. The work is done by the native addon
// (crates/forrest-node), on libuv's threads; getSync and making snapshots are the exceptions.

const { AbstractLevel, AbstractSnapshot } = require('abstract-level');
const ModuleError = require('module-error');
const fs = require('node:fs/promises');
const path = require('node:path');
const binding = require('./binding');
const { ForrestChainedBatch } = require('./chained-batch');
const { ForrestIterator, ForrestKeyIterator, ForrestValueIterator } = require('./iterator');
const { Packer, unpackValues } = require('./packing');
const { Writes } = require('./writes');

// The numbers that the addon gives them.
const DURABILITIES = { memory: 1, buffered: 2, sync: 3 };
const OPEN_CREATE = 1;
const OPEN_NEW = 2;
const OPEN_READ_ONLY = 4;
const LOWER_EXCLUDED = 1;
const UPPER_EXCLUDED = 2;
const BACKWARD = 4;
const KEYS = 8;
const VALUES = 16;

const MEMORY = 'memory:';

class ForrestLevel extends AbstractLevel {
  #location;
  #isInMemory;
  #store = null;
  #isReadOnly = false;
  #writes = new Writes((bytes, durability) => binding.write(this.#store, bytes, durability));

  constructor(location, options) {
    if (typeof location !== 'string' || location === '') {
      throw new TypeError("The first argument 'location' must be a non-empty string");
    }
    const isInMemory = location === MEMORY;
    super({
      encodings: { buffer: true, utf8: true, view: true },
      has: true,
      createIfMissing: !isInMemory,
      errorIfExists: !isInMemory,
      explicitSnapshots: true,
      getSync: true,
      permanence: !isInMemory,
      additionalMethods: {
        approximateSize: true,
        compactRange: true,
        sync: true,
        refresh: true,
        verify: true,
        checkpoint: true
      },
      signals: { iterators: true }
    }, options);
    this.#location = location;
    this.#isInMemory = isInMemory;
  }

  get location() {
    return this.#location;
  }

  async _open(options) {
    const isReadOnly = Boolean(options.readOnly);
    const durability = durabilityOf(options) ?? 0;
    const memoryBytes = sizeOf(options, 'memoryBytes');
    const workers = sizeOf(options, 'workers');
    const compression = compressionOf(options);
    if (this.#isInMemory) {
      if (isReadOnly) throw new ModuleError('memory: cannot be opened to be read only', { code: 'LEVEL_NOT_SUPPORTED' });
      // The store lives as long as this object: it is still there after close() and open().
      this.#store ??= await binding.open(MEMORY, OPEN_CREATE, 0, 0, 0, undefined);
      return;
    }
    // A path that looks like a URL is still a path.
    const location = path.resolve(this.#location);
    let flags = 0;
    if (options.createIfMissing) flags |= OPEN_CREATE;
    if (options.errorIfExists) flags |= OPEN_NEW;
    if (isReadOnly) flags |= OPEN_READ_ONLY;
    if (options.createIfMissing && !isReadOnly) {
      await fs.mkdir(path.dirname(location), { recursive: true });
    } else if (!await exists(location)) {
      throw new ModuleError(`${location} does not exist, and createIfMissing is false or readOnly is true`, {
        code: 'LEVEL_IO_ERROR'
      });
    }
    this.#store = await binding.open(location, flags, durability, memoryBytes, workers, compression);
    this.#isReadOnly = isReadOnly;
    if (!isReadOnly) flushAtExit(this.#store);
  }

  async _close() {
    await this.#writes.settled();
    if (!this.#isInMemory) await binding.close(this.#store);
  }

  // What is cached is there at once, and not a promise.
  async _get(key, options) {
    return binding.get(this.#store, this.#state(options), key, Number(options.valueEncoding === 'utf8'));
  }

  _getSync(key, options) {
    return binding.getSync(this.#store, this.#state(options), key, Number(options.valueEncoding === 'utf8'));
  }

  async _getMany(keys, options) {
    const page = await binding.getMany(this.#store, this.#state(options), packed(keys));
    return unpackValues(page, options.valueEncoding === 'utf8');
  }

  async _has(key, options) {
    return binding.has(this.#store, this.#state(options), key);
  }

  async _hasMany(keys, options) {
    const found = await binding.hasMany(this.#store, this.#state(options), packed(keys));
    return Array.from(found, (byte) => byte === 1);
  }

  _put(key, value, options) {
    return this.#writes.put(key, value, this.#changing(options));
  }

  _del(key, options) {
    return this.#writes.del(key, this.#changing(options));
  }

  async _batch(operations, options) {
    const durability = this.#changing(options);
    const packer = new Packer(Math.min(operations.length * 64, 1 << 20));
    for (const { type, key, value } of operations) {
      if (type === 'put') packer.set(key, value);
      else packer.delete(key);
    }
    await this.#writes.batch(packer.bytes, durability);
  }

  _chainedBatch() {
    const write = (bytes, options) => this.#writes.batch(bytes, this.#changing(options));
    return new ForrestChainedBatch(this, write);
  }

  _clear(options) {
    const durability = this.#changing(options);
    const { lower, upper, flags } = boundsOf(options);
    const limit = options.limit > 0 ? options.limit : 0;
    const state = this.#state(options);
    return this.#writes.run(() => binding.clear(this.#store, state, lower, upper, flags, limit, durability));
  }

  _iterator(options) {
    return new ForrestIterator(this, options, this.#opener(options));
  }

  _keys(options) {
    return new ForrestKeyIterator(this, options, this.#opener(options));
  }

  _values(options) {
    return new ForrestValueIterator(this, options, this.#opener(options));
  }

  _snapshot(options) {
    return new ForrestSnapshot(this.#store, options);
  }

  /** Bytes that the pairs from `start` to `end`, without it, take in the store, approximately. */
  async approximateSize(start, end, options) {
    return this.#additional('approximateSize', () => {
      const [from, to] = this.#range(start, end, options);
      return binding.approximateSize(this.#store, from, to);
    });
  }

  /** Merges the tables of the keys from `start` to `end`, both included. */
  async compactRange(start, end, options) {
    return this.#additional('compactRange', () => {
      const [from, to] = this.#range(start, end, options);
      return binding.compactRange(this.#store, from, to);
    });
  }

  /** Resolves when every change before it survives power loss. */
  async sync() {
    return this.#additional('sync', () => binding.sync(this.#store));
  }

  /** With readOnly: shows what the writer has changed since. */
  async refresh() {
    return this.#additional('refresh', () => binding.refresh(this.#store));
  }

  /** Reads and checks everything that is stored. */
  async verify() {
    return this.#additional('verify', () => binding.verify(this.#store));
  }

  /** Makes a copy of the store in a new directory, while it is used. */
  async checkpoint(directory) {
    if (typeof directory !== 'string' || directory === '') {
      throw new TypeError("The first argument 'directory' must be a non-empty string");
    }
    return this.#additional('checkpoint', () => binding.checkpoint(this.#store, path.resolve(directory)));
  }

  /** Calls `run` once the database is open, after the changes that were called before. */
  async #additional(name, run) {
    if (this.status === 'opening') return this.deferAsync(() => this.#additional(name, run));
    if (this.status !== 'open') {
      throw new ModuleError(`Database is not open: cannot call ${name}()`, { code: 'LEVEL_DATABASE_NOT_OPEN' });
    }
    await this.#writes.settled();
    return run();
  }

  #range(start, end, options) {
    this._assertValidKey(start);
    this._assertValidKey(end);
    const encoding = this.keyEncoding(options?.keyEncoding);
    return [encoding.encode(start), encoding.encode(end)];
  }

  /** The native snapshot of an explicit one. */
  #state(options) {
    const snapshot = options.snapshot;
    if (snapshot === undefined || snapshot === null) return undefined;
    if (!(snapshot instanceof ForrestSnapshot) || snapshot.store !== this.#store) {
      throw new TypeError("The option 'snapshot' must be a snapshot of this database");
    }
    return snapshot.handle;
  }

  #opener(options) {
    const { lower, upper, flags } = boundsOf(options);
    return (keys, values) => {
      const wanted = flags | (keys ? KEYS : 0) | (values ? VALUES : 0);
      return binding.iterate(this.#store, this.#state(options), lower, upper, wanted);
    };
  }

  /** The durability of a change, if changes are allowed. */
  #changing(options) {
    if (this.#isReadOnly) {
      throw new ModuleError('Database is read-only', { code: 'LEVEL_READONLY' });
    }
    // Memory has one level.
    return this.#isInMemory ? 0 : (durabilityOf(options) ?? 0);
  }
}

// Here, so that no one else can make one.
class ForrestSnapshot extends AbstractSnapshot {
  #store;
  #handle;

  constructor(store, options) {
    super(options);
    this.#store = store;
    this.#handle = binding.snapshot(store);
  }

  get store() {
    return this.#store;
  }

  get handle() {
    return this.#handle;
  }

  async _close() {
    binding.closeSnapshot(this.#handle);
  }
}

/** The number of the durability that options ask for; undefined if they do not. */
function durabilityOf(options) {
  const { durability, sync } = options;
  if (durability !== undefined && durability !== null) {
    if (!Object.hasOwn(DURABILITIES, durability)) {
      throw new TypeError("The option 'durability' must be 'memory', 'buffered' or 'sync'");
    }
    return DURABILITIES[durability];
  }
  return sync ? DURABILITIES.sync : undefined;
}

/** A size that an option states; 0 if it does not. */
function sizeOf(options, name) {
  const size = options[name] ?? 0;
  if (options[name] != null && (!Number.isSafeInteger(size) || size < 1)) {
    throw new TypeError(`The option '${name}' must be a whole number greater than 0`);
  }
  return size;
}

function compressionOf({ compression }) {
  switch (compression) {
    case undefined:
    case null:
      return undefined;
    case true:
      return 'lz4';
    case false:
      return 'none';
    case 'lz4':
    case 'none':
      return compression;
    default:
      throw new TypeError("The option 'compression' must be 'lz4', 'none' or a boolean");
  }
}

/** The bounds of a range, which `gte` and `lte` decide if both are there. */
function boundsOf(options) {
  let flags = options.reverse ? BACKWARD : 0;
  let { gte: lower, lte: upper } = options;
  if (lower === undefined && options.gt !== undefined) {
    lower = options.gt;
    flags |= LOWER_EXCLUDED;
  }
  if (upper === undefined && options.lt !== undefined) {
    upper = options.lt;
    flags |= UPPER_EXCLUDED;
  }
  return { lower, upper, flags };
}

async function exists(location) {
  try {
    await fs.access(location);
    return true;
  } catch (error) {
    // Any other error is the store's to report, with what it needs.
    return error.code !== 'ENOENT';
  }
}

function packed(keys) {
  const packer = new Packer(keys.length * 32);
  for (const key of keys) packer.key(key);
  return packer.bytes;
}

// Changes at the durability 'memory' wait in the process for up to a tenth of a second. When the process ends in an
// orderly way, also by process.exit(), they are passed to the system.
const stores = new Set();
const collected = new FinalizationRegistry((reference) => stores.delete(reference));

function flushAtExit(store) {
  if (stores.size === 0) {
    process.removeListener('exit', flushStores);
    process.on('exit', flushStores);
  }
  const reference = new WeakRef(store);
  stores.add(reference);
  collected.register(store, reference);
}

function flushStores() {
  for (const reference of stores) {
    const store = reference.deref();
    if (store === undefined) continue;
    try {
      binding.flushSync(store);
    } catch (error) {
      // It has nobody to go to but the user.
      console.error(`forrest-level: ${error.message}`);
    }
  }
}

module.exports = { ForrestLevel };
