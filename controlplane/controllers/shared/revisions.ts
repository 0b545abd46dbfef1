// ControllerRevisions: what a stateful or daemon set's template was. Which of them is the one of today's template, whether it has to
// be made or becomes the newest again, and which old ones go. Pure.

import type { PodTemplateSpec } from 'kubernetes-types/core/v1';
import { sameJson } from '../../../lib/same-json.ts';
import type { ControllerRevision } from './objects.ts';
import { inOrder } from './template-hash.ts';

/** On pods, and on the revisions of a daemon set. */
export const REVISION_HASH = 'controller-revision-hash';
/** Longest part of an owner's name in a revision's, as upstream's. */
const MAX_PREFIX = 223;

/** A strategic merge patch that gives an object this template; in the order of fields in which upstream writes it. */
export function revisionData(template: PodTemplateSpec): unknown {
  return inOrder({ spec: { template: { ...template, $patch: 'replace' } } });
}

export function revisionName(owner: string, hash: string): string {
  return `${owner.slice(0, MAX_PREFIX)}-${hash}`;
}

export function templateOf({ data }: ControllerRevision): PodTemplateSpec {
  const { $patch: _, ...template } = data?.spec?.template ?? {};
  return template;
}

/** Older versions of kube-controller-manager write the template's creationTimestamp, which is always null. */
function comparable(template: PodTemplateSpec): unknown {
  const { metadata, ...rest } = template;
  const { creationTimestamp: _, ...others } = metadata ?? {};
  return { ...rest, metadata: others };
}

export function hasTemplate(revision: ControllerRevision, template: PodTemplateSpec): boolean {
  return sameJson(comparable(templateOf(revision)), comparable(template));
}

/** The lowest number first; of two with the same number the older one, of those by name. */
export function byNumber(revisions: readonly ControllerRevision[]): readonly ControllerRevision[] {
  const age = ({ metadata }: ControllerRevision): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  return revisions.toSorted((a, b) => a.revision - b.revision || (age(a) < age(b) ? -1 : 1));
}

export type RevisionStep =
  /** None has the template: it is made with this number. */
  | { readonly kind: 'create'; readonly number: number }
  /** The template is an older one's: that becomes the newest. */
  | { readonly kind: 'renumber'; readonly revision: ControllerRevision; readonly number: number }
  | { readonly kind: 'keep'; readonly revision: ControllerRevision };

export interface History {
  readonly step: RevisionStep;
  /** With another template, the lowest number first. */
  readonly old: readonly ControllerRevision[];
  /** With the same template as that of `step`. */
  readonly duplicates: readonly ControllerRevision[];
}

/** What the revisions say about an object that has this template now. */
export function historyOf(revisions: readonly ControllerRevision[], template: PodTemplateSpec): History {
  const ordered = byNumber(revisions);
  const same = ordered.filter((revision) => hasTemplate(revision, template));
  const old = ordered.filter((revision) => !same.includes(revision));
  const number = (old.at(-1)?.revision ?? 0) + 1;
  const revision = same.at(-1);
  if (revision === undefined) return { step: { kind: 'create', number }, old, duplicates: [] };
  const duplicates = same.slice(0, -1);
  const step: RevisionStep =
    revision.revision < number ? { kind: 'renumber', revision, number } : { kind: 'keep', revision };
  return { step, old, duplicates };
}

/** Of `old`, the lowest number first, the `surplus` first ones that no pod has. */
export function revisionsToDelete(
  old: readonly ControllerRevision[],
  isLive: (revision: ControllerRevision) => boolean,
  surplus: number,
): readonly ControllerRevision[] {
  return old.filter((revision) => !isLive(revision)).slice(0, Math.max(0, surplus));
}
