// Programs that hang in the kernel, as those of a mount whose server is gone do: a frozen file system holds every writer in
// a call that no signal ends. They must block no other program, and their callers only until the time limit.

import { chmod, mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import { ABANDON_AFTER_MS, type Exec, exec, execOk } from '../../../lib/exec.ts';
import { createExecHelper } from '../../../lib/exec-helper.ts';
import { mountAt } from '../../../lib/mountinfo.ts';
import { Tracer } from '../../../lib/trace.ts';

const helper = createExecHelper();
let root = '';
let frozen = '';
let target = '';
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-hanging-'));
  frozen = join(root, 'frozen');
  target = join(root, 'target');
  for (const directory of [frozen, target, join(root, 'bin')]) await mkdir(directory);
  const image = join(root, 'image');
  await writeFile(image, '');
  await truncate(image, 16 * 1024 * 1024);
  await execOk('mkfs.ext4', ['-q', '-F', image]);
  await execOk('mount', ['-o', 'loop', image, frozen]);
  await execOk('fsfreeze', ['--freeze', frozen]);
  // mount(8) of a source that hangs, and of every other.
  const program = `#!/bin/sh\ncase "$*" in *dead-server*) exec touch ${frozen}/by-mount ;; *) exec /bin/mount "$@" ;; esac\n`;
  await writeFile(join(root, 'bin/mount'), program);
  await chmod(join(root, 'bin/mount'), 0o755);
});
afterAll(async () => {
  await execOk('fsfreeze', ['--unfreeze', frozen]);
  helper.close();
  // What hung ends now, and holds the file system until it has.
  await vi.waitFor(() => execOk('umount', [frozen]), { timeout: 300_000, interval: 100 });
  await rm(root, { recursive: true });
});

const runners: readonly (readonly [string, Exec])[] = [
  ['through the helper', helper.exec],
  ['started directly', exec],
];

/** Whether a program that touches this file is in a call that no signal ends. */
async function isBlocked(file: string): Promise<boolean> {
  const { stdout } = await exec('ps', ['-C', 'touch', '-o', 'stat=,args=']);
  return new RegExp(`^D.* ${file}$`, 'm').test(stdout);
}

describe.each(runners)('a program that no signal ends, %s', (how, run) => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test('is given up after its time limit, and others run meanwhile', async () => {
    // The time passes when the test wants it: however long the program takes to come as far as the call.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const limitMs = 3_600_000;
    const file = join(frozen, `touched-${how.replaceAll(' ', '-')}`);
    const hanging = run('touch', [file], { timeoutMs: limitMs });
    while (!(await isBlocked(file)));
    for (let index = 0; index < 5; index++) {
      expect(await run('sh', ['-c', 'cat; exit 4'], { stdin: 'text' })).toMatchObject({ code: 4, stdout: 'text' });
    }
    await vi.advanceTimersByTimeAsync(limitMs + ABANDON_AFTER_MS);
    expect(await hanging).toMatchObject({ code: null, signal: 'SIGKILL', timedOut: true });
    expect(await isBlocked(file)).toBe(true);
  });

  test('as the mount of one pod leaves the mounts of another alone', async () => {
    const mounter = createLinuxMounter({
      tracer: new Tracer(),
      exec: (file, args, options) =>
        run(file, args, { ...options, env: { ...process.env, PATH: `${root}/bin:${process.env['PATH']}` } }),
    });
    let ended = false;
    const over = (): void => {
      ended = true;
    };
    mounter.mount({ source: 'dead-server:/', target: '/mnt', options: [] }).then(over, over);
    await mounter.mount({ fsType: 'tmpfs', source: 'tmpfs', target, options: ['size=1m'] });
    expect(mountAt(await mounter.list(), target)?.fsType).toBe('tmpfs');
    await mounter.unmount(target);
    expect(mountAt(await mounter.list(), target)).toBeUndefined();
    expect(ended).toBe(false);
  });
});
