// An experiment in a virtual machine: a Debian with systemd and cgroup v2, in it a lab, and in that the same file. The machine
// lasts as long as the run, and nothing of it is left.

import { join } from 'node:path';
import { INPUT_MOUNT } from '../../../labs/vm/plan.ts';
import { runInMachine } from '../../../labs/vm/run.ts';
import { UserError } from '../../../lib/errors.ts';
import { type LabAgent, parseAgent } from '../lab/lab-agent.ts';
import { createLabWorld } from '../lab/world.ts';
import type { ExperimentSource } from '../load.ts';
import { checkOn, checkWorld, type Outcome } from '../runner.ts';
import { JOB_FILE, jobOf, KUBELET_FILE, parseMessage, type VmJob, VmOutput } from './job.ts';

const MINUTE_MS = 60_000;
/** The program in it sends a line twice a minute; before that come the boot and the start of the program. */
const LIMITS = { kvm: { silenceMs: 5 * MINUTE_MS }, tcg: { silenceMs: 20 * MINUTE_MS } };

export interface VmOptions {
  readonly source: ExperimentSource;
  /** "nodelet", or "kubelet=/path" of a program here, which is taken into the machine. */
  readonly agent: string;
  /** For the result: "nodelet" with its version, or "kubelet v1.34.2". */
  readonly agentName: string;
  readonly repeat: number;
  readonly seed: number;
  readonly matrix: ReadonlyMap<string, readonly (string | number)[]>;
  readonly signal: AbortSignal;
  readonly note: (line: string) => void;
}

type Input = NonNullable<Parameters<typeof runInMachine>[0]['input']>;

/** The files that the machine sees. Pure. */
export function inputOf(job: VmJob, agent: LabAgent): Input {
  return new Map([
    [JOB_FILE, { text: JSON.stringify(job) }],
    ...(agent.kind === 'foreign' ? [[KUBELET_FILE, { copyOf: agent.path }] as const] : []),
  ]);
}

/** Rejects with UserError where it cannot be run, was interrupted, or the machine broke off. `run` is a parameter for tests. */
export async function runOnVm(options: VmOptions, run: typeof runInMachine = runInMachine): Promise<Outcome> {
  const { source, matrix, signal, note } = options;
  checkOn(source.experiment, source.file, 'vm');
  const agent = parseAgent(options.agent);
  const job = await jobOf(source, matrix, {
    repeat: options.repeat,
    seed: options.seed,
    agent: agent.kind === 'foreign' ? `kubelet=${join(INPUT_MOUNT, KUBELET_FILE)}` : 'nodelet',
    agentName: options.agentName,
  });
  // What a lab cannot do is refused before a machine is made.
  for (const { experiment } of job.variations)
    checkWorld(createLabWorld({ agent: options.agent, say: note }), experiment, source.file, 'vm');
  const output = new VmOutput();
  const { trouble, console } = await run({
    program: 'cli/experiment/vm/guest.ts',
    input: inputOf(job, agent),
    limits: LIMITS,
    signal,
    say: note,
    onLine: (line) => {
      const message = parseMessage(line);
      if (message.kind === 'note') note(message.text);
      output.add(message);
    },
  });
  if (output.refused !== undefined) throw new UserError(output.refused);
  if (signal.aborted) throw new UserError('interrupted: the virtual machine was ended, and there is no result');
  const outcome = output.outcome();
  if (outcome === undefined || trouble !== undefined)
    throw new UserError(
      `the virtual machine did not come to its end: ${trouble ?? 'the program in it broke off'}; its console ends with\n${console}`,
    );
  return outcome;
}
