// What writes do to an object, as plainly as it can be written down: labels, and who owns each of them. A create, an update or
// a patch owns what it changes; an apply owns what it names, is refused where another owner has another value, and takes
// away what it no longer names and no other owns.

export type Labels = Readonly<Record<string, string>>;

export interface Item {
  readonly labels: Labels;
  /** By label: "manager operation", sorted. */
  readonly owners: Readonly<Record<string, readonly string[]>>;
}

export type Operation = { readonly name: string; readonly manager: string } & (
  | { readonly kind: 'create'; readonly labels: Labels }
  /** `version` is of the object that the writer has read. */
  | { readonly kind: 'update'; readonly labels: Labels; readonly version: number }
  | { readonly kind: 'merge' | 'strategic'; readonly labels: Readonly<Record<string, string | null>> }
  | { readonly kind: 'json'; readonly op: 'add' | 'remove' | 'test'; readonly label: string; readonly value: string }
  | { readonly kind: 'apply'; readonly labels: Labels; readonly force: boolean }
  | { readonly kind: 'delete'; readonly version: number | undefined }
);

/** The object afterwards, undefined when it is gone; or the code of a refusal. */
export type Effect = { readonly item: Item | undefined } | { readonly code: number };

function update(before: Item, labels: Labels, owner: string): Effect {
  const owners: Record<string, readonly string[]> = {};
  for (const [label, value] of Object.entries(labels)) {
    owners[label] = before.labels[label] === value ? (before.owners[label] ?? []) : [owner];
  }
  return { item: { labels, owners } };
}

function apply(before: Item | undefined, config: Labels, force: boolean, owner: string): Effect {
  const labels: Record<string, string> = {};
  const owners: Record<string, readonly string[]> = {};
  for (const [label, value] of Object.entries(before?.labels ?? {})) {
    const others = (before?.owners[label] ?? []).filter((each) => each !== owner);
    const wanted = config[label];
    if (wanted !== undefined && wanted !== value && others.length > 0 && !force) return { code: 409 };
    const isDropped = wanted === undefined && others.length === 0 && before?.owners[label]?.includes(owner) === true;
    if (isDropped) continue;
    labels[label] = wanted ?? value;
    owners[label] = wanted === undefined ? others : wanted === value ? [...others, owner].sort() : [owner];
  }
  for (const [label, value] of Object.entries(config)) {
    if (labels[label] !== undefined) continue;
    labels[label] = value;
    owners[label] = [owner];
  }
  return { item: { labels, owners } };
}

function merged(labels: Labels, patch: Readonly<Record<string, string | null>>): Labels {
  const result: Record<string, string> = { ...labels };
  for (const [label, value] of Object.entries(patch)) {
    if (value === null) delete result[label];
    else result[label] = value;
  }
  return result;
}

/** What the operation does to an object that is `before` and has the resource version `revision`. Pure. */
export function effectOf(operation: Operation, before: Item | undefined, revision: number): Effect {
  const { kind, manager } = operation;
  const owner = `${manager} Update`;
  if (kind === 'apply') return apply(before, operation.labels, operation.force, `${manager} Apply`);
  if (kind === 'create') {
    return before === undefined ? update({ labels: {}, owners: {} }, operation.labels, owner) : { code: 409 };
  }
  if (before === undefined) return { code: 404 };
  switch (kind) {
    case 'delete':
      return operation.version === undefined || operation.version === revision ? { item: undefined } : { code: 409 };
    case 'update':
      return operation.version === revision ? update(before, operation.labels, owner) : { code: 409 };
    case 'json': {
      const { op, label, value } = operation;
      if (op === 'test') return before.labels[label] === value ? { item: before } : { code: 422 };
      if (op === 'remove' && before.labels[label] === undefined) return { code: 422 };
      return update(before, merged(before.labels, { [label]: op === 'remove' ? null : value }), owner);
    }
    default:
      return update(before, merged(before.labels, operation.labels), owner);
  }
}
