'use strict';

// Writes of packed changes, in the order of the calls. Single changes that are made in one turn of the event loop's
// microtasks are written together: one crossing to another thread for all of them, and with `sync` one sync.

const { Packer } = require('./packing');

// A group is written when it has so many changes or bytes. A change of more bytes is written alone, so that what the
// store refuses for its size fails by itself.
const CHANGES_MAX = 1000;
const GROUP_BYTES_MAX = 1 << 20;
const CHANGE_BYTES_MAX = 1024;

class Writes {
  #write;
  /** Changes that wait for the end of this turn: { packer, changes, durability, send, written }. */
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

  /** Begins to write packed changes, after those that wait. */
  batch(bytes, durability) {
    this.flush();
    return this.#write(bytes, durability);
  }

  /** Begins to write the changes that wait. */
  flush() {
    const group = this.#group;
    if (group === null) return;
    this.#group = null;
    // What is thrown here, as when the store has been closed, belongs to those who await the group.
    group.send(new Promise((resolve) => resolve(this.#write(group.packer.bytes, group.durability))));
  }

  #change(add, length, durability) {
    if (length > CHANGE_BYTES_MAX) {
      const packer = new Packer(length);
      add(packer);
      return this.batch(packer.bytes, durability);
    }
    if (this.#group !== null && this.#group.durability !== durability) this.flush();
    const group = this.#group ?? this.#begin(durability);
    add(group.packer);
    group.changes++;
    if (group.changes >= CHANGES_MAX || group.packer.bytes.length >= GROUP_BYTES_MAX) this.flush();
    return group.written;
  }

  #begin(durability) {
    const group = { packer: new Packer(), changes: 0, durability };
    group.written = new Promise((resolve) => { group.send = resolve; });
    // A failure belongs to those who made the changes; a group may end without any.
    group.written.catch(() => {});
    this.#group = group;
    queueMicrotask(() => {
      if (this.#group === group) this.flush();
    });
    return group;
  }
}

module.exports = { Writes };
