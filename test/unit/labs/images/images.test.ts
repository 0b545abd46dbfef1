import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadDefinitions } from '../../../../labs/images/build.ts';
import { parseImageDefinition } from '../../../../labs/images/definition.ts';
import { readElfNeeds } from '../../../../labs/images/elf.ts';
import { registryOf } from '../../../../labs/images/import.ts';
import { buildOciImage } from '../../../../labs/images/oci.ts';
import { parseDepends, type UnpackedPackage } from '../../../../labs/images/packages.ts';
import { type TarEntry, writeTar } from '../../../../labs/images/tar.ts';
import { ImageTree, isTaken, mergedPath } from '../../../../labs/images/tree.ts';
import { exec, execOk } from '../../../../lib/exec.ts';

const MINIMAL = 'names: [docker.io/library/x:stable]\n';

describe('an image definition', () => {
  it('fills in defaults', () => {
    expect(parseImageDefinition(MINIMAL, 'x.yaml')).toMatchObject({
      names: ['docker.io/library/x:stable'],
      packages: [],
      cmd: [],
      workingDir: '/',
      user: '',
    });
  });

  it.each([
    ['names: []', 'names: needs at least one name'],
    ['names: [nginx]', 'names[0]: "nginx" must be a full name'],
    [`${MINIMAL}ports: [80]`, 'ports: unknown field'],
    [`${MINIMAL}files: [{path: etc/x, content: a}]`, 'files[0].path: must be an absolute path'],
    [`${MINIMAL}files: [{path: /etc/x, content: a, mode: 644}]`, 'files[0].mode: must be a string'],
    [`${MINIMAL}files: [{path: /etc/x, content: a, mode: "8"}]`, 'files[0].mode: must be an octal mode'],
    [`${MINIMAL}packages: [{name: a, takes: [/x]}]`, 'packages[0].takes: unknown field'],
    [`${MINIMAL}users: [{name: a, id: x}]`, 'users[0].id: must be a uid'],
    [`${MINIMAL}cmd: sh`, 'cmd: must be a list'],
  ])('that says "%s" is refused with the field', (text, message) => {
    expect(() => parseImageDefinition(text, 'x.yaml')).toThrow(`x.yaml: ${message}`);
  });

  it('of every lab image is right', async () => {
    const names = (await loadDefinitions()).flatMap((image) => image.definition.names);
    expect(names).toEqual(
      expect.arrayContaining([
        'docker.io/library/nginx:stable',
        'docker.io/library/busybox:stable',
        'docker.io/library/busybox:latest',
        'registry.k8s.io/pause:3.9',
      ]),
    );
  });
});

describe('names', () => {
  it.each([
    ['docker.io/library/nginx:stable', 'registry-1.docker.io'],
    ['registry.k8s.io/pause:3.9', 'registry.k8s.io'],
    ['localhost.local:5000/x:1', 'localhost.local:5000'],
  ])('of %s are served by %s', (name, registry) => {
    expect(registryOf(name)).toBe(registry);
  });

  it.each([
    [
      'libc6 (>= 2.36), libpcre2-8-0 (>= 10.22) | libpcre3, nginx-common:any',
      ['libc6', 'libpcre2-8-0', 'nginx-common'],
    ],
    [',', []],
  ])('of dependencies are read from "%s"', (field, names) => {
    expect(parseDepends(field)).toEqual(names);
  });

  it.each([
    ['/lib/x86_64-linux-gnu/libc.so.6', '/usr/lib/x86_64-linux-gnu/libc.so.6'],
    ['/bin/sh', '/usr/bin/sh'],
    ['/sbin', '/usr/sbin'],
    ['/library/x', '/library/x'],
    ['/usr/lib/x', '/usr/lib/x'],
  ])('of paths are those of merged /usr: %s is %s', (path, merged) => {
    expect(mergedPath(path)).toBe(merged);
  });

  it.each([
    ['/usr/sbin/nginx', { name: 'nginx', take: ['/usr/sbin'] }, true],
    ['/usr/sbinx/nginx', { name: 'nginx', take: ['/usr/sbin'] }, false],
    ['/usr/share/doc/nginx/copyright', { name: 'nginx', take: ['/usr/sbin'] }, true],
    ['/usr/share/doc/nginx/changelog.gz', { name: 'nginx' }, false],
    ['/etc/nginx/nginx.conf', { name: 'nginx' }, true],
  ])('of files: %s with %o is taken: %s', (path, spec, expected) => {
    expect(isTaken(path, spec)).toBe(expected);
  });
});

describe('an archive', () => {
  const entry = (path: string, text: string): TarEntry => ({
    type: 'file',
    path,
    mode: 0o640,
    uid: 1,
    gid: 2,
    data: Buffer.from(text),
  });

  it('is read by tar with every name, mode and target, however long', async () => {
    const long = `deep/${'x'.repeat(90)}/${'y'.repeat(90)}/file`;
    const archive = writeTar([
      { type: 'directory', path: 'etc', mode: 0o755, uid: 0, gid: 0 },
      entry('etc/a', 'hello'),
      entry(long, 'deep'),
      { type: 'link', path: 'l', mode: 0o777, uid: 0, gid: 0, target: 'etc/a' },
    ]);
    const listed = await execOk('tar', ['--numeric-owner', '-tvf', '-'], { stdin: archive });
    expect(listed.split('\n').map((line) => line.replace(/\s+/g, ' '))).toEqual([
      expect.stringMatching(/^drwxr-xr-x 0\/0 0 .* etc\/$/),
      expect.stringMatching(/^-rw-r----- 1\/2 5 .* etc\/a$/),
      expect.stringMatching(new RegExp(`^-rw-r----- 1/2 4 .* ${long}$`)),
      expect.stringMatching(/^lrwxrwxrwx 0\/0 0 .* l -> etc\/a$/),
      '',
    ]);
    expect((await exec('tar', ['-xOf', '-', long], { stdin: archive })).stdout).toBe('deep');
  });

  it('of the same image is the same bytes, and its digests are those of its blobs', async () => {
    const definition = parseImageDefinition(
      'names: [docker.io/library/x:stable, docker.io/library/x:latest]\ncmd: [sh]\nstopSignal: SIGQUIT\nexposedPorts: [80/tcp]\n',
      'x.yaml',
    );
    const layer = writeTar([entry('a', 'b')]);
    const image = buildOciImage(definition, layer, 'amd64');
    expect(buildOciImage(definition, layer, 'amd64').archive.equals(image.archive)).toBe(true);
    const read = (path: string) => execOk('tar', ['-xOf', '-', path], { stdin: image.archive });
    const index = JSON.parse(await read('index.json'));
    expect(
      index.manifests.map(
        (each: { annotations: Record<string, string> }) => each.annotations['io.containerd.image.name'],
      ),
    ).toEqual(['docker.io/library/x:stable', 'docker.io/library/x:latest', `docker.io/library/x@${image.digest}`]);
    const manifestText = await read(`blobs/${image.digest.replace(':', '/')}`);
    expect(`sha256:${createHash('sha256').update(manifestText).digest('hex')}`).toBe(image.digest);
    const manifest = JSON.parse(manifestText);
    const config = JSON.parse(await read(`blobs/${manifest.config.digest.replace(':', '/')}`));
    expect(config.config).toMatchObject({ Cmd: ['sh'], StopSignal: 'SIGQUIT', ExposedPorts: { '80/tcp': {} } });
    expect(config.rootfs.diff_ids).toEqual([`sha256:${createHash('sha256').update(layer).digest('hex')}`]);
  });
});

describe('what a program needs', () => {
  it('is read from the file: this Node’s own interpreter and libraries', async () => {
    const needs = readElfNeeds(await readFile(process.execPath));
    expect(needs?.interpreter).toMatch(/\/ld-linux/);
    expect(needs?.needed).toContain('libc.so.6');
  });

  it('is nothing for a file that is no program', () => {
    expect(readElfNeeds(Buffer.from('#!/bin/sh\n'.repeat(20)))).toBeUndefined();
    expect(readElfNeeds(Buffer.alloc(3))).toBeUndefined();
  });
});

describe('the file tree of an image', () => {
  let work: string;
  beforeEach(async () => {
    work = await mkdtemp(join(tmpdir(), 'nodelet-tree-'));
  });
  afterEach(() => rm(work, { recursive: true, force: true }));

  async function unpacked(
    name: string,
    files: Record<string, string | Buffer>,
    depends: readonly string[] = [],
    links: Record<string, string> = {},
  ): Promise<UnpackedPackage> {
    const directory = join(work, name);
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(directory, path)), { recursive: true });
      await writeFile(join(directory, path), content);
    }
    for (const [path, target] of Object.entries(links)) {
      await mkdir(dirname(join(directory, path)), { recursive: true });
      await symlink(target, join(directory, path));
    }
    return { name, directory, depends };
  }

  function source(...packages: UnpackedPackage[]) {
    return {
      get: async (name: string): Promise<UnpackedPackage> => {
        const found = packages.find((each) => each.name === name);
        if (found === undefined) throw new Error(`no package ${name}`);
        return found;
      },
    };
  }

  it('takes a program’s libraries from the packages it depends on, through their links', async () => {
    const program = await readFile(process.execPath);
    const needs = readElfNeeds(program);
    const libraries = (needs?.needed ?? []).filter((name) => name !== 'libc.so.6' && !name.startsWith('ld-linux'));
    const libs = Object.fromEntries(libraries.map((name) => [`usr/lib/x/${name}`, 'library']));
    const tree = new ImageTree(
      source(
        await unpacked('app', { 'usr/bin/app': program }, ['tools', 'libc6', 'libmore']),
        await unpacked('tools', {}),
        await unpacked('libmore', libs),
        await unpacked('libc6', { 'lib/x/libc-2.36.so': 'c', 'lib/x/ld-2.36.so': 'ld' }, [], {
          'lib/x/libc.so.6': 'libc-2.36.so',
          [`lib/x/${(needs?.interpreter ?? '').split('/').at(-1)}`]: 'ld-2.36.so',
        }),
      ),
    );
    await tree.addPackage({ name: 'app' });
    await tree.resolveLibraries();
    expect(tree.has('/usr/lib/x/libc.so.6')).toBe(true);
    expect(tree.has('/usr/lib/x/libc-2.36.so')).toBe(true);
    for (const name of libraries) expect(tree.has(`/usr/lib/x/${name}`)).toBe(true);
    // The kernel looks for the interpreter where the program says.
    expect(tree.has(mergedPath(needs?.interpreter ?? ''))).toBe(true);
  });

  it('names the program, the package and the library when no package has it', async () => {
    const tree = new ImageTree(source(await unpacked('app', { 'usr/bin/app': await readFile(process.execPath) })));
    await tree.addPackage({ name: 'app' });
    await expect(tree.resolveLibraries()).rejects.toThrow(
      /^\/usr\/bin\/app of app needs .*, which none of the packages/,
    );
  });

  it('has users, base directories and the definition’s own files, which win over packages', async () => {
    const definition = parseImageDefinition(
      `${MINIMAL}users: [{name: web, id: 33}]\nfiles: [{path: /etc/app.conf, content: mine, user: web}]\nlinks: {/var/log/x: /dev/stdout}\n`,
      'x.yaml',
    );
    const tree = new ImageTree(source(await unpacked('app', { 'etc/app.conf': 'theirs' })));
    await tree.addPackage({ name: 'app' });
    await tree.addDefinition(definition);
    const entries = new Map(tree.entries().map((each) => [each.path, each]));
    expect(entries.get('etc/app.conf')).toMatchObject({ uid: 33, data: Buffer.from('mine') });
    expect(entries.get('tmp')).toMatchObject({ type: 'directory', mode: 0o1777 });
    expect(entries.get('bin')).toMatchObject({ type: 'link', target: 'usr/bin' });
    expect(entries.get('var/log/x')).toMatchObject({ type: 'link', target: '/dev/stdout' });
    const passwd = entries.get('etc/passwd');
    expect(passwd?.type === 'file' ? passwd.data.toString() : '').toContain('web:x:33:33:');
  });

  it('refuses a file of a user that is not there, and a path that a package does not have', async () => {
    const tree = new ImageTree(source(await unpacked('app', { 'etc/x': 'x' })));
    const definition = parseImageDefinition(`${MINIMAL}directories: [{path: /x, user: nobody2}]`, 'x.yaml');
    await expect(tree.addDefinition(definition)).rejects.toThrow('no user "nobody2"');
    await expect(tree.addPackage({ name: 'app', take: ['/usr/bin/app'] })).rejects.toThrow('has no /usr/bin/app');
  });
});
