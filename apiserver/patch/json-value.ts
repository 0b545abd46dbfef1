// JSON values as the patches see them. Pure.

const MAX_SHOWN = 1024;

export type JsonObject = { [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A client's value in a message: text as it is, anything else as JSON; cut where it is long. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** A text that two JSON values share exactly when they are equal by `sameJson` (lib/same-json.ts): for finding one among many. */
export function jsonIdentity(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jsonIdentity).join()}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? '';
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${jsonIdentity(each)}`).join()}}`;
}

/** A patch that cannot be read as one (400), that does not fit the object (422), or that would do too much (413). */
export class PatchError extends Error {
  override name = 'PatchError';
  readonly kind: 'malformed' | 'inapplicable' | 'tooLarge';
  constructor(kind: 'malformed' | 'inapplicable' | 'tooLarge', message: string) {
    super(message);
    this.kind = kind;
  }
}
