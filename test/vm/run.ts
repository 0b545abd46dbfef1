// `npm run test:vm`: boots a Debian with systemd and cgroup v2 in a virtual machine, runs the checks of guest/ in it, then
// experiments on such a machine, and ends with "tests: N passed, N failed, N skipped". docs/vm.md has the rest.

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Accel } from '../../labs/vm/plan.ts';
import { machineCache, runInMachine } from '../../labs/vm/run.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { addTallies, EMPTY, type Tally, tallyLine } from '../../scripts/tally.ts';
import { checkExperiments } from './experiment.ts';
import { chosen, DRIVERS, GROUPS } from './groups.ts';
import { type Message, parseMessage, renderMessage, tallyMessages } from './results.ts';

const MINUTE_MS = 60_000;
/** Under emulation everything takes many times as long, and other work may share the host's cores. */
const LIMITS = { kvm: { runMs: 20 * MINUTE_MS }, tcg: { runMs: 80 * MINUTE_MS } };

const say = (line: string): void => void process.stdout.write(`${line}\n`);

interface Flags {
  readonly accel: Accel | undefined;
  readonly only: string | undefined;
  readonly shell: boolean;
}

function readFlags(): Flags {
  const { values } = parseArgs({
    options: { accel: { type: 'string' }, only: { type: 'string' }, shell: { type: 'boolean', default: false } },
  });
  const { accel, only, shell } = values;
  if (accel !== undefined && accel !== 'kvm' && accel !== 'tcg') throw new UserError('--accel is kvm or tcg');
  const known: readonly string[] = [...GROUPS, ...DRIVERS];
  if (only?.split(',').some((word) => !known.includes(word))) {
    throw new UserError(`--only takes some of ${known.join(', ')}, with commas between them`);
  }
  return { accel, only, shell };
}

/** The checks in one machine. */
async function guestChecks(flags: Flags, signal: AbortSignal): Promise<Tally> {
  const messages: Message[] = [];
  const outcome = await runInMachine({
    ...flags,
    program: 'test/vm/guest/main.ts',
    console: join(await machineCache(), 'console.log'),
    limits: LIMITS,
    signal,
    say: (line) => say(`== ${line}`),
    onLine: (line) => {
      const message = parseMessage(line);
      messages.push(message);
      for (const text of renderMessage(message)) say(text);
    },
  });
  if (flags.shell) return EMPTY;
  const tally = tallyMessages(messages);
  if (outcome.trouble !== undefined) say(`FAILED: the machine: ${outcome.trouble}`);
  if (!messages.some((message) => message.kind === 'end'))
    say(`FAILED: the checks broke off; the console's last words:\n${outcome.console}`);
  const isWhole = outcome.trouble === undefined || tally.failed > 0;
  return isWhole ? tally : addTallies(tally, { passed: 0, failed: 1, skipped: 0 });
}

async function main(): Promise<number> {
  const flags = readFlags();
  const started = performance.now();
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
  const only = flags.only?.split(',') ?? [];
  const inGuest = GROUPS.filter((name) => name !== 'experiment').some((name) =>
    DRIVERS.some((driver) => chosen({ name, driver }, only)),
  );
  let tally = inGuest || flags.shell ? await guestChecks(flags, stop.signal) : EMPTY;
  // The driver makes no difference to them.
  if (!flags.shell && DRIVERS.some((driver) => chosen({ name: 'experiment', driver }, only)))
    tally = addTallies(tally, await checkExperiments(say, stop.signal));
  say(`== done after ${((performance.now() - started) / 1000).toFixed(0)} s`);
  if (flags.shell) return 0;
  say(tallyLine(tally));
  return tally.failed === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  say(`FAILED: ${errorMessage(error)}`);
  say(tallyLine({ passed: 0, failed: 1, skipped: 0 }));
  process.exitCode = 1;
}
