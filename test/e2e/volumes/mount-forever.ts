// Mounts and unmounts the volumes of one pod over and over until it is killed: the victim of the kill test.

import { spawn } from 'node:child_process';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import { createPodVolumes } from '../../../agent/volumes/pod-volumes.ts';
import { systemClock } from '../../../lib/clock.ts';
import type { Exec } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';
import { FakeObjects, FakeRecorder, podWith, secret } from '../../unit/agent/volumes/support.ts';

/** Programs share this one's output: who waits for the end of that waits for theirs too, when this one is killed. */
const sharingOutput: Exec = (file, args) =>
  new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal, timedOut: false, stdout: '', stderr: '' }));
  });

const tracer = new Tracer();
const objects = new FakeObjects(systemClock);
const volumes = createPodVolumes({
  rootDir: process.argv[2] ?? '',
  mounter: createLinuxMounter({ tracer, exec: sharingOutput }),
  objects,
  tracer,
  clock: systemClock,
  recorder: new FakeRecorder(),
});
const subject = podWith([
  { name: 's', secret: { secretName: 's' } },
  { name: 'e', emptyDir: { medium: 'Memory' } },
]);
process.stdout.write('begun\n');
for (let i = 0; ; i++) {
  objects.secrets.set('s', secret('s', { key: String(i), other: 'x' }));
  await volumes.mountAll(subject);
  objects.secrets.set('s', secret('s', { key: String(-i) }));
  await volumes.update(subject);
  await volumes.unmountAll({ uid: 'uid-1' as PodUID, namespace: 'demo', name: 'web' });
}
