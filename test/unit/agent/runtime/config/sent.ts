// A CRI request as it is on the wire, for comparing two of them.

/** What is on the wire: proto3 has no difference between a default and nothing; a message that is there stays there. */
export function sent(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sent);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, field]) => [key, sent(field)] as const);
  const isDefault = (field: unknown): boolean =>
    field === undefined ||
    field === null ||
    field === false ||
    field === 0 ||
    field === '' ||
    (Array.isArray(field) && field.length === 0);
  // The first value of each enum is its default as well.
  const first = new Set(['POD', 'PROPAGATION_PRIVATE', 'TCP', 'RuntimeDefault', 'Merge', 'RUNTIME_DEFAULT']);
  return Object.fromEntries(fields.filter(([, field]) => !isDefault(field) && !first.has(field as string)));
}
