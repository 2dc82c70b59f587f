// Types of forrest-level. What is not here is as abstract-level has it.

import {
  AbstractBatchOperation,
  AbstractBatchOptions,
  AbstractChainedBatch,
  AbstractChainedBatchWriteOptions,
  AbstractClearOptions,
  AbstractDatabaseOptions,
  AbstractDelOptions,
  AbstractIterator,
  AbstractIteratorOptions,
  AbstractKeyIterator,
  AbstractKeyIteratorOptions,
  AbstractLevel,
  AbstractOpenOptions,
  AbstractPutOptions,
  AbstractSnapshot,
  AbstractValueIterator,
  AbstractValueIteratorOptions,
  Transcoder
} from 'abstract-level';

/** What a change survives: nothing that ends the process, the end of the process, or power loss. */
export type Durability = 'memory' | 'buffered' | 'sync';

/** An abstract-level database on a Forrest store. */
export declare class ForrestLevel<KDefault = string, VDefault = string>
  extends AbstractLevel<string | Buffer | Uint8Array, KDefault, VDefault> {
  /**
   * @param location The path of the store's directory, or `memory:` for a store in memory.
   * @param options Options of the database, some of which are passed on to `open()`.
   */
  constructor(location: string, options?: DatabaseOptions<KDefault, VDefault> | undefined);

  /** The location that was passed to the constructor. */
  get location(): string;

  open(): Promise<void>;
  open(options: OpenOptions): Promise<void>;

  put(key: KDefault, value: VDefault): Promise<void>;
  put<K = KDefault, V = VDefault>(key: K, value: V, options: PutOptions<K, V>): Promise<void>;

  del(key: KDefault): Promise<void>;
  del<K = KDefault>(key: K, options: DelOptions<K>): Promise<void>;

  batch(operations: Array<BatchOperation<typeof this, KDefault, VDefault>>): Promise<void>;
  batch<K = KDefault, V = VDefault>(
    operations: Array<BatchOperation<typeof this, K, V>>, options: BatchOptions<K, V>
  ): Promise<void>;
  batch(): ChainedBatch<typeof this, KDefault, VDefault>;

  clear(): Promise<void>;
  clear<K = KDefault>(options: ClearOptions<K>): Promise<void>;

  iterator(): AbstractIterator<typeof this, KDefault, VDefault>;
  iterator<K = KDefault, V = VDefault>(
    options: IteratorOptions<K, V>
  ): AbstractIterator<typeof this, K, V>;

  keys(): AbstractKeyIterator<typeof this, KDefault>;
  keys<K = KDefault>(options: KeyIteratorOptions<K>): AbstractKeyIterator<typeof this, K>;

  values(): AbstractValueIterator<typeof this, KDefault, VDefault>;
  values<K = KDefault, V = VDefault>(
    options: ValueIteratorOptions<K, V>
  ): AbstractValueIterator<typeof this, K, V>;

  /** The state of the database at this moment, to be passed as the option `snapshot` of reads. */
  snapshot(options?: object | undefined): AbstractSnapshot;

  /** Bytes that the pairs from `start` to `end`, without it, take in the store, approximately. */
  approximateSize(start: KDefault, end: KDefault): Promise<number>;
  approximateSize<K = KDefault>(start: K, end: K, options: StartEndOptions<K>): Promise<number>;

  /** Merges the tables of the keys from `start` to `end`, both included. Not for `memory:`. */
  compactRange(start: KDefault, end: KDefault): Promise<void>;
  compactRange<K = KDefault>(start: K, end: K, options: StartEndOptions<K>): Promise<void>;

  /** Resolves when every change that was called before it survives power loss. */
  sync(): Promise<void>;

  /** With `readOnly`: shows what the writer has changed since the database was opened or refreshed. */
  refresh(): Promise<void>;

  /** Reads and checks everything that is stored. Rejects with `LEVEL_CORRUPTION` if something is damaged. */
  verify(): Promise<void>;

  /** Makes a copy of the store in a new directory, while it is used. */
  checkpoint(directory: string): Promise<void>;
}

/** Options of the constructor. */
export interface DatabaseOptions<K, V>
  extends AbstractDatabaseOptions<K, V>, Omit<OpenOptions, 'passive'> {}

/** Options of `open()`. */
export interface OpenOptions extends AbstractOpenOptions {
  /** Open a store to be read, also while another process writes to it. Default: false. */
  readOnly?: boolean | undefined;
  /** The durability of changes that state none. Default: `'buffered'`. */
  durability?: Durability | undefined;
  /** Most memory for memtables and cached tables, in bytes. Default: a quarter of the memory, at most 512 MiB. */
  memoryBytes?: number | undefined;
  /** Threads that write tables. Default: the store's own choice. */
  workers?: number | undefined;
  /** How tables are compressed; `true` is `'lz4'`, `false` is `'none'`. Default: that of the store, at first none. */
  compression?: 'lz4' | 'none' | boolean | undefined;
}

/** Options of every change. */
export interface WriteOptions {
  /** The same as `durability: 'sync'`, as in classic-level. */
  sync?: boolean | undefined;
  /** What the change survives when the promise resolves. Default: that of the database. */
  durability?: Durability | undefined;
}

/** Options of `put()`. */
export interface PutOptions<K, V> extends AbstractPutOptions<K, V>, WriteOptions {}

/** Options of `del()`. */
export interface DelOptions<K> extends AbstractDelOptions<K>, WriteOptions {}

/** Options of `batch()`. */
export interface BatchOptions<K, V> extends AbstractBatchOptions<K, V>, WriteOptions {}

/** Options of `clear()`. */
export interface ClearOptions<K> extends AbstractClearOptions<K>, WriteOptions {}

/** Options of `write()` of a chained batch. */
export interface ChainedBatchWriteOptions extends AbstractChainedBatchWriteOptions, WriteOptions {}

/** A chained batch. */
export declare class ChainedBatch<TDatabase, KDefault, VDefault>
  extends AbstractChainedBatch<TDatabase, KDefault, VDefault> {
  write(): Promise<void>;
  write(options: ChainedBatchWriteOptions): Promise<void>;
}

/** Options of every iterator. */
export interface PageOptions {
  /** A page ends with the pair that reaches this number of bytes. Default: 16 KiB. */
  highWaterMarkBytes?: number | undefined;
}

/** Options of `iterator()`. */
export interface IteratorOptions<K, V> extends AbstractIteratorOptions<K, V>, PageOptions {}

/** Options of `keys()`. */
export interface KeyIteratorOptions<K> extends AbstractKeyIteratorOptions<K>, PageOptions {}

/** Options of `values()`. */
export interface ValueIteratorOptions<K, V> extends AbstractValueIteratorOptions<K, V>, PageOptions {}

/** Options of `approximateSize()` and `compactRange()`. */
export interface StartEndOptions<K> {
  /** The encoding of both keys. */
  keyEncoding?: string | Transcoder.PartialEncoder<K> | undefined;
}

/** An operation of `batch()`. */
export type BatchOperation<TDatabase, K, V> = AbstractBatchOperation<TDatabase, K, V>;
