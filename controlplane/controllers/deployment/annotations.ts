// What a deployment writes into the annotations of its replica sets, and reads back: revisions, which kubectl's `rollout`
// commands go by, and the sizes that distinguish scaling from rolling out. Pure.

import { getOwn } from '../../../lib/own-property.ts';
import type { Deployment, ReplicaSet } from '../shared/objects.ts';
import { replicasOf } from '../shared/objects.ts';
import { maxSurge } from './counts.ts';

export const REVISION = 'deployment.kubernetes.io/revision';
const HISTORY = 'deployment.kubernetes.io/revision-history';
const DESIRED = 'deployment.kubernetes.io/desired-replicas';
const MAX = 'deployment.kubernetes.io/max-replicas';
/** Longest history of revisions, in characters. */
const HISTORY_LIMIT = 2000;

/** Of the deployment's annotations these are not its replica sets'. */
const OWN: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  REVISION,
  HISTORY,
  DESIRED,
  MAX,
  'deprecated.deployment.rollback.to',
]);

type Annotations = Readonly<Record<string, string>>;
interface Annotated {
  readonly metadata: { readonly annotations?: Annotations };
}

/** A whole number that is not negative; undefined where the annotation is absent or no such number. */
function numberIn({ metadata }: Annotated, name: string): number | undefined {
  const text = getOwn(metadata.annotations, name) ?? '';
  return /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

export const desiredReplicas = (set: Annotated): number | undefined => numberIn(set, DESIRED);
export const maxReplicas = (set: Annotated): number | undefined => numberIn(set, MAX);
/** A revision is a 64-bit number, as Go parses it; undefined for any other text. */
function parseRevision(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const number = BigInt(text.replace('+', ''));
  return BigInt.asIntN(64, number) === number ? number : undefined;
}

/** 0 for a set without one, or with one that is no number. */
export const revisionOf = ({ metadata }: Annotated): bigint =>
  parseRevision(getOwn(metadata.annotations, REVISION) ?? '') ?? 0n;

/** The revision of a template that is new: one more than all old ones have. */
export function nextRevision(old: readonly ReplicaSet[]): bigint {
  return old.map(revisionOf).reduce((highest, each) => (each > highest ? each : highest), 0n) + 1n;
}

/** The two annotations of sizes, which every scaling writes. */
export function sizeAnnotations(deployment: Deployment): Annotations {
  const desired = replicasOf(deployment);
  return { [DESIRED]: String(desired), [MAX]: String(desired + maxSurge(deployment)) };
}

/** The earliest revisions are left out where the list becomes too long. */
function withRevision(history: string, revision: string): string {
  const all = [...(history === '' ? [] : history.split(',')), revision];
  while (all.length > 1 && all.join(',').length > HISTORY_LIMIT) all.shift();
  return all.join(',');
}

/** The annotations of the set that has the deployment's template, from those it has: the deployment's own, and the revision. */
export function newSetAnnotations(deployment: Deployment, known: Annotations, revision: bigint): Annotations {
  const copied = Object.entries(deployment.metadata.annotations ?? {}).filter(([name]) => !OWN.has(name));
  const next: Record<string, string> = { ...known, ...Object.fromEntries(copied) };
  const before = getOwn(known, REVISION);
  const number = parseRevision(before ?? '0');
  if (number === undefined || number >= revision) return next;
  next[REVISION] = String(revision);
  // The set had a revision: this is a rollback to it.
  if (before !== undefined) next[HISTORY] = withRevision(getOwn(known, HISTORY) ?? '', before);
  return next;
}
