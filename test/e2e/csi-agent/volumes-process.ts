// The agent's volumes in a process of their own, controlled by lines, to be killed at any of them: claims of a pod,
// the real mount table, whatever driver registers itself. Storage objects come from a file, since no API server runs.

import { readFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { CSIDriverSpec } from 'kubernetes-types/storage/v1';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { Claim, PV } from '../../../agent/volumes/claims.ts';
import { CsiVolumes } from '../../../agent/volumes/csi/csi-volumes.ts';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import { createPersistentVolumes } from '../../../agent/volumes/persistent.ts';
import { createPodVolumes } from '../../../agent/volumes/pod-volumes.ts';
import { VolumesInUse } from '../../../agent/volumes/volumes-in-use.ts';
import type { Pod } from '../../../client/types.ts';
import { RegisteredDrivers } from '../../../csi/registered-drivers.ts';
import { createPluginWatcher } from '../../../csi/registration.ts';
import { systemClock as clock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { FakeStorage } from '../../unit/agent/volumes/csi/fake-storage.ts';
import { FakeObjects } from '../../unit/agent/volumes/support.ts';

/** What the test writes into `<root>/world.json`. */
export interface World {
  readonly pods: readonly Pod[];
  readonly claims: readonly Claim[];
  readonly volumes: readonly PV[];
  readonly driver: string;
  /** Of the CSIDriver, over what it has here anyway. */
  readonly driverSpec?: CSIDriverSpec;
}

const rootDir = process.argv[2] ?? '';
const world = JSON.parse(readFileSync(join(rootDir, 'world.json'), 'utf8')) as World;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const storage = new FakeStorage();
for (const claim of world.claims) storage.setClaim(claim);
for (const volume of world.volumes) storage.volumes.set(volume.metadata.name, volume);
const metadata = { name: world.driver, uid: 'driver', resourceVersion: '1' };
storage.drivers.set(world.driver, {
  metadata,
  spec: {
    attachRequired: false,
    podInfoOnMount: true,
    volumeLifecycleModes: ['Persistent', 'Ephemeral'],
    ...world.driverSpec,
  },
});

// It is killed each time; Node writes compiled code only when a process exits by itself.
flushCompileCache();

const tracer = new Tracer();
const mounter = createLinuxMounter({ tracer });
const objects = new FakeObjects(clock);
const recorder = {
  event: (...[, , reason, message]: [unknown, unknown, string, string]) => say(`event ${reason}: ${message}`),
};
const onError = (message: string): void => say(`trouble ${message}`);
const csi = new RegisteredDrivers({
  clock,
  tracer,
  announcer: { announce: async () => undefined, withdraw: async () => undefined },
  onError,
});
const watcher = createPluginWatcher({
  directory: join(rootDir, 'plugins_registry'),
  handlers: { CSIPlugin: csi },
  clock,
  tracer,
  log: (_, message) => say(`log ${message}`),
});
await watcher.start();
const parts = { rootDir, mounter, objects, recorder, clock, tracer };
const volumesOfDrivers = new CsiVolumes({
  ...parts,
  nodeName: 'node-1',
  csi,
  storage,
  inUse: new VolumesInUse(),
  onError,
});
const persistent = createPersistentVolumes({ rootDir, mounter, storage, recorder, csi: volumesOfDrivers });
const volumes = createPodVolumes({ ...parts, persistent: async () => persistent });
say('ready');

for await (const line of createInterface(process.stdin)) {
  const [verb = '', name = ''] = line.split(' ');
  const pod = world.pods.find(({ metadata: { name: of } }) => of === name);
  if (pod === undefined) throw new Error(`there is no pod ${name}`);
  const ref = { ...pod.metadata, uid: pod.metadata.uid as PodUID };
  const work = verb === 'mount' ? volumes.mountAll(pod) : volumes.unmountAll(ref);
  work.then(
    () => say(`${verb}ed ${name}`),
    (error: unknown) => say(`failed ${verb} ${name}: ${error instanceof Error ? error.message : String(error)}`),
  );
}
