// Which versions of CSI a driver may offer: 1.x, as the kubelet takes them. Pure.

export interface CsiVersion {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
}

/** "v1.2", "1.0.0-rc1". Undefined for what is not a version. */
export function parseVersion(text: string): CsiVersion | undefined {
  const match = /^v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+.][0-9A-Za-z.+-]*)?$/.exec(text);
  if (match === null) return undefined;
  return { major: Number(match[1]), minor: Number(match[2]), patch: Number(match[3] ?? 0) };
}

export function compareVersions(a: CsiVersion, b: CsiVersion): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch;
}

export function showVersion({ major, minor, patch }: CsiVersion): string {
  return `${major}.${minor}.${patch}`;
}

/** The newest offered version that is supported here. Throws an Error with the reason when there is none. */
export function highestSupportedVersion(versions: readonly string[]): CsiVersion {
  if (versions.length === 0) throw new Error('Plugin returned an empty list for supported versions');
  const supported = versions.flatMap((text) => {
    const version = parseVersion(text);
    return version?.major === 1 ? [version] : [];
  });
  const highest = supported.toSorted(compareVersions).at(-1);
  if (highest !== undefined) return highest;
  const list = versions.map((text) => `"${text}"`).join(' ');
  throw new Error(`None of the versions specified [${list}] are supported. Supported are 1.x`);
}
