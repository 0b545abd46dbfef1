// The process that dies in the middle of an ADD: reads what to attach from standard input and attaches it.

import { text } from 'node:stream/consumers';
import { CniRuntime } from '../../../cni/runtime.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { PLUGIN_DIR } from './harness.ts';

const job = JSON.parse(await text(process.stdin));
const runtime = new CniRuntime({
  binDirs: [job.network.binDir, PLUGIN_DIR],
  cacheDir: job.network.cacheDir,
  tracer: new Tracer(),
  clock: systemClock,
});
await runtime.add(job.list, job.attachment);
