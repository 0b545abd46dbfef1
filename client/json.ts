// What API servers answer, parsed. One in Go writes null for a list or a map that is empty and has no other way to say so ("endpoints": null,
// "rules": null, "creationTimestamp": null in a template): a field that is null is a field that is absent.

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

function dropNulls(value: unknown): void {
  if (Array.isArray(value)) {
    for (const item of value) dropNulls(item);
    return;
  }
  if (!isFields(value)) return;
  for (const [name, field] of Object.entries(value)) {
    if (field === null) delete value[name];
    else dropNulls(field);
  }
}

/** An object, a list, whose items are there, or an event of a watch. Throws SyntaxError for what is no JSON. */
export function parseObject<T>(text: string): T {
  const parsed: unknown = JSON.parse(text);
  // Most have none, and walking through a long list takes as long as parsing it.
  if (text.includes('null') && isFields(parsed)) {
    if (parsed['items'] === null) parsed['items'] = [];
    dropNulls(parsed);
  }
  return parsed as T;
}
