// The order of API versions: v2, v1, v2beta1, v1alpha1, then everything else by name. Pure.

const VERSION = /^v(\d{1,9})(?:(alpha|beta)(\d{1,9}))?$/;

/** Negative where `a` comes first. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [VERSION.exec(a), VERSION.exec(b)];
  if (left === null || right === null) {
    if (left !== null) return -1;
    if (right !== null) return 1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  const stability = ([, , stage]: RegExpExecArray): number => (stage === undefined ? 2 : stage === 'beta' ? 1 : 0);
  return (
    stability(right) - stability(left) ||
    Number(right[1]) - Number(left[1]) ||
    Number(right[3] ?? 0) - Number(left[3] ?? 0)
  );
}
