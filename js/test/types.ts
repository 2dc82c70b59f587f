// What the types allow and refuse; the step `node` compiles it with tsc and runs nothing.

import { ForrestLevel, type Durability } from 'forrest-level';

export async function allowed(): Promise<void> {
  const db = new ForrestLevel<string, { rings: number }>('trees', {
    valueEncoding: 'json', readOnly: false, memoryBytes: 1 << 26, compression: 'lz4', durability: 'sync'
  });
  const level: Durability = 'buffered';
  await db.put('oak', { rings: 300 }, { sync: true });
  await db.put<Buffer, Uint8Array>(Buffer.from([1]), new Uint8Array(2), {
    keyEncoding: 'buffer', valueEncoding: 'view', durability: level
  });
  const oak: { rings: number } | undefined = await db.get('oak');
  const same: { rings: number } | undefined = db.getSync('oak');
  await db.batch([{ type: 'put', key: 'ash', value: { rings: 80 } }, { type: 'del', key: 'elm' }], { sync: true });
  await db.batch().put('fir', { rings: 9 }).del('oak').write({ durability: 'memory' });
  await db.clear({ gte: 'a', lt: 'b', limit: 3, sync: true });
  for await (const [key, value] of db.iterator({ reverse: true, highWaterMarkBytes: 4096 })) {
    const text: string = key;
    const rings: number = value.rings;
    void [text, rings];
  }
  for await (const key of db.keys({ limit: 1 })) void key.length;
  for await (const value of db.values()) void value.rings;
  const snapshot = db.snapshot();
  await db.getMany(['oak'], { snapshot });
  await snapshot.close();
  const bytes: number = await db.approximateSize('a', 'z');
  await db.compactRange('a', 'z');
  const sub = db.sublevel<string, string>('log', { valueEncoding: 'utf8' });
  await sub.put('a', 'b');
  await Promise.all([db.sync(), db.refresh(), db.verify(), db.checkpoint('copy')]);
  void [oak, same, bytes, db.location.length];
  await db.close();
}

export async function refused(db: ForrestLevel): Promise<void> {
  // @ts-expect-error: the location is missing
  void new ForrestLevel();
  // @ts-expect-error: no such durability
  await db.put('a', 'b', { durability: 'always' });
  // @ts-expect-error: keys are strings here
  await db.put(1, 'b');
  // @ts-expect-error: no such compression
  await db.open({ compression: 'zstd' });
  // @ts-expect-error: a size is a number
  await db.open({ memoryBytes: '1 GiB' });
  // @ts-expect-error: it may be undefined
  const value: string = await db.get('a');
  void value;
}
