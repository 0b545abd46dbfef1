// Reads a manifest: text in, static pods out, or a ManifestError with what to fix. Knows neither files
// nor networks.

import type { Pod } from '../../client/types.ts';
import { decodeManifest } from './decode.ts';
import { type PodManifest, type StaticPodOrigin, staticPod } from './defaults.ts';
import { ManifestError } from './manifest-error.ts';
import { podShape } from './pod-shape.ts';
import { isRecord } from './shape.ts';
import { apiReference, podProblems } from './validate.ts';

/** The most that a manifest may have, in bytes; the kubelet's figure. */
export const MAX_MANIFEST_BYTES = 10 * 1024 * 1024;

/** The maximum length of an error message, in characters. */
const MAX_WORDS = 4096;

/** One pod of a manifest with its defaults, checked. Throws ManifestError. */
function podFrom(value: unknown, origin: StaticPodOrigin): Pod {
  const problems: string[] = [];
  const manifest = podShape(value, '', problems);
  if (problems.length > 0 || !isManifest(manifest)) throw invalidPod(problems);
  const pod = staticPod(manifest, origin);
  const wrong = podProblems(pod);
  if (wrong.length > 0) throw invalidPod(wrong);
  const reference = apiReference(pod);
  if (reference !== undefined) throw new ManifestError(`static pods may not reference ${reference}`);
  return pod;
}

/** Names the errors; values quoted in them may be as long as the manifest, and are cut. */
function invalidPod(problems: readonly string[]): ManifestError {
  const words = problems.join('; ');
  return new ManifestError(`invalid pod: ${words.slice(0, MAX_WORDS)}${words.length > MAX_WORDS ? ' …' : ''}`);
}

/** Sound once `podShape` found nothing wrong. */
function isManifest(value: unknown): value is PodManifest {
  return isRecord(value);
}

function kindOf(value: unknown): string {
  if (!isRecord(value)) throw new ManifestError('has no pod in it');
  const { apiVersion, kind } = value;
  if (apiVersion !== 'v1' || (kind !== 'Pod' && kind !== 'PodList' && kind !== 'List')) {
    throw new ManifestError(
      `couldn't parse as pod: apiVersion is ${JSON.stringify(apiVersion)} and kind ${JSON.stringify(kind)}, not v1 Pod`,
    );
  }
  return kind;
}

/** The one pod of a file. Throws ManifestError. */
export function parsePod(source: string, origin: StaticPodOrigin): Pod {
  return podOf(decodeManifest(source), origin);
}

/** The same of a file that has been decoded. */
export function podOf(value: unknown, origin: StaticPodOrigin): Pod {
  if (kindOf(value) !== 'Pod') throw new ManifestError("couldn't parse as pod: a file holds one Pod, not a list");
  return podFrom(value, origin);
}

/** A pod, or all of a list of them. One that is wrong makes all of them wrong. Throws ManifestError. */
export function parsePods(source: string, origin: StaticPodOrigin): readonly Pod[] {
  return podsOf(decodeManifest(source), origin);
}

/** The same of an answer that has been decoded. */
export function podsOf(value: unknown, origin: StaticPodOrigin): readonly Pod[] {
  if (kindOf(value) === 'Pod') return [podFrom(value, origin)];
  const items = isRecord(value) ? (value['items'] ?? []) : [];
  if (!Array.isArray(items)) throw new ManifestError('items: must be a list');
  return items.map((item: unknown, index) => {
    try {
      return podFrom(item, origin);
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      throw new ManifestError(`items[${index}]: ${error.message}`, { cause: error });
    }
  });
}

export { ManifestError };
