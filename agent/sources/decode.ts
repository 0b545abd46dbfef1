// The text of a manifest as a value: JSON, or YAML as Go's reader takes it. Knows nothing of pods.

import { type Document, parseAllDocuments, type ScalarTag } from 'yaml';
import { errorMessage } from '../../lib/errors.ts';
import { ManifestError } from './manifest-error.ts';

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
export function decodeManifest(source: string): unknown {
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
