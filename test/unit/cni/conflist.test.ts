import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { confFiles, loadConflist, loadNetwork, parseConflist, parseSingleConf } from '../../../cni/conflist.ts';
import { negotiateVersion } from '../../../cni/version.ts';

const GOOD = { cniVersion: '1.0.0', name: 'net', plugins: [{ type: 'bridge' }] };
const text = (more: object): string => JSON.stringify({ ...GOOD, ...more });

describe('a conflist is refused with its file and field', () => {
  it.each<[string, string, string]>([
    ['what is not JSON', '{', 'f.conflist: is not JSON: '],
    ['what is not an object', '[]', 'f.conflist: is not a JSON object'],
    ['no name', '{"plugins":[{"type":"a"}]}', 'f.conflist: name: missing'],
    ['a name that is a number', text({ name: 1 }), 'f.conflist: name: must be a string'],
    ['a name with a slash', text({ name: 'a/b' }), 'f.conflist: name: "a/b" must start with a letter or digit'],
    ['an empty name', text({ name: '' }), 'f.conflist: name: "" must start'],
    ['a version from the future', text({ cniVersion: '9.0.0' }), 'f.conflist: cniVersion: "9.0.0" is not supported'],
    ['a version that is none', text({ cniVersion: 'one' }), 'f.conflist: cniVersion: "one" is not a version'],
    ['a version that is a number', text({ cniVersion: 1 }), 'f.conflist: cniVersion: must be a string'],
    ['versions that are no list', text({ cniVersions: '1.0.0' }), 'f.conflist: cniVersions: must be a list'],
    ['a bad entry of versions', text({ cniVersions: ['x'] }), 'f.conflist: cniVersions[0]: "x" is not a version'],
    [
      'only unknown versions',
      JSON.stringify({ name: 'n', cniVersions: ['2.0.0'], plugins: [{ type: 'a' }] }),
      'f.conflist: cniVersions: "2.0.0" is not supported',
    ],
    ['no plugins', '{"name":"n"}', 'f.conflist: plugins: the network has no plugins'],
    ['an empty list of plugins', text({ plugins: [] }), 'f.conflist: plugins: the list is empty'],
    ['plugins that are an object', text({ plugins: {} }), 'f.conflist: plugins: must be a list'],
    ['inlined plugins alone, with none', '{"name":"n","loadOnlyInlinedPlugins":true}', 'f.conflist: plugins: missing'],
    ['a plugin that is a string', text({ plugins: ['bridge'] }), 'f.conflist: plugins[0]: must be an object'],
    ['a plugin without type', text({ plugins: [{ type: 'a' }, {}] }), 'f.conflist: plugins[1].type: missing'],
    ['an empty type', text({ plugins: [{ type: '' }] }), 'f.conflist: plugins[0].type: must be a non-empty string'],
    [
      'a type with a path',
      text({ plugins: [{ type: '../sh' }] }),
      'f.conflist: plugins[0].type: "../sh" must be the name',
    ],
    [
      'a capability that is no flag',
      text({ plugins: [{ type: 'a', capabilities: { portMappings: 'yes' } }] }),
      'f.conflist: plugins[0].capabilities.portMappings: must be true or false',
    ],
    [
      'disableCheck that is a number',
      text({ disableCheck: 1 }),
      'f.conflist: disableCheck: must be true or false, not 1',
    ],
    ['disableGC that is text', text({ disableGC: 'no' }), 'f.conflist: disableGC: must be true or false, not "no"'],
  ])('%s', (_, content, message) => {
    expect(() => parseConflist('f.conflist', content)).toThrow(message);
  });
});

describe('what a conflist says', () => {
  it('keeps every key that belongs to a plugin', () => {
    const plugin = { type: 'bridge', bridge: 'br0', ipam: { type: 'host-local' }, capabilities: { ips: true } };
    expect(parseConflist('f', text({ plugins: [plugin] })).plugins).toEqual([plugin]);
  });
  it('takes flags as booleans, or as the strings that libcni also takes', () => {
    const list = parseConflist('f', text({ disableCheck: 'true', disableGC: true }));
    expect([list.disableCheck, list.disableGC]).toEqual([true, true]);
    expect(parseConflist('f', text({ disableCheck: 'False' })).disableCheck).toBe(false);
  });
  it('is a chain of one when it is a .conf', () => {
    expect(parseSingleConf('f.conf', '{"cniVersion":"0.3.1","name":"n","type":"ptp"}')).toMatchObject({
      name: 'n',
      cniVersion: '0.3.1',
      plugins: [{ type: 'ptp' }],
    });
  });
  it('a list in a .conf is refused with the hint where it belongs', () => {
    expect(() => parseSingleConf('/x/10.conf', text({}))).toThrow(
      '/x/10.conf: type: missing (a list of plugins belongs',
    );
  });
});

describe('version negotiation', () => {
  it.each<[string | undefined, string[] | undefined, string | undefined]>([
    [undefined, undefined, '0.1.0'],
    ['0.4.0', undefined, '0.4.0'],
    ['0.4.0', ['1.0.0', '1.1.0'], '1.1.0'],
    ['1.0.0', ['0.3.1'], '1.0.0'],
    [undefined, ['1.1.0', '2.0.0'], '1.1.0'],
    [undefined, ['2.0.0', '3.0.0'], undefined],
    ['0.3.1', ['2.0.0'], '0.3.1'],
  ])('cniVersion %s with cniVersions %j settles on %s', (one, many, settled) => {
    expect(negotiateVersion(one, many)).toBe(settled);
  });
});

describe('the conf dir', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'nodelet-conf-'));
  });
  afterEach(() => rm(dir, { recursive: true }));
  const put = (name: string, content: string): Promise<void> => writeFile(join(dir, name), content);

  it('gives the first file in byte order, whatever its extension', async () => {
    await put('20-b.conflist', text({ name: 'b' }));
    await put('10-a.conf', '{"name":"a","cniVersion":"1.0.0","type":"x"}');
    await put('05-readme.txt', 'no configuration');
    await put('Z.json', '{"name":"z","cniVersion":"1.0.0","type":"x"}');
    expect(await loadNetwork(dir)).toMatchObject({ file: join(dir, '10-a.conf'), list: { name: 'a' }, skipped: [] });
  });
  it.each([
    ['capitals before small letters', ['B.conflist', 'a.conflist']],
    ['digits one by one', ['10-a.conflist', '9-b.conflist']],
    ['a dash before a dot, a dot before a letter', ['a-b.conflist', 'a.b.conflist', 'ab.conflist']],
    ['letters with accents after all of ASCII', ['z.conflist', 'é.conflist']],
    // As UTF-16, which is how JavaScript compares, a surrogate (U+D83D) comes before U+FF5E; as bytes it comes after.
    ['what is beyond 16 bits last', ['\uff5e.conflist', '\u{1f600}.conflist']],
  ])('is sorted by bytes, as Go sorts strings: %s', async (_what, names) => {
    for (const name of names.toReversed()) await put(name, text({}));
    expect(await confFiles(dir)).toEqual(names.map((name) => join(dir, name)));
    expect((await loadNetwork(dir))?.file).toBe(join(dir, names[0] ?? ''));
  });
  it('adds more plugins of a network in the same order', async () => {
    await mkdir(join(dir, 'net'));
    for (const name of ['a', 'B', '10', '9']) await writeFile(join(dir, 'net', `${name}.conf`), `{"type":"${name}"}`);
    await put('net.conflist', text({}));
    const { plugins } = await loadConflist(join(dir, 'net.conflist'));
    expect(plugins.map(({ type }) => type)).toEqual(['bridge', '10', '9', 'B', 'a']);
  });
  it('skips a broken file, and reports it', async () => {
    await put('10-bad.conflist', '{');
    await put('20-good.conflist', text({}));
    const loaded = await loadNetwork(dir);
    expect(loaded?.list.name).toBe('net');
    expect(loaded?.skipped.map((problem) => problem.file)).toEqual([join(dir, '10-bad.conflist')]);
  });
  it('rejects with the first problem when no file is usable', async () => {
    await put('10-bad.conflist', text({ plugins: [{}] }));
    await put('20-bad.conflist', '{');
    await expect(loadNetwork(dir)).rejects.toThrow(`${join(dir, '10-bad.conflist')}: plugins[0].type: missing`);
  });
  it('is empty when it does not exist', async () => {
    expect(await loadNetwork(join(dir, 'missing'))).toBeUndefined();
  });
  it('adds the plugins of the directory named as the network, unless loadOnlyInlinedPlugins is set', async () => {
    await mkdir(join(dir, 'net'));
    await writeFile(join(dir, 'net', '10-more.conf'), '{"type":"tuning"}');
    await put('10-net.conflist', text({}));
    const types = async (): Promise<string[]> =>
      (await loadConflist(join(dir, '10-net.conflist'))).plugins.map((plugin) => plugin.type);
    expect(await types()).toEqual(['bridge', 'tuning']);
    await put('10-net.conflist', text({ loadOnlyInlinedPlugins: true }));
    expect(await types()).toEqual(['bridge']);
    await put('10-net.conflist', '{"name":"net","cniVersion":"1.1.0"}');
    expect(await types()).toEqual(['tuning']);
  });
});
