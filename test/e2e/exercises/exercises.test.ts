// Every exercise of `nodelet lab` from its beginning to its end, in one lab, which `nodelet lab start` has started: `check`
// finds something missing, the solution's commands are typed, and `check` finds nothing missing any more. Exercises that
// change the node have it for themselves.

import { mkdtemp, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, type ExpectStatic, expect, test } from 'vitest';
import { beginExercise } from '../../../cli/exercises/begin.ts';
import { endExercise } from '../../../cli/exercises/end.ts';
import { programs } from '../../../cli/exercises/environment.ts';
import { openSession, type Session } from '../../../cli/exercises/session.ts';
import { typeSolution } from '../../../cli/exercises/solve.ts';
import { type LabPaths, labPaths } from '../../../cli/lab/paths.ts';
import { type LabState, readLabState } from '../../../cli/lab/state.ts';
import { EXERCISES } from '../../../labs/exercises/index.ts';
import { type Exercise, isSolved } from '../../../labs/exercises/model.ts';
import { listPods, podState } from '../../../labs/exercises/pods.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isErrno } from '../../../lib/errors.ts';
import { type ExecResult, exec } from '../../../lib/exec.ts';
import { compareWithMachine, snapshotMachine } from '../../../lib/machine.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { eventually } from '../agent/harness.ts';
import { guardLab } from '../support/guardian.ts';
import { KUBECTL_ENVIRONMENT } from '../support/kubectl-environment.ts';
import { labNames, SETTLE_MS } from '../support/lab.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
/** For giving up only. */
const SOLUTION_MS = 900_000;
const COMMAND_MS = 600_000;
const EXERCISE_MS = 3_600_000;
/** The one that the command line is tested with. */
const BY_COMMAND = 'pending-resources';

/** What a broken world shows before it is mended: the state of its pod. */
const SYMPTOMS: ReadonlyMap<string, RegExp> = new Map([
  ['slow-start', /[1-9]\d* restarts?$/],
  [BY_COMMAND, /^Pending: .*Insufficient cpu/],
  ['pending-selector', /^Pending: .*didn't match Pod's node affinity\/selector/],
  ['pending-taint', /^Pending: .*untolerated taint/],
  ['creating-configmap', /^ContainerCreating$/],
  ['creating-cni', /^ContainerCreating$/],
  ['node-not-ready', /^Pending: .*untolerated taint/],
  ['service-readiness', /^Running, not Ready$/],
  ['service-selector', /^Running, Ready$/],
  ['service-target-port', /^Running, Ready$/],
  ['config-error', /^CreateContainerConfigError$/],
  ['image-pull', /^(ErrImagePull|ImagePullBackOff)$/],
  ['crash-loop', /^CrashLoopBackOff, [1-9]/],
  ['out-of-memory', /^CrashLoopBackOff, [1-9]/],
]);

let root: string;
let paths: LabPaths;
let state: LabState;
let before: Awaited<ReturnType<typeof snapshotMachine>>;
let guardian: Awaited<ReturnType<typeof guardLab>>;

const environment = (): NodeJS.ProcessEnv => ({ ...process.env, ...KUBECTL_ENVIRONMENT });
const lab = (...args: string[]): Promise<ExecResult> =>
  exec(NODELET, ['lab', ...args, '--root', root], { env: environment(), timeoutMs: SOLUTION_MS });

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-exercises-'));
  before = await snapshotMachine({ directories: [root] });
  guardian = await guardLab(root);
  const started = await lab('start', BY_COMMAND);
  expect(started, started.stderr).toMatchObject({ code: 0 });
  expect(started.stdout).toContain(`No lab runs under ${root}: starting one in the background.`);
  expect(started.stdout).toContain('Step 1 of ');
  paths = labPaths(root);
  const read = await readLabState(paths);
  if (read === undefined) throw new Error('the lab has no state');
  state = read;
}, EXERCISE_MS);

afterAll(async () => {
  // Only for a test that failed: the last one has stopped it.
  await exec(NODELET, ['down', '--root', root], { timeoutMs: SOLUTION_MS });
  await guardian?.dismiss();
  await removeTree(root);
}, EXERCISE_MS);

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}

async function solve(session: Session): Promise<void> {
  let output = '';
  const onOutput = (text: string): void => {
    output += text;
  };
  await typeSolution(session, { limitMs: COMMAND_MS, clock: systemClock, env: environment(), onOutput }).catch(
    (error: unknown) => {
      throw new Error(output, { cause: error });
    },
  );
  // Commands whose exit code is 1 because something is broken are not to fail for another reason.
  expect(output).not.toMatch(/^nodelet: /m);
}

/** `expect` is the test's own: the one of the file cannot poll in tests that run beside each other. */
async function fromBeginningToEnd(exercise: Exercise, { expect }: { expect: ExpectStatic }): Promise<void> {
  const session = await openSession(exercise, paths, state);
  const { machine } = session;
  try {
    await beginExercise(session);
    if (WITHOUT_KUBECTL.has(exercise.name)) {
      const script = programs(root, ['kubectl']).get('kubectl') ?? '';
      await writeFile(join(machine.directory, 'bin/kubectl'), script, { mode: 0o755 });
    }
    expect(isSolved(await exercise.check(machine)), 'solved at its beginning').toBe(false);
    const symptom = SYMPTOMS.get(exercise.name);
    if (symptom !== undefined) {
      let seen: readonly string[] = [];
      await eventually(`a pod to be ${symptom}`, async () => {
        seen = (await listPods(machine)).map(podState);
        if (seen.some((text) => symptom.test(text))) return true;
        throw new Error(seen.join('; '));
      });
      expect(isSolved(await exercise.check(machine)), 'solved while it is broken').toBe(false);
    }
    await solve(session);
    // What the last command began may go on for a moment: a log that is being rotated, an endpoint that is being written.
    await expect
      .poll(async () => (await exercise.check(machine)).filter(({ missing }) => missing !== undefined))
      .toEqual([]);
  } finally {
    await endExercise(session);
    session.close();
  }
  expect(await isThere(machine.directory)).toBe(false);
}

/** Done on a machine without kubectl: the project's own client has its words. */
const WITHOUT_KUBECTL: ReadonlySet<string> = new Set(['atomic-writer', 'crash-loop', 'image-pull', 'pending-taint']);

const others = EXERCISES.filter(({ name }) => name !== BY_COMMAND);

describe.concurrent('exercises beside each other', () => {
  test.for(others.filter(({ changesNode }) => changesNode !== true))(
    '$name',
    { timeout: EXERCISE_MS },
    fromBeginningToEnd,
  );
});

describe('exercises that change the node', () => {
  test.for(others.filter(({ changesNode }) => changesNode === true))(
    '$name',
    { timeout: EXERCISE_MS },
    fromBeginningToEnd,
  );
});

test(
  'the commands: list, status, check, hint, step, solve, reset, stop; the lab goes with the exercise',
  async () => {
    const listed = await lab('list');
    for (const { name, title } of EXERCISES) {
      expect(
        listed.stdout.split('\n').filter((line) => line.includes(` ${name} `) && line.includes(title)),
      ).toHaveLength(1);
    }
    expect(listed.stdout).toMatch(new RegExp(`^\\* ${BY_COMMAND} `, 'm'));
    const second = await lab('start', 'crash-loop');
    expect(second).toMatchObject({ code: 1, stdout: '' });
    expect(second.stderr).toContain(`the exercise ${BY_COMMAND} is under way`);

    const open = await lab('check');
    expect(open).toMatchObject({ code: 1, stderr: '' });
    expect(open.stdout).toContain('missing: the scheduler is to find a node for it');
    expect((await lab('hint')).stdout).toMatch(/^Hint 1 of 3: /);
    expect((await lab('step')).stdout).toMatch(/^Step 2 of 3: /);
    expect((await lab('status')).stdout).toContain('step 2 of 3, 1 of 3 hints shown');

    const solved = await lab('solve');
    expect(solved, solved.stderr).toMatchObject({ code: 0 });
    expect(solved.stdout).toContain('\n$ kubectl delete pod greedy\npod "greedy" deleted');
    expect(solved.stdout).toMatch(/\nSolved\. /);

    expect((await lab('reset')).stdout).toContain(`${BY_COMMAND} is at its beginning again.`);
    expect(await lab('check')).toMatchObject({ code: 1 });
    expect((await lab('status')).stdout).toContain('step 1 of 3, 0 of 3 hints shown');

    const stopped = await lab('stop');
    expect(stopped, stopped.stderr).toMatchObject({ code: 0 });
    expect(stopped.stdout).toContain('nothing of it is left');
    await guardian.dismiss();
    const left = await compareWithMachine(before, {
      directories: [root],
      mentioning: labNames(paths),
      settleMs: SETTLE_MS,
    });
    expect(left).toEqual([]);
    expect((await lab('status')).stderr).toContain('no exercise is under way');
  },
  EXERCISE_MS,
);
