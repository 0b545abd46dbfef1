// What the name of a compute resource says of it.

export function isHugePages(name: string): boolean {
  return name.startsWith('hugepages-');
}

export function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/');
}

/** A resource whose limit may exceed its request; huge pages and devices may not. */
export function isOvercommitAllowed(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}
