// Levels and versions of the Pod Security Standards, and what the labels of a namespace ask for
// (k8s.io/pod-security-admission/api). Pure.

import { getOwn } from '../../../lib/own-property.ts';
import { invalid } from '../../kinds/field-errors.ts';
import type { FieldError } from '../../kinds/resource.ts';

const LEVELS = ['privileged', 'baseline', 'restricted'] as const;
export type Level = (typeof LEVELS)[number];

/** The minor version of a policy, v1.<minor>; Infinity is "latest". */
export type Version = number;
export const LATEST: Version = Number.POSITIVE_INFINITY;

export interface LevelVersion {
  readonly level: Level;
  readonly version: Version;
}

export interface Policy {
  readonly enforce: LevelVersion;
  readonly audit: LevelVersion;
  readonly warn: LevelVersion;
}

const PREFIX = 'pod-security.kubernetes.io/';
const PRIVILEGED: LevelVersion = { level: 'privileged', version: LATEST };
/** Of a namespace without labels, where nothing is configured. */
export const DEFAULT_POLICY: Policy = { enforce: PRIVILEGED, audit: PRIVILEGED, warn: PRIVILEGED };
export const LEVELS_IN_WORDS = LEVELS.join(', ');

/** "restricted:v1.29" */
export function shownLevel({ level, version }: LevelVersion): string {
  return `${level}:${version === LATEST ? 'latest' : `v1.${version}`}`;
}

/** Positive when `a` is the stricter. */
export function compareLevels(a: Level, b: Level): number {
  return LEVELS.indexOf(a) - LEVELS.indexOf(b);
}

export function sameLevel(a: LevelVersion, b: LevelVersion): boolean {
  return a.level === b.level && a.version === b.version;
}

export function parseLevel(text: string): Level | undefined {
  return LEVELS.find((level) => level === text);
}

export function parseVersion(text: string): Version | undefined {
  if (text === 'latest') return LATEST;
  const match = /^v1\.([0-9]|[1-9][0-9]*)$/.exec(text);
  return match === null ? undefined : Number(match[1]);
}

/**
 * The policy of a namespace with these labels, which has `defaults` where they name nothing, and what is wrong with them. There is always a policy: a level that cannot
 * be read is enforced as "restricted", and audited and warned about as "privileged".
 */
export function policyOf(
  labels: Readonly<Record<string, string>> | undefined,
  defaults: Policy = DEFAULT_POLICY,
): {
  policy: Policy;
  errors: FieldError[];
} {
  const errors: FieldError[] = [];
  const wrong = (label: string, value: string, detail: string): void => {
    errors.push(invalid(`metadata.labels[${label}]`, value, detail));
  };
  const read = (
    mode: 'enforce' | 'audit' | 'warn',
    onError: Level,
  ): LevelVersion & { readonly hasLevel: boolean; readonly hasVersion: boolean } => {
    const [levelLabel, versionLabel] = [`${PREFIX}${mode}`, `${PREFIX}${mode}-version`];
    const [levelText, versionText] = [getOwn(labels, levelLabel), getOwn(labels, versionLabel)];
    const level = levelText === undefined ? defaults[mode].level : parseLevel(levelText);
    const version = versionText === undefined ? defaults[mode].version : parseVersion(versionText);
    if (level === undefined) wrong(levelLabel, levelText ?? '', `must be one of ${LEVELS_IN_WORDS}`);
    if (version === undefined) wrong(versionLabel, versionText ?? '', 'must be "latest" or "v1.x"');
    return {
      level: level ?? onError,
      version: version ?? LATEST,
      hasLevel: levelText !== undefined && (mode === 'warn' || level !== undefined),
      hasVersion: versionText !== undefined,
    };
  };
  const enforce = read('enforce', 'restricted');
  const audit = read('audit', 'privileged');
  const { hasLevel, hasVersion, ...own } = read('warn', 'privileged');
  // What is enforced is warned about too, for the sake of workloads whose pods come later.
  const follows = !hasLevel && enforce.hasLevel && compareLevels(enforce.level, own.level) > 0;
  const warn = follows ? { level: enforce.level, version: hasVersion ? own.version : enforce.version } : own;
  const plain = ({ level, version }: LevelVersion): LevelVersion => ({ level, version });
  return { policy: { enforce: plain(enforce), audit: plain(audit), warn }, errors };
}

export function isFullyPrivileged({ enforce, audit, warn }: Policy): boolean {
  return [enforce, audit, warn].every(({ level }) => level === 'privileged');
}
