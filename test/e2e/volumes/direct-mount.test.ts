// A tmpfs that is mounted without a program must be the very one that mount(8) makes.

import { mkdtemp, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import { createExecHelper } from '../../../lib/exec-helper.ts';
import { mountAt } from '../../../lib/mountinfo.ts';
import { Tracer } from '../../../lib/trace.ts';

const programs: string[] = [];
const helper = createExecHelper();
const tracer = new Tracer();
let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-direct-mount-'));
});
afterAll(async () => {
  helper.close();
  await rmdir(directory);
});

test('a tmpfs mounted directly has the options of one that mount(8) mounts, and runs no program', async () => {
  const seen = [];
  for (const direct of [true, false]) {
    const mounter = createLinuxMounter({
      tracer,
      exec: (file, args, options) => {
        programs.push(file);
        return helper.exec(file, args, options);
      },
      ...(direct ? { direct: helper.mount } : {}),
    });
    programs.length = 0;
    await mounter.mount({ fsType: 'tmpfs', source: 'tmpfs', target: directory, options: ['size=1048576'] });
    expect(programs).toEqual(direct ? [] : ['mount']);
    const { fsType, options, superOptions, source } = mountAt(await mounter.list(), directory) ?? {};
    seen.push({ fsType, options, superOptions, source });
    await mounter.unmount(directory);
    expect(mountAt(await mounter.list(), directory)).toBeUndefined();
  }
  expect(seen[0]).toMatchObject({ fsType: 'tmpfs', superOptions: expect.arrayContaining(['size=1024k']) });
  // The kernel's own default differs from what util-linux adds, if anything; nothing must.
  expect(seen[0]).toEqual(seen[1]);
});

test('what cannot be mounted directly fails with the words of mount(8)', async () => {
  const mounter = createLinuxMounter({ tracer, exec: helper.exec, direct: helper.mount });
  const target = join(directory, 'missing');
  await rm(target, { force: true });
  const mounting = mounter.mount({ fsType: 'tmpfs', source: 'tmpfs', target, options: [] });
  await expect(mounting).rejects.toThrow(
    /mount failed: exit status 32\nMounting command: mount\nMounting arguments: .*\nOutput: .*mount point does not exist/,
  );
});
