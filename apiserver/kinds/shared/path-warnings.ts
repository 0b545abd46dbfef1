// Files of a volume that hide each other, since one's path is another's or a directory above it. The texts are the real server's.

import type { PodSpec } from '../shapes.ts';

type Volume = NonNullable<PodSpec['volumes']>[number];
type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number];

interface File {
  readonly path: string;
  readonly source: string;
}

/** A client may send as many paths as fit into a body, each of which may overlap with all others. */
const MAX_OVERLAPS = 32;

const shown = ({ path, source }: File): string =>
  source === '' ? JSON.stringify(path) : `${JSON.stringify(path)} (${source})`;

/** "a/b/c": "a", "a/b". */
function above(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** Each overlap of a file with one before it. */
function overlaps(files: readonly File[]): string[] {
  const found: string[] = [];
  const known: File[] = [];
  /** Places in `known`, by path, and by each directory above it. */
  const byPath = new Map<string, number[]>();
  const below = new Map<string, number[]>();
  const add = (map: Map<string, number[]>, key: string, place: number): void => {
    const places = map.get(key) ?? [];
    if (places.length < MAX_OVERLAPS) map.set(key, [...places, place]);
  };
  for (const { path: written, source } of files) {
    const file = { path: written.replace(/\/+$/, ''), source };
    const { path } = file;
    if (path === '') continue;
    const directories = above(path);
    const places = [path, ...directories].flatMap((one) => byPath.get(one) ?? []).concat(below.get(path) ?? []);
    for (const place of places.toSorted((a, b) => a - b)) {
      const other = known[place];
      if (other !== undefined) found.push(`${shown(file)} with ${shown(other)}`);
      if (found.length === MAX_OVERLAPS) return found;
    }
    add(byPath, path, known.length);
    for (const directory of directories) add(below, directory, known.length);
    known.push(file);
  }
  return found;
}

function projected(source: Projection): File[] {
  const { configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle: bundle } = source;
  const files = (items: readonly { path?: string | undefined }[], from: string): File[] =>
    items.map(({ path = '' }) => ({ path, source: from }));
  if (configMap?.items !== undefined)
    return files(configMap.items, `ConfigMap ${JSON.stringify(configMap.name ?? '')}`);
  if (secret?.items !== undefined) return files(secret.items, `Secret ${JSON.stringify(secret.name ?? '')}`);
  if (downwardAPI?.items !== undefined) return files(downwardAPI.items, 'DownwardAPI');
  if (serviceAccountToken !== undefined) return files([serviceAccountToken], 'ServiceAccountToken');
  if (bundle === undefined) return [];
  return files([bundle], `ClusterTrustBundle ${JSON.stringify(bundle.name ?? bundle.signerName ?? '')}`);
}

function volumeFiles({ configMap, secret, downwardAPI }: Volume): (readonly [kind: string, files: readonly File[]])[] {
  const files = (items: readonly { path?: string | undefined }[]): File[] =>
    items.map(({ path = '' }) => ({ path, source: '' }));
  return [
    [`ConfigMap ${JSON.stringify(configMap?.name ?? '')}`, files(configMap?.items ?? [])],
    [`Secret ${JSON.stringify(secret?.secretName ?? '')}`, files(secret?.items ?? [])],
    ['DownwardAPI', files(downwardAPI?.items ?? [])],
  ];
}

export function overlapWarnings(volumes: readonly Volume[] = []): string[] {
  return volumes.flatMap((volume) => {
    const name = JSON.stringify(volume.name ?? '');
    const sources = volume.projected?.sources ?? [];
    const files = [...volumeFiles(volume), ['Projected', sources.flatMap(projected)] as const];
    return [
      ...sources
        .filter((source) => Object.keys(source).length === 0)
        .map(() => `volume ${name} (Projected) has no sources provided`),
      ...files.flatMap(([kind, list]) =>
        overlaps(list).map((text) => `volume ${name} (${kind}): overlapping paths: ${text}`),
      ),
    ];
  });
}
