// Times of expressions: the library takes and returns Dates. Pure.

/** Go's layout 2006-01-02. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(+time) && time.toISOString().startsWith(text);
}

const RFC3339 = /^\d{4}-\d{2}-\d{2}[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

export function isDateTime(text: string): boolean {
  return RFC3339.test(text) && isDate(text.slice(0, 10));
}

/** A date or a time as a value of an expression; undefined for other text. */
export function celTime(text: string): Date | undefined {
  return isDate(text) || isDateTime(text) ? new Date(text) : undefined;
}

/** Without a fraction where there is none. */
export function timeText(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z');
}
