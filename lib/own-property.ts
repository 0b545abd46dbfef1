// Looks up and sets properties by a name that comes from outside (a label, a file's key, a resource's name) in plain
// objects. Such a name may be `constructor` or `__proto__`: plain `table[name]` then finds what every object inherits,
// and plain assignment to `__proto__` stores nothing. scripts/lint-lookups.ts refuses both outside this file.

/** The object's own value under `key`; undefined when it has none, and when there is no object. */
export function getOwn<T>(object: { readonly [key: string]: T } | undefined, key: string): T | undefined {
  return object !== undefined && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Sets `key` as an own, ordinary property, whatever its name. */
export function setOwn<T>(object: { [key: string]: T }, key: string, value: T): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else object[key] = value;
}
