// The volume side of an agent by itself, for full-node.test.ts: a process that mounts the ConfigMaps and Secrets of as many
// pods as requested on stdin, by the real client, follows them, and says on stdout what it did and what memory that took. The only
// part that is not real is the mount table: Secrets lie in plain directories.
//
//   node full-node-program.ts SERVER ROOT PODS
//
// Prints {"mounted": PODS} when all are up, and {"heapBytes"} after a garbage collection for each line on stdin.

import { createInterface } from 'node:readline';
import { createApiObjects } from '../../../../agent/api/api-objects.ts';
import { createPodVolumes } from '../../../../agent/volumes/pod-volumes.ts';
import { ApiClient } from '../../../../client/api.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { SpanRing, Tracer } from '../../../../lib/trace.ts';
import { fullNodePod } from './full-node-pods.ts';
import { FakeMounter } from './support.ts';

const [server = '', root = '', count = '0'] = process.argv.slice(2);
const tracer = new Tracer();
const ring = new SpanRing(2000);
tracer.subscribe(ring.push);
const client = new ApiClient({ server }, { tracer, clock: systemClock, userAgent: 'full-node' });
const objects = createApiObjects({ client, clock: systemClock });
const volumes = createPodVolumes({
  rootDir: root,
  mounter: new FakeMounter(),
  objects,
  followed: objects.followed,
  tracer,
  clock: systemClock,
  recorder: { event: (_object, _type, reason, message) => void process.stderr.write(`${reason}: ${message}\n`) },
});
const pods = Array.from({ length: Number(count) }, (_, index) => fullNodePod(index));
await Promise.all(pods.map((pod) => volumes.mountAll(pod)));
process.stdout.write(`${JSON.stringify({ mounted: pods.length, spans: ring.list().length })}\n`);
for await (const _line of createInterface({ input: process.stdin })) {
  globalThis.gc?.();
  // A second one, for what the first found to be garbage outside the heap.
  await systemClock.sleep(50);
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  process.stdout.write(`${JSON.stringify({ bytes: heapUsed + arrayBuffers })}\n`);
}
process.exit(0);
