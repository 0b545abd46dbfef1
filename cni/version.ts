// Versions of the CNI specification: which exist, how they compare, which one a conflist settles on. Pure.

/** Every version of the specification that this runtime supports, oldest first. */
export const SUPPORTED_VERSIONS: readonly string[] = ['0.1.0', '0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'];

export const CURRENT_VERSION = '1.1.0';
/** A conflist without a version is of this one, as the specification has it. */
export const IMPLIED_VERSION = '0.1.0';

const SYNTAX = /^(0|[1-9]\d*)\.(0|[1-9]\d*)(?:\.(0|[1-9]\d*))?$/;

/** Major, minor and micro, or undefined for text that is not a version ("1.1" is read as 1.1.0). */
export function parseVersion(text: string): readonly [number, number, number] | undefined {
  const match = SYNTAX.exec(text);
  if (match === null) return undefined;
  return [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

/** Negative, 0 or positive. Throws RangeError for text that is not a version. */
export function compareVersions(left: string, right: string): number {
  const [a, b] = [parseVersion(left), parseVersion(right)];
  if (a === undefined) throw new RangeError(`"${left}" is not a CNI version`);
  if (b === undefined) throw new RangeError(`"${right}" is not a CNI version`);
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}

export const atLeast = (version: string, floor: string): boolean => compareVersions(version, floor) >= 0;

export const isSupported = (version: string): boolean => SUPPORTED_VERSIONS.includes(version);

/**
 * The version a conflist settles on: the highest of `cniVersions` and `cniVersion` that this runtime supports. Without
 * `cniVersions`, `cniVersion` itself, supported or not. Undefined when the list leaves none.
 */
export function negotiateVersion(
  cniVersion: string | undefined,
  cniVersions: readonly string[] | undefined,
): string | undefined {
  if (cniVersions === undefined) return cniVersion ?? IMPLIED_VERSION;
  const offered = cniVersion === undefined ? cniVersions : [...cniVersions, cniVersion];
  return offered.filter(isSupported).sort(compareVersions).at(-1);
}
