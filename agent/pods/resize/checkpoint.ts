// The allocation checkpoint: what is written under the agent's root of the pods' promises, and how it is read again. The
// text only; where it is kept is the store's business. Pure.

import { errorMessage } from '../../../lib/errors.ts';
import type { PodAllocation, Resources } from './allocation.ts';

export interface ActualResources {
  /** The instance that has them. */
  readonly id: string;
  readonly resources: Resources;
}

export interface SavedPod {
  readonly allocated: PodAllocation;
  /** Instances that run with something else than what is allocated now: a resize that was not finished. */
  readonly actual: Readonly<Record<string, ActualResources>>;
  readonly resizing: boolean;
}

const VERSION = 1;

export function printCheckpoint(pods: ReadonlyMap<string, SavedPod>): string {
  return `${JSON.stringify({ version: VERSION, pods: Object.fromEntries(pods) })}\n`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readQuantities(value: unknown): Record<string, string> | undefined {
  if (!isRecord(value)) return undefined;
  return Object.fromEntries(Object.entries(value).map(([name, quantity]) => [name, String(quantity)]));
}

function readResources(value: unknown): Resources {
  if (!isRecord(value)) throw new Error('resources that are no object');
  const requests = readQuantities(value['requests']);
  const limits = readQuantities(value['limits']);
  return { ...(requests === undefined ? {} : { requests }), ...(limits === undefined ? {} : { limits }) };
}

function readPod(value: unknown): SavedPod {
  if (!isRecord(value) || !isRecord(value['allocated'])) throw new Error('a pod without "allocated"');
  const actual = isRecord(value['actual']) ? value['actual'] : {};
  return {
    allocated: Object.fromEntries(
      Object.entries(value['allocated']).map(([name, resources]) => [name, readResources(resources)]),
    ),
    actual: Object.fromEntries(
      Object.entries(actual).map(([name, entry]) => {
        if (!isRecord(entry) || typeof entry['id'] !== 'string') throw new Error(`container ${name} without an id`);
        return [name, { id: entry['id'], resources: readResources(entry['resources']) }];
      }),
    ),
    resizing: value['resizing'] === true,
  };
}

/** By pod uid. Throws with what is wrong with the text. */
export function parseCheckpoint(text: string): Map<string, SavedPod> {
  try {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value) || value['version'] !== VERSION || !isRecord(value['pods'])) {
      throw new Error(`not a checkpoint of version ${VERSION}`);
    }
    return new Map(Object.entries(value['pods']).map(([uid, pod]) => [uid, readPod(pod)]));
  } catch (error) {
    throw new Error(`allocation checkpoint: ${errorMessage(error)}`, { cause: error });
  }
}
