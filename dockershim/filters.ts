// CRI's list filters. Pure.

type Labels = Readonly<Record<string, string>>;

export function hasLabels(labels: Labels, selector: Labels | undefined): boolean {
  const own = new Map(Object.entries(labels));
  return Object.entries(selector ?? {}).every(([name, value]) => own.get(name) === value);
}

/** A filter's id may be the beginning of one, as with containerd; '' is any. */
export function hasId(id: string, wanted: string | undefined): boolean {
  return id.startsWith(wanted ?? '');
}
