// Runs the suite against one socket: finds out what the driver announces, runs the checks that apply one after the other,
// and reports the outcome of each. Never stops at the first failure, and takes down what each check has made.

import { mkdir } from 'node:fs/promises';
import { elapsedMs, systemClock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { mountsUnder } from '../../lib/mountinfo.ts';
import { readMounts } from '../../lib/mounts.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import { resolvePath } from '../../lib/resolve-path.ts';
import { connectCsi } from '../client.ts';
import type { Abilities, Need } from './abilities.ts';
import { attachChecks } from './attach-checks.ts';
import { Bench, type BenchOptions } from './bench.ts';
import { type Check, unmet } from './check.ts';
import { controllerChecks } from './controller-checks.ts';
import { createChecks } from './create-checks.ts';
import { identityChecks } from './identity-checks.ts';
import { publishChecks } from './publish-checks.ts';
import { snapshotChecks } from './snapshot-checks.ts';
import { stageChecks } from './stage-checks.ts';
import { usageChecks } from './usage-checks.ts';

export const ALL_CHECKS: readonly Check[] = [
  ...identityChecks,
  ...createChecks,
  ...controllerChecks,
  ...attachChecks,
  ...snapshotChecks,
  ...stageChecks,
  ...publishChecks,
  ...usageChecks,
];

/** At most this many volumes per node are filled up to see the next one refused. */
const FEW = 8;

export interface Suite {
  readonly abilities: Abilities;
  /** Needs of the check that the driver does not meet; empty: it applies. */
  unmet(check: Check): readonly Need[];
  /** Rejects when the check fails, or when what it made cannot be taken down. */
  run(check: Check): Promise<void>;
  close(): Promise<void>;
}

/** Connects and asks for capabilities. Rejects with CsiError when the driver does not answer. */
export async function openSuite(endpoint: string, given: BenchOptions): Promise<Suite> {
  // What is compared with the mount table begins with it.
  const directory = resolvePath(given.directory);
  const options = { ...given, directory };
  const client = connectCsi(endpoint);
  try {
    const plugin = (await client.identity.GetPluginCapabilities({})).capabilities.flatMap((each) => [
      ...(each.service ? [String(each.service.type)] : []),
      ...(each.volume_expansion ? [String(each.volume_expansion.type)] : []),
    ]);
    const types = (list: readonly { readonly rpc?: { readonly type: string } | null }[]) =>
      new Set(list.flatMap((each) => (each.rpc ? [each.rpc.type] : [])));
    const controller = plugin.includes('CONTROLLER_SERVICE')
      ? types((await client.controller.ControllerGetCapabilities({})).capabilities)
      : new Set<string>();
    const node = types((await client.node.NodeGetCapabilities({})).capabilities);
    const info = await client.node.NodeGetInfo({});
    const most = Number(info.max_volumes_per_node);
    const abilities: Abilities = {
      plugin: new Set(plugin),
      controller,
      node,
      accessType: options.accessType,
      secondNode: options.secondNodeId !== undefined,
      fewVolumes: most > 0 && most <= FEW,
    };
    await mkdir(directory, { recursive: true });
    return {
      abilities,
      unmet: (check) => unmet(check, abilities),
      async run(check) {
        const bench = new Bench(client, options, abilities, info);
        try {
          await check.run(bench);
        } catch (error) {
          // The check's own failure is what counts; a failure of the cleanup is added to it.
          const after = await bench.cleanup().then(
            () => '',
            (failure: unknown) => `; ${errorMessage(failure)}`,
          );
          throw new Error(`${errorMessage(error)}${after}`, { cause: error });
        }
        await bench.cleanup();
      },
      async close() {
        client.close();
        // What is still mounted has data.
        const mounted = mountsUnder(await readMounts(), directory)[0];
        if (mounted !== undefined)
          throw new Error(`${mounted.path} is still mounted: the driver has not taken it down`);
        await removeTree(directory);
      },
    };
  } catch (error) {
    client.close();
    throw error;
  }
}

export type Outcome =
  | { readonly kind: 'passed' | 'failed'; readonly check: Check; readonly durationMs: number; readonly error?: string }
  | { readonly kind: 'not applicable'; readonly check: Check; readonly needs: readonly Need[] };

/** Runs every check, or those whose section or sentence matches. */
export async function runSuite(
  suite: Suite,
  report: (outcome: Outcome) => void,
  matching: (check: Check) => boolean = () => true,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const check of ALL_CHECKS.filter(matching)) {
    const needs = suite.unmet(check);
    const began = systemClock.monotonic();
    let outcome: Outcome;
    if (needs.length > 0) outcome = { kind: 'not applicable', check, needs };
    else {
      try {
        await suite.run(check);
        outcome = { kind: 'passed', check, durationMs: elapsedMs(began, systemClock.monotonic()) };
      } catch (error) {
        outcome = {
          kind: 'failed',
          check,
          durationMs: elapsedMs(began, systemClock.monotonic()),
          error: errorMessage(error),
        };
      }
    }
    outcomes.push(outcome);
    report(outcome);
  }
  return outcomes;
}
