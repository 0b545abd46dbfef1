// The ownership of files in a driver's volume: fsGroup, the CSIDriver's fsGroupPolicy and the pod's fsGroupChangePolicy, with
// a real driver and its file systems. Needs root and loop devices.

import { chmod, chown, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CSIDriverSpec } from 'kubernetes-types/storage/v1';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pod } from '../../unit/agent/volumes/support.ts';
import { Stand } from './stand.ts';

const GROUP = 4321;

let stand: Stand;
beforeAll(async () => {
  stand = await Stand.create();
});
afterAll(async () => {
  await stand.close();
});

const user = (name: string, claimName: string, securityContext: object) =>
  pod(
    {
      securityContext,
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
      containers: [{ name: 'c', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
    },
    { name, uid: `uid-${name}` },
  );
const mountOf = (name: string, claim: string) =>
  join(stand.rootDir, `pods/uid-${name}/volumes/kubernetes.io~csi/pv-${claim}/mount`);
/** mode, owner and group. */
const owner = async (path: string) => {
  const { mode, uid, gid } = await stat(path);
  return [(mode & 0o7777).toString(8), uid, gid];
};

const RWO = 'ReadWriteOnce';
test.each<[string, CSIDriverSpec['fsGroupPolicy'], string, string, boolean]>([
  ['plain', undefined, RWO, 'ext4', true],
  ['single', 'ReadWriteOnceWithFSType', RWO, 'ext4', true],
  ['untyped', 'ReadWriteOnceWithFSType', RWO, '', false],
  ['single-pod', 'ReadWriteOnceWithFSType', 'ReadWriteOncePod', 'ext4', true],
  ['file', 'File', RWO, '', true],
  ['none', 'None', RWO, 'ext4', false],
])(
  'claim %s: with policy %s a %s volume of type "%s" is given to the group: %s',
  async (name, policy, mode, fsType, given) => {
    const claim = { name, accessModes: [mode], fsType };
    const driverSpec = policy === undefined ? {} : { fsGroupPolicy: policy };
    await stand.provide([user('first', name, {}), user('second', name, { fsGroup: GROUP })], [claim], driverSpec);
    const agent = await stand.agent();
    agent.tell('mount first');
    await agent.says(/^mounted first$/);
    await writeFile(join(mountOf('first', name), 'file'), 'x', { mode: 0o600 });
    agent.tell('unmount first');
    await agent.says(/^unmounted first$/);
    const before = await mountedOwners(agent, name);
    expect(before).toEqual(
      given
        ? [
            ['2775', 0, GROUP],
            ['660', 0, GROUP],
          ]
        : [
            ['755', 0, 0],
            ['600', 0, 0],
          ],
    );
    // Unstaged too, which the agent does in its own time.
    await expect.poll(() => stand.leftovers()).toEqual([]);
    await agent.kill();
  },
);

/** Of the root and of the file, while pod "second" has the volume. */
async function mountedOwners(agent: Awaited<ReturnType<Stand['agent']>>, name: string) {
  agent.tell('mount second');
  await agent.says(/^mounted second$/);
  const root = mountOf('second', name);
  const owners = [await owner(root), await owner(join(root, 'file'))];
  agent.tell('unmount second');
  await agent.says(/^unmounted second$/);
  return owners;
}

test.each([
  ['OnRootMismatch', ['600', 7, 8]],
  ['Always', ['660', 7, GROUP]],
])(
  'a volume whose root is the group’s already: with fsGroupChangePolicy %s its files are %j',
  async (policy, wanted) => {
    const name = policy.toLowerCase();
    const fsGroup = { fsGroup: GROUP };
    const pods = [user('first', name, fsGroup), user('second', name, { ...fsGroup, fsGroupChangePolicy: policy })];
    await stand.provide(pods, [{ name }]);
    const agent = await stand.agent();
    agent.tell('mount first');
    await agent.says(/^mounted first$/);
    const file = join(mountOf('first', name), 'file');
    await writeFile(file, 'x');
    await chown(file, 7, 8);
    await chmod(file, 0o600);
    agent.tell('unmount first');
    await agent.says(/^unmounted first$/);
    const [root, found] = await mountedOwners(agent, name);
    expect(root).toEqual(['2775', 0, GROUP]);
    expect(found).toEqual(wanted);
    // Unstaged too, which the agent does in its own time.
    await expect.poll(() => stand.leftovers()).toEqual([]);
    await agent.kill();
  },
);
