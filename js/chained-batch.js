'use strict';

const { AbstractChainedBatch } = require('abstract-level');
const { Packer } = require('./packing');

/** A batch whose changes are encoded when they are added, and written in one call. */
class ForrestChainedBatch extends AbstractChainedBatch {
  #packer = new Packer();
  #write;

  /** `write` writes packed changes: (bytes, options) => promise. */
  constructor(db, write) {
    super(db);
    this.#write = write;
  }

  _put(key, value) {
    this.#packer.set(key, value);
  }

  _del(key) {
    this.#packer.delete(key);
  }

  _clear() {
    this.#packer = new Packer();
  }

  async _write(options) {
    await this.#write(this.#packer.bytes, options);
  }

  async _close() {
    this.#packer = null;
  }
}

module.exports = { ForrestChainedBatch };
