// Values at rest: the ciphers against known values and each other's faults, the configuration's rules, and files that are
// searched for what must not be in them.

import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigurationError, parseConfiguration } from '../../../../apiserver/storage/encryption/configuration.ts';
import { type Encryption, encryptionOf, loadEncryption } from '../../../../apiserver/storage/encryption/load.ts';
import { aescbc, aesgcm, secretbox, type Transformer } from '../../../../apiserver/storage/encryption/transformers.ts';
import { validateEncryption } from '../../../../apiserver/storage/encryption/validate.ts';
import { resourceDirectory, storageKey } from '../../../../apiserver/storage/keys.ts';
import { Store } from '../../../../apiserver/storage/store.ts';
import { SnapshotKeeper, takeSnapshot } from '../../../../apiserver/storage/take-snapshot.ts';
import { UserError } from '../../../../lib/errors.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const KEY = '/registry/secrets/default/one';
const secret = (byte: number, length = 32): string => Buffer.alloc(length, byte).toString('base64');
const DATA = Buffer.from('{"kind":"Secret","data":{"password":"aHVudGVyMg=="}}');

/** What this process has written to files until now. */
function bytesWritten(): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

describe('a cipher', () => {
  const CIPHERS: readonly [string, (key: Buffer) => Transformer, readonly number[]][] = [
    ['aescbc', aescbc, [16, 24, 32]],
    ['aesgcm', aesgcm, [16, 24, 32]],
    ['secretbox', secretbox, [32]],
  ];
  for (const [name, make, lengths] of CIPHERS) {
    for (const length of lengths) {
      it(`${name} with ${length} bytes reads what it wrote, and never writes the same twice`, () => {
        const cipher = make(Buffer.alloc(length, 7));
        const stored = cipher.toStorage(DATA, KEY);
        expect(cipher.fromStorage(stored, KEY)).toEqual({ data: DATA, stale: false });
        expect(stored.includes('password')).toBe(false);
        expect(cipher.toStorage(DATA, KEY).equals(stored)).toBe(false);
        expect(() => cipher.fromStorage(stored.subarray(0, 10), KEY)).toThrow(
          'the stored data was shorter than the required size',
        );
      });
    }
  }

  it('reads what others wrote: openssl, and NaCl', () => {
    // openssl enc -aes-256-cbc -K 0707… -iv 0000…, the vector in front.
    const cbc = Buffer.concat([Buffer.alloc(16), Buffer.from(OPENSSL_CBC, 'base64')]);
    expect(aescbc(Buffer.alloc(32, 7)).fromStorage(cbc, KEY).data.toString()).toBe('hello');
    // tweetnacl: secretbox('hello', nonce of zeros, key of sevens).
    const box = Buffer.concat([Buffer.alloc(24), Buffer.from(NACL_BOX, 'base64')]);
    expect(secretbox(Buffer.alloc(32, 7)).fromStorage(box, KEY).data.toString()).toBe('hello');
  });

  it('refuses what was changed, moved to another place, or written with another key', () => {
    const gcm = aesgcm(Buffer.alloc(32, 7));
    const stored = gcm.toStorage(DATA, KEY);
    expect(() => gcm.fromStorage(stored, '/registry/secrets/default/two')).toThrow(
      'cipher: message authentication failed',
    );
    stored[20] = (stored[20] ?? 0) ^ 1;
    expect(() => gcm.fromStorage(stored, KEY)).toThrow('cipher: message authentication failed');
    const box = secretbox(Buffer.alloc(32, 7)).toStorage(DATA, KEY);
    expect(() => secretbox(Buffer.alloc(32, 8)).fromStorage(box, KEY)).toThrow(
      'output array was not large enough for encryption',
    );
    const cbc = aescbc(Buffer.alloc(32, 7)).toStorage(DATA, KEY);
    expect(() => aescbc(Buffer.alloc(32, 7)).fromStorage(cbc.subarray(0, 33), KEY)).toThrow(
      'the stored data is not a multiple of the block size',
    );
    expect(() => aescbc(Buffer.alloc(32, 7)).fromStorage(cbc.subarray(0, 16), KEY)).toThrow('invalid padding on input');
  });
});

const OPENSSL_CBC = 'VHFhCSpWd9zJBnnisA7Zbw==';
const NACL_BOX = 'WG33NTEQJoC5BFw1Lrl1w6sFo5Gk';

/** One rule for secrets. `providers` as "aescbc:key1=1,key2=2", "identity". */
function configuration(providers: readonly string[], resources: readonly string[] = ['secrets']): string {
  const lines = providers.map((provider) => {
    const [name = '', keys] = provider.split(':');
    if (keys === undefined) return { [name]: {} };
    const list = keys.split(',').map((key) => {
      const [keyName = '', byte = '0'] = key.split('=');
      return { name: keyName, secret: secret(Number(byte)) };
    });
    return { [name]: { keys: list } };
  });
  return JSON.stringify({
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    resources: [{ resources, providers: lines }],
  });
}

const encryption = (providers: readonly string[], resources?: readonly string[]): Encryption =>
  encryptionOf(parseConfiguration(configuration(providers, resources)));

const faults = (resources: unknown): readonly string[] =>
  validateEncryption(
    parseConfiguration(
      JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration', resources }),
    ),
  );

describe('an EncryptionConfiguration', () => {
  const identity = [{ identity: {} }];
  const at = 'resources[0].providers[0].aescbc.keys[0]';
  const keys = (key: object): unknown => [{ resources: ['secrets'], providers: [{ aescbc: { keys: [key] } }] }];
  const CASES: readonly [string, unknown, readonly string[]][] = [
    ['none', [], ['resources: Required value: at least one resources is required']],
    [
      'an empty rule',
      [{}],
      [
        'resources[0].resources: Required value: at least one resources[0].resources is required',
        'resources[0].providers: Required value: at least one resources[0].providers is required',
      ],
    ],
    [
      'two providers in one element',
      [{ resources: ['secrets'], providers: [{ identity: {}, aescbc: { keys: [] } }] }],
      [
        'resources[0].providers[0]: Invalid value: ["identity","aescbc"]: more than one provider specified in a single element, should split into different list elements',
      ],
    ],
    [
      'an empty provider',
      [{ resources: ['secrets'], providers: [{}] }],
      [
        'resources[0].providers[0]: Invalid value: {}: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity',
      ],
    ],
    [
      'no keys',
      [{ resources: ['secrets'], providers: [{ secretbox: { keys: [] } }] }],
      ['resources[0].providers[0].secretbox.keys: Required value: at least one keys is required'],
    ],
    [
      'a key without a name',
      keys({ secret: secret(1) }),
      [`${at}.name: Required value: name is a mandatory field for a key`],
    ],
    [
      'a key without a secret',
      keys({ name: 'a' }),
      [`${at}.secret: Required value: secret is a mandatory field for a key`],
    ],
    [
      'a secret that is not base64',
      keys({ name: 'a', secret: 'ü' }),
      [`${at}.secret: Invalid value: "REDACTED": secrets must be base64 encoded`],
    ],
    [
      'a secret that is too short',
      keys({ name: 'a', secret: secret(1, 5) }),
      [
        `${at}.secret: Invalid value: "REDACTED": secret is not of the expected length, got 5, expected one of [16 24 32]`,
      ],
    ],
    [
      'KMS',
      [{ resources: ['secrets'], providers: [{ kms: { name: 'a', endpoint: 'unix:///a' } }] }],
      ['resources[0].providers[0].kms: Forbidden: KMS providers are not supported by this server'],
    ],
    ...(
      [
        ['Secrets', 'resource name should not contain capital letters'],
        ['*', "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"],
        ['apiserveripinfo', 'resources which do not have REST API/s cannot be encrypted'],
        [
          'events.events.k8s.io',
          "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
        ],
        ['ingresses.extensions', "'extensions' group has been removed and cannot be used for encryption"],
        ['secrets.*', 'encrypting the same resource across groups is not supported'],
      ] as const
    ).map(
      ([name, why]) =>
        [
          name,
          [{ resources: [name], providers: identity }],
          [`resources[0].resources[0]: Invalid value: "${name}": ${why}`],
        ] as [string, unknown, string[]],
    ),
    [
      'a resource twice',
      [{ resources: ['secrets', 'secrets'], providers: identity }],
      [
        'resources[0].resources: Invalid value: ["secrets","secrets"]: the same resource cannot be specified multiple times',
      ],
    ],
    ...(['*.', '*.*'] as const).map(
      (wide) =>
        [
          `secrets and ${wide}`,
          [{ resources: ['secrets', wide], providers: identity }],
          [
            `resources[0].resources: Invalid value: ["secrets","${wide}"]: using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked`,
          ],
        ] as [string, unknown, string[]],
    ),
    ['deployments and all of core', [{ resources: ['deployments.apps', '*.'], providers: identity }], []],
  ];
  for (const [name, resources, expected] of CASES) {
    it(`${name}: ${expected.length === 0 ? 'valid' : 'refused'}`, () => expect(faults(resources)).toEqual(expected));
  }

  it('of another kind, with unknown fields, or that is no YAML is refused', () => {
    expect(() => parseConfiguration('kind: EncryptionConfig\napiVersion: v1\n')).toThrow(/no kind "EncryptionConfig"/);
    expect(() => parseConfiguration(configuration(['identity']).replace('"providers"', '"provider"'))).toThrow(
      'strict decoding error: unknown field "resources[0].provider"',
    );
    expect(() => parseConfiguration('a: [')).toThrow(ConfigurationError);
    expect(() => loadEncryption('/nonexistent/file')).toThrow(UserError);
  });

  it('holds for a resource by its name, its group, or everything; earlier rules hide later ones', () => {
    const rule = (resources: readonly string[], name: string): unknown => ({
      resources,
      providers: [{ aescbc: { keys: [{ name, secret: secret(1) }] } }],
    });
    const of = encryptionOf(
      parseConfiguration(
        JSON.stringify({
          apiVersion: 'apiserver.config.k8s.io/v1',
          kind: 'EncryptionConfiguration',
          resources: [
            rule(['secrets'], 'own'),
            rule(['*.apps'], 'apps'),
            rule(['deployments.apps'], 'hidden'),
            rule(['*.*'], 'all'),
            rule(['configmaps'], 'hidden'),
          ],
        }),
      ),
    );
    const key = (resource: string): string => of.writePrefix(resource).split(':')[4] ?? '';
    expect(['/secrets', 'apps/deployments', '/configmaps', 'batch/jobs'].map(key)).toEqual([
      'own',
      'apps',
      'all',
      'all',
    ]);
  });
});

describe('a place in the store', () => {
  it('is kube-apiserver’s', () => {
    const places = {
      '/pods': '/registry/pods',
      '/nodes': '/registry/minions',
      '/services': '/registry/services/specs',
      '/endpoints': '/registry/services/endpoints',
      '/replicationcontrollers': '/registry/controllers',
      'apps/deployments': '/registry/deployments',
      'networking.k8s.io/ingresses': '/registry/ingress',
      'coordination.k8s.io/leases': '/registry/leases',
      'apiextensions.k8s.io/customresourcedefinitions': '/registry/apiextensions.k8s.io/customresourcedefinitions',
      'apiregistration.k8s.io/apiservices': '/registry/apiregistration.k8s.io/apiservices',
      'stable.example.com/crontabs': '/registry/stable.example.com/crontabs',
    };
    for (const [resource, place] of Object.entries(places)) expect(resourceDirectory(resource)).toBe(place);
    expect(storageKey({ resource: '/pods', namespace: 'default', name: 'a' })).toBe('/registry/pods/default/a');
    expect(storageKey({ resource: '/nodes', namespace: '', name: 'n' }, '/other')).toBe('/other/minions/n');
  });
});

describe('a store with encryption', () => {
  let directory: string;
  let path: string;
  const open: Store[] = [];
  const log: string[] = [];
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'nodelet-encryption-'));
    path = join(directory, 'store.db');
    log.length = 0;
  });
  afterEach(() => {
    for (const one of open.splice(0)) one.close();
    rmSync(directory, { recursive: true });
  });
  function store(providers?: readonly string[], resources?: readonly string[]): Store {
    const options = providers === undefined ? {} : { encryption: encryption(providers, resources) };
    const made = new Store(path, { clock: new VirtualClock(), log: (line) => log.push(line), ...options });
    open.push(made);
    return made;
  }
  const place = (name: string, resource = '/secrets') => ({ resource, namespace: 'default', name });
  const value = (name: string): string => `plain-value-of-${name}-`.repeat(20);
  function put(to: Store, name: string, resource?: string): void {
    const key = place(name, resource);
    to.put(key, { apiVersion: 'v1', kind: 'Secret', metadata: { name }, value: value(name) }, to.get(key));
  }
  /** Names of the files below the directory that show any value. */
  function showing(text = 'plain-value-of-'): string[] {
    const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    return files
      .filter((file) => readFileSync(join(file.parentPath, file.name)).includes(text))
      .map(({ name }) => name)
      .sort();
  }

  it('writes what it is configured to behind kube-apiserver’s prefix, and nothing else', () => {
    const one = store(['aescbc:key1=1']);
    put(one, 'a');
    put(one, 'b', '/configmaps');
    expect(JSON.parse(one.get(place('a'))?.text ?? '')).toMatchObject({ value: value('a') });
    expect(Array.from(one.scan('/secrets'), ({ text }) => text.includes(value('a')))).toEqual([true]);
    expect(one.since(1, '/secrets').changes.map(({ object }) => object['value'])).toEqual([value('a')]);
    one.close();
    expect(showing('k8s:enc:aescbc:v1:key1:')).toContain('store.db');
    expect(showing('plain-value-of-a')).toEqual([]);
    expect(showing('plain-value-of-b')).toContain('store.db');
  });

  it('that was plain shows nothing once every object is rewritten: history, deletions, log, snapshots', async () => {
    const plain = store();
    for (const name of ['a', 'b', 'a', 'gone']) put(plain, name);
    plain.remove(place('gone'), JSON.parse(plain.get(place('gone'))?.text ?? ''), wanted(plain.get(place('gone'))));
    await takeSnapshot(plain);
    plain.close();
    expect(showing().length).toBeGreaterThan(1);
    const one = store(['secretbox:k=1', 'identity']);
    const keeper = new SnapshotKeeper(one, new VirtualClock(), (line) => log.push(line));
    keeper.start();
    put(one, 'a');
    expect(one.get(place('b'))).toMatchObject({ stale: true });
    one.maintain();
    expect(showing()).toContain('store.db');
    put(one, 'b');
    expect(one.get(place('b'))?.stale).toBeUndefined();
    one.maintain();
    expect(log).toEqual([expect.stringContaining('was written anew: it holds nothing in the form from before')]);
    await keeper.stop();
    // Open as it is, and after the stop.
    expect(showing()).toEqual([]);
    one.close();
    expect(showing()).toEqual([]);
    const again = store(['secretbox:k=1']);
    expect(JSON.parse(again.get(place('b'))?.text ?? '')).toMatchObject({ value: value('b') });
    expect(again.since(1, '/secrets').changes.map(({ record }) => record.name)).toContain('gone');
  });

  it('that is large is freed in many short steps, between which it is read, written and trimmed', async () => {
    const plain = store();
    const names = Array.from({ length: 500 }, (_, i) => `n${i}`);
    // Rows of one page and of many, and holes of all sizes.
    const large = (name: string, round: number): string =>
      value(name).repeat(1 + ((name.length * 7 + round * 13) % 60));
    const write = (to: Store, name: string, round: number): void => {
      const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, value: large(name, round) };
      to.put(place(name), object, to.get(place(name)));
    };
    const remove = (from: Store, name: string): void => {
      const present = wanted(from.get(place(name)));
      from.remove(place(name), JSON.parse(present.text), present);
    };
    for (let round = 0; round < 3; round++) for (const name of names) write(plain, name, round);
    for (const name of names.slice(400)) remove(plain, name);
    plain.compact(plain.revision - 700);
    plain.close();

    const clock = new VirtualClock();
    const one = new Store(path, {
      clock,
      log: (line) => log.push(line),
      encryption: encryption(['aescbc:k=1', 'identity']),
    });
    open.push(one);
    for (const name of names.slice(0, 400)) write(one, name, 4);
    await clock.advance(2_000);
    const steps: number[] = [];
    for (let at = 0; log.length === 0; at++) {
      const before = bytesWritten();
      await clock.advance(10);
      steps.push(bytesWritten() - before);
      write(one, `new${at}`, at);
      if (at % 3 === 2) remove(one, `new${at - 1}`);
      if (at === 20) one.compact(one.revision - 300);
    }
    expect(log).toEqual([expect.stringContaining('was written anew')]);
    // Of what VACUUM would write in one step: none is a large part.
    const total = steps.reduce((sum, each) => sum + each, 0);
    expect(steps.length).toBeGreaterThan(40);
    expect(Math.max(...steps)).toBeLessThan(total / 4);
    expect(showing()).toEqual([]);

    const expected = names.slice(0, 400).map((name) => [name, large(name, 4)]);
    for (let at = 0; at < steps.length; at++) {
      if (at % 3 !== 1 || at + 1 >= steps.length) expected.push([`new${at}`, large(`new${at}`, at)]);
    }
    const present = (from: Store): unknown[] =>
      Array.from(from.scan('/secrets'), ({ name, text }) => [name, JSON.parse(text).value]);
    const sorted = expected.toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1));
    expect(present(one)).toEqual(sorted);
    expect(one.since(one.revision - 100, '/secrets').changes).toHaveLength(100);
    one.close();
    expect(showing()).toEqual([]);
    // The start checks the whole file.
    expect(present(store(['aescbc:k=1']))).toEqual(sorted);
  });

  it('that was killed while it was freed goes on where that is due, and is as it was where it is not', async () => {
    const plain = store();
    for (let at = 0; at < 300; at++) put(plain, `n${at}`);
    plain.close();
    const clock = new VirtualClock();
    const one = new Store(path, { clock, encryption: encryption(['aescbc:k=1', 'identity']) });
    for (let at = 0; at < 300; at++) put(one, `n${at}`);
    await clock.advance(2_000);
    let copied = false;
    for (let step = 0; step < 60 && !copied; step++) {
      await clock.advance(10);
      copied = readFileSync(path).includes('versions_next') || readFileSync(`${path}-wal`).includes('versions_next');
    }
    expect(copied).toBe(true);
    // As a kill leaves it: the files, without what closing does.
    const killed = join(directory, 'killed');
    mkdirSync(killed);
    for (const file of ['store.db', 'store.db-wal']) cpSync(join(directory, file), join(killed, file));
    one.close();
    const count = (from: Store): number => [...from.scan('/secrets')].length;
    for (const providers of [
      ['identity', 'aescbc:k=1'],
      ['aescbc:k=1', 'identity'],
    ]) {
      const again = new Store(join(killed, 'store.db'), { clock, encryption: encryption(providers) });
      put(again, 'after');
      expect(count(again)).toBe(301);
      again.close();
    }
    expect(readFileSync(join(killed, 'store.db')).includes('versions_next')).toBe(false);
  });

  it('whose key changes reads both, and is free of the old one after the rotation', () => {
    const first = store(['aesgcm:old=1']);
    put(first, 'a');
    first.close();
    const both = store(['aesgcm:new=2,old=1']);
    expect(both.get(place('a'))).toMatchObject({ stale: true });
    put(both, 'a');
    both.close();
    expect(showing('k8s:enc:aesgcm:v1:old:')).toEqual([]);
    expect(JSON.parse(store(['aesgcm:new=2']).get(place('a'))?.text ?? '')).toMatchObject({ value: value('a') });
  });

  it('goes back to plain text with identity first', () => {
    const first = store(['aescbc:k=1']);
    put(first, 'a');
    first.close();
    const back = store(['identity', 'aescbc:k=1']);
    expect(back.get(place('a'))).toMatchObject({ stale: true });
    put(back, 'a');
    back.close();
    expect(store().get(place('a'))?.text).toContain(value('a'));
  });

  it('names the object whose key is missing; others are read', () => {
    const first = store(['aescbc:k=1']);
    put(first, 'a');
    put(first, 'b', '/configmaps');
    first.close();
    const why = (one: Store): unknown => {
      try {
        return one.get(place('a'));
      } catch (error) {
        return String(error);
      } finally {
        expect(one.get(place('b', '/configmaps'))?.text).toContain(value('b'));
        one.close();
      }
    };
    const at = 'unable to transform key "/registry/secrets/default/a"';
    expect(why(store())).toMatch(`${at}: identity transformer tried to read encrypted data`);
    expect(why(store(['identity']))).toMatch(`${at}: no matching prefix found`);
    expect(why(store(['aesgcm:k=1']))).toMatch(`${at}: no matching prefix found`);
    expect(why(store(['aescbc:other=1']))).toMatch(`${at}: no matching key was found for the provided AES transformer`);
    expect(() => [...store(['identity']).scan('/secrets')]).toThrow(at);
  });

  it('that is damaged inside an encrypted object is refused by the cipher alone', () => {
    const one = store(['aesgcm:k=1']);
    put(one, 'a');
    one.close();
    const bytes = readFileSync(path);
    const start = bytes.indexOf('k8s:enc:aesgcm:v1:k:') + 40;
    bytes[start] = (bytes[start] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    expect(() => store(['aesgcm:k=1']).get(place('a'))).toThrow('cipher: message authentication failed');
  });
});

function wanted<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('it is not there');
  return value;
}
