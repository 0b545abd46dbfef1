// What is configured, from the stored FlowSchemas and PriorityLevelConfigurations: the schemas in the order in which they
// are tried, the levels, and what schemas' conditions have to be. Pure.

import type { FlowSchema, PriorityLevelConfiguration } from 'kubernetes-types/flowcontrol/v1';
import { getOwn } from '../../lib/own-property.ts';
import { FLOW_SCHEMAS, PRIORITY_LEVELS } from '../kinds/flowcontrol/default-objects.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { as } from '../kinds/shapes.ts';
import type { LevelSpec } from './concurrency.ts';
import type { SchemaSpec } from './match.ts';

export interface Schema {
  readonly name: string;
  /** '' while the object is not there yet. */
  readonly uid: string;
  readonly spec: SchemaSpec;
  readonly level: string;
}

export interface Level {
  readonly name: string;
  readonly uid: string;
  readonly spec: LevelSpec;
}

/** What the condition Dangling of a schema has to be. */
export interface Dangling {
  readonly schema: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export interface FlowConfig {
  /** As they are tried: the first that matches counts. */
  readonly schemas: readonly Schema[];
  readonly levels: ReadonlyMap<string, Level>;
  readonly dangling: readonly Dangling[];
}

const MANDATORY = ['exempt', 'catch-all'] as const;

/** Whether the level's parts go together; others are taken for absent. */
function isWhole(name: string, { type, exempt, limited }: LevelSpec): boolean {
  if ((type === 'Exempt') !== (exempt !== undefined) || (type === 'Limited') !== (limited !== undefined)) return false;
  if ((type === 'Exempt') !== (name === 'exempt')) return false;
  if (limited === undefined) return true;
  const { limitResponse } = limited;
  return (limitResponse?.type === 'Reject') === (limitResponse?.queuing === undefined);
}

function levelsOf(objects: Iterable<Readonly<KubeObject>>): Map<string, Level> {
  const levels = new Map<string, Level>();
  for (const object of objects) {
    const { metadata, spec = {} } = as<PriorityLevelConfiguration>(object, 'PriorityLevelConfiguration');
    const { name = '', uid = '' } = metadata;
    if (isWhole(name, spec)) levels.set(name, { name, uid, spec });
  }
  for (const name of MANDATORY) {
    const spec = getOwn(PRIORITY_LEVELS.mandatory, name);
    if (!levels.has(name) && spec !== undefined) levels.set(name, { name, uid: '', spec });
  }
  return levels;
}

function danglingOf(schema: string, level: string, found: boolean): Dangling {
  const about = `This FlowSchema references the PriorityLevelConfiguration object named "${level}"`;
  return found
    ? { schema, status: 'False', reason: 'Found', message: `${about} and it exists` }
    : { schema, status: 'True', reason: 'NotFound', message: `${about} but there is no such object` };
}

function schemaOf(object: Readonly<KubeObject>): Schema {
  const { metadata, spec = {} } = as<FlowSchema>(object, 'FlowSchema');
  const { name = '', uid = '' } = metadata;
  return { name, uid, spec, level: spec.priorityLevelConfiguration?.name ?? '' };
}

export function flowConfig(
  schemaObjects: Iterable<Readonly<KubeObject>>,
  levelObjects: Iterable<Readonly<KubeObject>>,
): FlowConfig {
  const levels = levelsOf(levelObjects);
  const stored = Array.from(schemaObjects, schemaOf);
  const dangling = stored.map(({ name, level }) => danglingOf(name, level, levels.has(level)));
  const missing = MANDATORY.filter((name) => !stored.some((schema) => schema.name === name));
  const added = missing.map((name) => ({
    name,
    uid: '',
    spec: getOwn(FLOW_SCHEMAS.mandatory, name) ?? {},
    level: name,
  }));
  const precedence = ({ spec }: Schema): number => spec.matchingPrecedence ?? 1000;
  const schemas = [...stored, ...added]
    .filter(({ level }) => levels.has(level))
    .sort((a, b) => precedence(a) - precedence(b) || (a.name < b.name ? -1 : 1));
  return { schemas, levels, dangling };
}
