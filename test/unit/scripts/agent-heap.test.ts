import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { execOk } from '../../../lib/exec.ts';

const TREE = fileURLToPath(new URL('../../..', import.meta.url));
const GIB = 1024 ** 3;
let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-agent-heap-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** The limit (MiB) on a machine with this much memory, these lines of /proc/self/cgroup and these cgroup files. */
async function heapMiB(memory: number, cgroups: string, files: Readonly<Record<string, string>> = {}): Promise<number> {
  const all = {
    'proc/meminfo': `MemTotal:       ${memory / 1024} kB\nMemFree: 1 kB\n`,
    'proc/self/cgroup': cgroups,
    ...files,
  };
  for (const [path, text] of Object.entries(all)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const script = `. ${join(TREE, 'scripts/agent-heap')}; agent_heap_mib ${join(root, 'proc')} ${join(root, 'sys')}`;
  return Number(await execOk('/bin/sh', ['-euc', script]));
}

describe('the limit of the agent’s heap', () => {
  test.each([
    ['a quarter of the memory', 8, 2048],
    ['512 MiB at least', 1, 512],
    ['4 GiB at most', 64, 4096],
  ])('is %s', async (_, gib, expected) => {
    expect(await heapMiB(gib * GIB, '0::/\n')).toBe(expected);
  });

  test.each([
    ['of its own cgroup', '0::/a/b\n', { 'sys/a/b/memory.max': String(4 * GIB) }, 1024],
    ['of a cgroup above', '0::/a/b\n', { 'sys/a/memory.max': String(4 * GIB), 'sys/a/b/memory.max': 'max' }, 1024],
    [
      'of the memory controller of cgroup v1',
      '5:cpu,cpuacct:/x\n4:memory:/a\n0::/\n',
      {
        'sys/memory/a/memory.limit_in_bytes': `${3 * GIB}\n`,
        'sys/memory/memory.limit_in_bytes': '9223372036854771712',
      },
      768,
    ],
  ])('follows the limit %s', async (_, cgroups, files, expected) => {
    expect(await heapMiB(16 * GIB, cgroups, files)).toBe(expected);
  });

  test('is the agent’s alone, and no number in bin/nodelet', async () => {
    const script = await readFile(join(TREE, 'bin/nodelet'), 'utf8');
    expect(script).toContain('--max-old-space-size=$(agent_heap_mib /proc /sys/fs/cgroup)');
    expect(script).not.toMatch(/max-old-space-size=\d/);
  });
});
