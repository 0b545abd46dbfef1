// Reads a manifest: text in, static pods out, or a ManifestError that says what a person has to mend. Knows neither files
// nor networks.

import { type Document, parseAllDocuments, type ScalarTag } from 'yaml';
import type { Pod } from '../../client/types.ts';
import { errorMessage } from '../../lib/errors.ts';
import { type PodManifest, type StaticPodOrigin, staticPod } from './defaults.ts';
import { podShape } from './pod-shape.ts';
import { isRecord } from './shape.ts';
import { apiReference, podProblems } from './validate.ts';

/** A manifest that cannot be run. The message names fields, not the file. */
export class ManifestError extends Error {
  override name = 'ManifestError';
}

/** The most that a manifest may have, in bytes; the kubelet's figure. */
export const MAX_MANIFEST_BYTES = 10 * 1024 * 1024;

/** How Go's YAML reads what YAML 1.2 reads otherwise: file modes are octal, and yes and no are no text. */
const GO_TAGS: readonly ScalarTag[] = [
  {
    tag: 'tag:yaml.org,2002:int',
    default: true,
    format: 'OCT',
    test: /^[-+]?0[0-7]+$/,
    resolve: (written) => (written.startsWith('-') ? -1 : 1) * Number.parseInt(written.replace(/^[-+]/, ''), 8),
  },
  {
    tag: 'tag:yaml.org,2002:bool',
    default: true,
    test: /^(?:[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$/,
    resolve: (written) => /^(yes|on)$/i.test(written),
  },
];

/** The value of the first document, as the kubelet takes it. Throws ManifestError. */
function decode(source: string): unknown {
  // JSON is read as what it is: faster, and a tab is no mistake in it.
  if (source.trimStart().startsWith('{')) {
    try {
      return JSON.parse(source);
    } catch {
      // A flow mapping of YAML begins like that too.
    }
  }
  let documents: readonly Document[];
  try {
    const parsed = parseAllDocuments(source, {
      customTags: (tags) => [...GO_TAGS, ...tags],
      merge: true,
      uniqueKeys: false,
      logLevel: 'silent',
    });
    documents = 'empty' in parsed ? [] : parsed;
  } catch (error) {
    throw new ManifestError(`is neither YAML nor JSON: ${errorMessage(error)}`, { cause: error });
  }
  const document = documents.find(({ contents, errors }) => contents !== null || errors.length > 0);
  const [problem] = document?.errors ?? [];
  if (problem !== undefined) throw new ManifestError(`is neither YAML nor JSON: ${problem.message.split('\n')[0]}`);
  try {
    return document?.toJS();
  } catch (error) {
    // Aliases that would unfold without end.
    throw new ManifestError(`cannot be unfolded: ${errorMessage(error)}`, { cause: error });
  }
}

/** One pod of a manifest with its defaults, checked. Throws ManifestError. */
function podFrom(value: unknown, origin: StaticPodOrigin): Pod {
  const problems: string[] = [];
  const manifest = podShape(value, '', problems);
  if (problems.length > 0 || !isManifest(manifest)) throw new ManifestError(`invalid pod: ${problems.join('; ')}`);
  const pod = staticPod(manifest, origin);
  const wrong = podProblems(pod);
  if (wrong.length > 0) throw new ManifestError(`invalid pod: ${wrong.join('; ')}`);
  const reference = apiReference(pod);
  if (reference !== undefined) throw new ManifestError(`static pods may not reference ${reference}`);
  return pod;
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
  const value = decode(source);
  if (kindOf(value) !== 'Pod') throw new ManifestError("couldn't parse as pod: a file holds one Pod, not a list");
  return podFrom(value, origin);
}

/** A pod, or all of a list of them. One that is wrong makes all of them wrong. Throws ManifestError. */
export function parsePods(source: string, origin: StaticPodOrigin): readonly Pod[] {
  const value = decode(source);
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
