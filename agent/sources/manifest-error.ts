// What is wrong with a manifest, for whoever wrote it.

/** A manifest that cannot be run. The message names fields, not the file. */
export class ManifestError extends Error {
  override name = 'ManifestError';
}
