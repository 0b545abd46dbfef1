// The error of a manifest, for its author.

/** A manifest that cannot be run. The message names fields, not the file. */
export class ManifestError extends Error {
  override name = 'ManifestError';
}
