// The program in a virtual machine: runs the job's experiment in a lab there, and sends notes, the result and its recordings
// over the serial port.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { INPUT_MOUNT } from '../../../labs/vm/plan.ts';
import { openPort } from '../../../labs/vm/port.ts';
import { UserError } from '../../../lib/errors.ts';
import { execOk } from '../../../lib/exec.ts';
import { createLabWorld } from '../lab/world.ts';
import { runExperiment } from '../runner.ts';
import { JOB_FILE, outcomeMessages, sourceOf, type VmJob, type VmMessage } from './job.ts';

const ALIVE_MS = 30_000;
/** An emulated processor is that much slower; a condition that does not come true costs the more time. */
const EMULATED_PATIENCE = 10;

const write = openPort();
const send = (message: VmMessage): void => write(JSON.stringify(message));
const note = (text: string): void => send({ kind: 'note', text });

const job: VmJob = JSON.parse(await readFile(join(INPUT_MOUNT, JOB_FILE), 'utf8'));
const alive = setInterval(() => send({ kind: 'alive' }), ALIVE_MS);
try {
  const uptime = (await readFile('/proc/uptime', 'utf8')).split(' ')[0];
  note(`${(await execOk('uname', ['-sr'])).trim()}, ${uptime} s after its boot`);
  const isEmulated = (await readFile('/proc/cpuinfo', 'utf8')).includes('QEMU TCG');
  if (job.experiment.world?.csi === true) await execOk('modprobe', ['loop']);
  const outcome = await runExperiment({
    source: sourceOf(job),
    kind: 'vm',
    agent: job.agentName,
    createWorld: () => createLabWorld({ agent: job.agent, images: 'build', say: note }),
    repeat: job.repeat,
    seed: job.seed,
    matrix: new Map(job.matrix),
    signal: new AbortController().signal,
    note,
    patience: isEmulated ? EMULATED_PATIENCE : 1,
  });
  for (const message of outcomeMessages(outcome)) send(message);
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  send({ kind: 'refused', text: error.message });
} finally {
  clearInterval(alive);
}
