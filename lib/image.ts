// Reads image references ("registry:5000/team/app:v1@sha256:…") as far as defaults depend on them. Never resolves them.

/** The tag; "latest" when there is neither tag nor digest, "" when there is a digest alone. */
export function imageTag(reference: string): string {
  const at = reference.indexOf('@');
  const named = at === -1 ? reference : reference.slice(0, at);
  // A colon before the last slash belongs to the registry's port.
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1);
  if (colon !== -1) return named.slice(colon + 1);
  return at === -1 ? 'latest' : '';
}
