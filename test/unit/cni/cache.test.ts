// What the cache of attachments makes of files that are not what it wrote: cut off by a crash, of another version, of
// another program. Each is named, and none is taken for an attachment.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AttachmentCache, type CachedAttachment } from '../../../cni/cache.ts';
import { epochMs } from '../../../lib/clock.ts';

const ENTRY: CachedAttachment = {
  containerId: 'c1',
  netns: '/run/netns/n',
  ifName: 'eth0',
  args: 'K8S_POD_NAME=p',
  capabilityArgs: { portMappings: [] },
  list: {
    name: 'net',
    cniVersion: '1.0.0',
    disableCheck: false,
    disableGC: true,
    plugins: [{ type: 'bridge', capabilities: {} }],
  },
  state: 'added',
  result: { cniVersion: '1.0.0' },
  createdAt: epochMs(1_700_000_000_000),
};

let dir: string;
let attachments: string;
let cache: AttachmentCache;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'nodelet-cni-cache-'));
  attachments = join(dir, 'attachments');
  cache = new AttachmentCache(dir);
});
afterEach(() => rmSync(dir, { recursive: true }));

const fileOf = (containerId: string): string => join(attachments, `${containerId}~eth0@net.json`);
const written = (): Record<string, unknown> => {
  cache.write(ENTRY);
  return JSON.parse(readFileSync(fileOf('c1'), 'utf8'));
};
const put = (text: string, containerId = 'c1'): void => {
  mkdirSync(attachments, { recursive: true });
  writeFileSync(fileOf(containerId), text);
};

describe('an attachment in the cache', () => {
  it('is read as it was written, and is replaced as a whole', () => {
    cache.write({ ...ENTRY, state: 'adding', result: undefined });
    expect(cache.ofContainer('c1')).toEqual([{ ...ENTRY, state: 'adding', result: undefined }]);
    cache.write(ENTRY);
    expect(cache.list()).toEqual({ entries: [ENTRY], broken: [] });
    expect(readdirSync(attachments)).toEqual(['c1~eth0@net.json']);
  });

  it('is found by its whole container id alone', () => {
    cache.write(ENTRY);
    cache.write({ ...ENTRY, containerId: 'c10' });
    expect(cache.ofContainer('c1').map(({ containerId }) => containerId)).toEqual(['c1']);
    expect(cache.ofContainer('c')).toEqual([]);
  });

  it('is there when there is no directory yet, and none is there to be read', () => {
    expect([cache.list(), cache.ofContainer('c1')]).toEqual([{ entries: [], broken: [] }, []]);
    cache.remove(ENTRY);
    expect(existsSync(attachments)).toBe(false);
  });
});

describe('a file that is torn', () => {
  it('at any byte is broken, by name, and no attachment', () => {
    const text = JSON.stringify(written());
    for (let length = 0; length < text.length; length++) {
      put(text.slice(0, length));
      const { entries, broken } = cache.list();
      expect([entries, broken.map(({ message }) => message)], `${length} bytes`).toEqual([
        [],
        [`${fileOf('c1')} is not a cached CNI attachment; remove it by hand`],
      ]);
    }
  });

  it('keeps its own container from being taken for one without a network, and no other', () => {
    written();
    put('{"kind":"nodelet.cni.att', 'c2');
    expect(() => cache.ofContainer('c2')).toThrow(`${fileOf('c2')} is not a cached CNI attachment`);
    expect(cache.ofContainer('c1')).toEqual([ENTRY]);
    expect(cache.list().entries).toEqual([ENTRY]);
  });

  it('before it had its name counts for nothing, and goes with the attachment', () => {
    written();
    const torn = `${fileOf('c1')}.tmp`;
    writeFileSync(torn, '{"kind":');
    expect(cache.list()).toEqual({ entries: [ENTRY], broken: [] });
    cache.remove(ENTRY);
    expect(readdirSync(attachments)).toEqual([]);
  });

  it('leaves the file that was there before when it cannot be replaced', () => {
    written();
    mkdirSync(`${fileOf('c1')}.tmp`);
    expect(() => cache.write({ ...ENTRY, state: 'adding' })).toThrow(/EISDIR/);
    rmSync(`${fileOf('c1')}.tmp`, { recursive: true });
    expect(cache.ofContainer('c1')).toEqual([ENTRY]);
  });
});

describe('a file of another form is broken', () => {
  const withField = (field: string, value: unknown): string => JSON.stringify({ ...written(), [field]: value });
  const withList = (field: string, value: unknown): string => withField('list', { ...ENTRY.list, [field]: value });

  it.each<[string, () => string]>([
    ['no object', () => '[]'],
    ['nothing', () => 'null'],
    ['another version', () => withField('kind', 'nodelet.cni.attachment/v2')],
    ['no version', () => withField('kind', undefined)],
    ...['containerId', 'netns', 'ifName', 'args', 'capabilityArgs', 'list', 'createdAt'].flatMap(
      (field): [string, () => string][] => [
        [`no ${field}`, () => withField(field, undefined)],
        [`a ${field} that is a flag`, () => withField(field, true)],
      ],
    ),
    ['an unknown state', () => withField('state', 'removing')],
    ['a result that is a list', () => withField('result', [])],
    ['a list without a name', () => withList('name', undefined)],
    ['a list without a version', () => withList('cniVersion', 1)],
    ['a plugin without a type', () => withList('plugins', [{ type: 'bridge' }, {}])],
    ['a plugin that is a name', () => withList('plugins', ['bridge'])],
    ['plugins that are no list', () => withList('plugins', { type: 'bridge' })],
    ['no plugins field', () => withList('plugins', undefined)],
  ])('%s', (_what, text) => {
    put(text());
    const { entries, broken } = cache.list();
    expect([entries.length, broken.length]).toEqual([0, 1]);
    expect(() => cache.ofContainer('c1')).toThrow('is not a cached CNI attachment');
  });

  it('but files that are none of its own are left alone', () => {
    written();
    writeFileSync(join(attachments, 'readme.txt'), 'hello');
    expect(cache.list()).toEqual({ entries: [ENTRY], broken: [] });
  });
});
