'use strict';

// Writes of packed changes, in the order of the calls: each begins when the one before has ended. Single changes that
// are made in one turn of the event loop's microtasks, or while another write runs, are written together: one crossing
// to another thread for all of them, and with `sync` one sync.

const { Packer } = require('./packing');

// A group is full when it has so many changes or bytes. A change of more bytes is written alone, so that what the store
// refuses for its size fails by itself.
const CHANGES_MAX = 1000;
const GROUP_BYTES_MAX = 1 << 20;
const CHANGE_BYTES_MAX = 16 << 10;

class Writes {
  #write;
  /** Resolves when the last write that was queued has ended. */
  #last = Promise.resolve();
  /** The last write that was queued, as long as it takes more changes: { packer, changes, durability, written }. */
  #group = null;

  /** `write` begins a write of packed changes: (bytes, durability) => promise. */
  constructor(write) {
    this.#write = write;
  }

  put(key, value, durability) {
    return this.#change((packer) => packer.set(key, value), key.length + value.length, durability);
  }

  del(key, durability) {
    return this.#change((packer) => packer.delete(key), key.length, durability);
  }

  /** Writes packed changes after all before them. */
  batch(bytes, durability) {
    return this.run(() => this.#write(bytes, durability));
  }

  /** Runs a write, which returns a promise, after all before it. */
  run(write) {
    this.#group = null;
    // What is thrown here, as when the store has been closed, belongs to those who await the write.
    const written = this.#last.then(write);
    this.#last = written.then(nothing, nothing);
    return written;
  }

  /** Resolves when all writes that were called have ended, also if they failed. */
  settled() {
    this.#group = null;
    return this.#last;
  }

  #change(add, length, durability) {
    if (length > CHANGE_BYTES_MAX) {
      const packer = new Packer(length);
      add(packer);
      return this.batch(packer.bytes, durability);
    }
    const group = this.#group?.durability === durability ? this.#group : this.#begin(durability);
    add(group.packer);
    group.changes++;
    if (group.changes >= CHANGES_MAX || group.packer.bytes.length >= GROUP_BYTES_MAX) this.#group = null;
    return group.written;
  }

  #begin(durability) {
    const group = { packer: new Packer(), changes: 0, durability };
    group.written = this.run(() => {
      if (this.#group === group) this.#group = null;
      return this.#write(group.packer.bytes, durability);
    });
    this.#group = group;
    return group;
  }
}

function nothing() {}

module.exports = { Writes };
