// Static pods of an experiment: which manifests are for the agent's directory and not for the API server, and the files
// that they become. Pure.

/** A pod that has it is given to the agent as a file; the agent sets it itself. */
const SOURCE_ANNOTATION = 'kubernetes.io/config.source';

interface Annotated {
  readonly metadata: object;
}

function annotationsOf({ metadata }: Annotated): object {
  const annotations: unknown = 'annotations' in metadata ? metadata.annotations : undefined;
  return typeof annotations === 'object' && annotations !== null ? annotations : {};
}

export function isStaticPod(manifest: Annotated): boolean {
  return SOURCE_ANNOTATION in annotationsOf(manifest);
}

/** The text of the file. */
export function staticPodFile(manifest: Annotated): string {
  const annotations = Object.fromEntries(
    Object.entries(annotationsOf(manifest)).filter(([name]) => name !== SOURCE_ANNOTATION),
  );
  return `${JSON.stringify({ ...manifest, metadata: { namespace: 'default', ...manifest.metadata, annotations } })}\n`;
}
