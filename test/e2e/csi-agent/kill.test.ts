// The agent is killed with SIGKILL around every call that it makes to a real driver. Whether its pod still exists
// afterwards or not: nothing stays mounted, staged or doubled, and no data is lost. Needs root and loop devices.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pod } from '../../unit/agent/volumes/support.ts';
import type { Moment } from './proxy.ts';
import { type Agent, Stand } from './stand.ts';

const CALLS = ['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'] as const;
const user = (name: string, claimName: string, block = false) =>
  pod(
    {
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
      containers: [
        {
          name: 'c',
          ...(block
            ? { volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] }
            : { volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
        },
      ],
    },
    { name, uid: `uid-${name}` },
  );

let stand: Stand;
beforeAll(async () => {
  stand = await Stand.create();
  await stand.provide(
    [user('web', 'claim'), user('db', 'claim'), user('raw', 'block', true)],
    [{ name: 'claim' }, { name: 'block', block: true }],
  );
});
afterAll(async () => {
  await stand.close();
});

const mountOf = (name: string) => join(stand.rootDir, `pods/uid-${name}/volumes/kubernetes.io~csi/pv-claim/mount`);

/** A volume is unstaged after its last pod's is taken down, in the agent's own time. */
const unstaged = (): Promise<void> => expect.poll(() => stand.leftovers()).toEqual([]);

async function expectNothingLeft(): Promise<void> {
  expect(await stand.mounts()).toEqual([]);
  // A process that opens a new device, as udev does, keeps it for a moment.
  await expect.poll(() => stand.loops()).toEqual([]);
  expect(await stand.leftovers()).toEqual([]);
  expect(stand.proxy.overlaps).toBe(0);
}

/** Kills the agent at one moment of one call, made because of `line`. */
async function killAt(agent: Agent, method: string, moment: Moment, line: string): Promise<void> {
  const reached = Promise.withResolvers<void>();
  stand.proxy.hook = async (at, when) => {
    if (at !== method || when !== moment) return;
    reached.resolve();
    await agent.kill();
  };
  agent.tell(line);
  await reached.promise;
  await agent.kill();
  stand.proxy.hook = async () => undefined;
  // What the driver was at comes to its end without the agent.
  await stand.proxy.quiet();
}

let round = 0;
describe.each(CALLS)('killed at %s', (method) => {
  describe.each<Moment>(['before', 'after'])('%s the driver has done it', (moment) => {
    const starts = method === 'NodeStageVolume' || method === 'NodePublishVolume';

    test('a pod that still exists gets its volume, with what was in it', async () => {
      round++;
      const first = await stand.agent();
      first.tell('mount web');
      await first.says(/^mounted web/);
      await writeFile(join(mountOf('web'), 'precious'), `round ${round}`);
      if (starts) {
        first.tell('unmount web');
        await first.says(/^unmounted web/);
      }
      await killAt(first, method, moment, starts ? 'mount web' : 'unmount web');

      const second = await stand.agent();
      second.tell('mount web');
      await second.says(/^mounted web/);
      expect(await readFile(join(mountOf('web'), 'precious'), 'utf8')).toBe(`round ${round}`);
      // Once staged, once published: nothing is doubled.
      expect((await stand.mounts()).filter((path) => path.startsWith('/pods'))).toHaveLength(1);
      expect((await stand.mounts()).filter((path) => path.endsWith('/globalmount'))).toHaveLength(1);
      await expect.poll(() => stand.loops()).toHaveLength(1);
      second.tell('unmount web');
      await second.says(/^unmounted web/);
      await unstaged();
      await second.kill();
      await expectNothingLeft();
    });

    test('of a pod that was deleted nothing is left', async () => {
      const first = await stand.agent();
      if (!starts) {
        first.tell('mount web');
        await first.says(/^mounted web/);
      }
      await killAt(first, method, moment, starts ? 'mount web' : 'unmount web');

      const second = await stand.agent();
      second.tell('unmount web');
      await second.says(/^unmounted web/);
      await unstaged();
      await second.kill();
      await expectNothingLeft();
    });

    test('a device is given again or given back', async () => {
      const first = await stand.agent();
      if (!starts) {
        first.tell('mount raw');
        await first.says(/^mounted raw/);
      }
      await killAt(first, method, moment, starts ? 'mount raw' : 'unmount raw');

      const second = await stand.agent();
      second.tell('mount raw');
      await second.says(/^mounted raw/);
      expect(existsSync(join(stand.rootDir, 'pods/uid-raw/volumeDevices/kubernetes.io~csi/pv-block'))).toBe(true);
      second.tell('unmount raw');
      await second.says(/^unmounted raw/);
      await unstaged();
      await second.kill();
      await expectNothingLeft();
    });
  });
});

test('killed while two pods share a volume, the other one keeps it', async () => {
  const first = await stand.agent();
  first.tell('mount web');
  await first.says(/^mounted web/);
  first.tell('mount db');
  await first.says(/^mounted db/);
  await writeFile(join(mountOf('db'), 'shared'), 'both');
  await killAt(first, 'NodeUnpublishVolume', 'after', 'unmount web');

  const second = await stand.agent();
  second.tell('unmount web');
  await second.says(/^unmounted web/);
  expect(await readFile(join(mountOf('db'), 'shared'), 'utf8')).toBe('both');
  expect((await stand.mounts()).filter((path) => path.endsWith('/globalmount'))).toHaveLength(1);
  second.tell('unmount db');
  await second.says(/^unmounted db/);
  await unstaged();
  await second.kill();
  await expectNothingLeft();
});

test('killed at any time at all, however often, the next one completes it and takes it down', async () => {
  for (let i = 0; i < 12; i++) {
    const agent = await stand.agent();
    agent.tell('mount web');
    agent.tell('mount db');
    await new Promise((resolve) => setTimeout(resolve, i * 17));
    agent.tell('unmount web');
    await new Promise((resolve) => setTimeout(resolve, (i % 4) * 13));
    await agent.kill();
    await stand.proxy.quiet();
  }
  const last = await stand.agent();
  last.tell('mount web');
  await last.says(/^mounted web/);
  await writeFile(join(mountOf('web'), 'after'), 'all');
  last.tell('unmount web');
  last.tell('unmount db');
  await last.says(/^unmounted web/);
  await last.says(/^unmounted db/);
  await unstaged();
  await last.kill();
  await expectNothingLeft();
});
