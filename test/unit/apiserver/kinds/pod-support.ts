// Pods for the tables of validation rules: a sound one, and ways to spoil it.

import { create, lines, row } from './support.ts';

const pods = row('pods');

export type Fields = Record<string, unknown>;

export function container(fields: Fields = {}): Fields {
  return { name: 'web', image: 'nginx:stable', ...fields };
}

export function validate(spec: Fields, metadata: Fields = {}): string[] {
  return lines(create(pods, { metadata, spec: { containers: [container()], ...spec } }).errors);
}

export const withContainer = (fields: Fields): Fields => ({ containers: [container(fields)] });
export const withVolume = (source: Fields, mounts: Fields[] = []): Fields => ({
  volumes: [{ name: 'data', ...source }],
  containers: [container({ volumeMounts: mounts })],
});
