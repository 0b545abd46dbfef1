// Patterns for names of methods, pods and containers: "*" stands for any characters. Pure.

/** Whether a name is what a pattern with "*" says. */
export function matchesPattern(pattern: string, name: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(name);
}

/** "web" matches in any namespace, "demo/web" in one. */
export function matchesPod(pattern: string, pod: string | undefined): boolean {
  if (pod === undefined) return false;
  return matchesPattern(pattern, pattern.includes('/') ? pod : pod.slice(pod.indexOf('/') + 1));
}

export function matchesMethod(pattern: string, path: string): boolean {
  return matchesPattern(pattern, path) || matchesPattern(pattern, path.slice(path.lastIndexOf('/') + 1));
}
