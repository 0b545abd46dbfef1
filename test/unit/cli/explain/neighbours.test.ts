// Nodes that are refused because of the pods that are there, in the scheduler's sense.

import { describe, expect, test } from 'vitest';
import { Neighbours } from '../../../../cli/explain/neighbours.ts';
import type { Node, Pod, PodSpec } from '../../../../client/types.ts';
import { node, pod } from './facts.ts';

const HOST = 'kubernetes.io/hostname';
const inZone = (name: string, zone: string): Node =>
  node(name, { metadata: { ...node(name).metadata, labels: { [HOST]: name, zone } } });
const nodes = [inZone('n1', 'a'), inZone('n2', 'a'), inZone('n3', 'b'), node('n4')];

const labelled = (name: string, nodeName: string, app: string, spec: Partial<PodSpec> = {}): Pod =>
  pod({ meta: { name, labels: { app } }, spec: { nodeName, ...spec } });
const selector = (app: string) => ({ matchLabels: { app } });
const term = (app: string, topologyKey: string, more: object = {}) => ({
  requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: selector(app), ...more }],
});
const near = (app: string, key: string, more: object = {}): Partial<PodSpec> => ({
  affinity: { podAffinity: term(app, key, more) },
});
const away = (app: string, key: string): Partial<PodSpec> => ({ affinity: { podAntiAffinity: term(app, key) } });
const spread = (maxSkew: number, more: object = {}): Partial<PodSpec> => ({
  topologySpreadConstraints: [
    { topologyKey: 'zone', maxSkew, whenUnsatisfiable: 'DoNotSchedule', labelSelector: selector('web'), ...more },
  ],
});

const db = labelled('db', 'n1', 'db');
const web1 = labelled('web-1', 'n1', 'web');
const web2 = labelled('web-2', 'n2', 'web');

interface Case {
  readonly what: string;
  readonly spec: Partial<PodSpec>;
  readonly placed: readonly Pod[];
  /** Of n1, n2, n3 and n4. */
  readonly refused: readonly (RegExp | undefined)[];
}

const noZone = /the node has no such label/;

const cases: readonly Case[] = [
  { what: 'nothing is demanded', spec: {}, placed: [db], refused: [undefined, undefined, undefined, undefined] },
  {
    what: 'affinity over zones',
    spec: near('db', 'zone'),
    placed: [db],
    refused: [undefined, undefined, /wants a pod with app=db in zone=b; there are such in a/, noZone],
  },
  {
    what: 'affinity to a pod that is not there',
    spec: near('db', HOST),
    placed: [web1],
    refused: ['n1', 'n2', 'n3', 'n4'].map((name) => new RegExp(`app=db in ${HOST}=${name}; there is none`)),
  },
  {
    what: 'affinity to its own kind: the first may go anywhere',
    spec: near('web', HOST),
    placed: [db],
    refused: [undefined, undefined, undefined, undefined],
  },
  {
    what: 'affinity to a pod of another namespace',
    spec: near('db', HOST, { namespaces: ['other'] }),
    placed: [db],
    refused: [/there is none/, /there is none/, /there is none/, /there is none/],
  },
  {
    what: 'namespaces by their labels, which are not known here',
    spec: near('db', HOST, { namespaceSelector: { matchLabels: { team: 'x' } } }),
    placed: [],
    refused: [undefined, undefined, undefined, undefined],
  },
  {
    what: 'a selector with expressions, and one for any pod',
    spec: {
      affinity: {
        podAffinity: term('db', HOST, {
          labelSelector: {
            matchLabels: { app: 'db' },
            matchExpressions: [{ key: 'tier', operator: 'In', values: ['x', 'y'] }],
          },
        }),
        podAntiAffinity: term('db', HOST, { labelSelector: {} }),
      },
    },
    placed: [
      labelled('db', 'n1', 'db'),
      pod({ meta: { name: 'x', labels: { app: 'db', tier: 'x' } }, spec: { nodeName: 'n2' } }),
    ],
    refused: [
      /with app=db and tier In \(x, y\) in/,
      /wants no pod with any labels in .*=n2; pod demo\/x is there/,
      /such in n2/,
      /such in n2/,
    ],
  },
  {
    what: 'anti-affinity over zones',
    spec: away('db', 'zone'),
    placed: [db],
    refused: [
      /wants no pod with app=db in zone=a; pod demo\/db is there/,
      /pod demo\/db is there/,
      undefined,
      undefined,
    ],
  },
  {
    what: 'the anti-affinity of another pod',
    spec: {},
    placed: [labelled('shy', 'n3', 'db', away('web', HOST))],
    refused: [
      undefined,
      undefined,
      /pod demo\/shy is in kubernetes.io\/hostname=n3, and its anti-affinity keeps away pods with app=web/,
      undefined,
    ],
  },
  {
    what: 'topology spread',
    spec: spread(1),
    placed: [web1],
    refused: [
      /topology spread over zone: a has 1 pod with app=web, the fewest of a domain are 0, and maxSkew is 1/,
      /a has 1 pod/,
      undefined,
      noZone,
    ],
  },
  {
    what: 'topology spread with room',
    spec: spread(2),
    placed: [web1],
    refused: [undefined, undefined, undefined, noZone],
  },
  {
    what: 'topology spread over more domains than there are',
    spec: spread(2, { minDomains: 3 }),
    placed: [web1, web2, labelled('web-3', 'n3', 'web')],
    refused: [/a has 2 pods .* fewest of a domain are 0/, /a has 2 pods/, undefined, noZone],
  },
  {
    what: 'topology spread that is a wish',
    spec: spread(1, { whenUnsatisfiable: 'ScheduleAnyway' }),
    placed: [web1, web2],
    refused: [undefined, undefined, undefined, undefined],
  },
  {
    what: 'topology spread does not count what is on its way out, nor zones that the pod may not go to',
    spec: { ...spread(1), nodeSelector: { zone: 'a' } },
    placed: [{ ...web1, metadata: { ...web1.metadata, deletionTimestamp: '2026-01-02T12:00:00Z' } }],
    refused: [undefined, undefined, undefined, noZone],
  },
];

describe.each(cases)('$what', ({ spec, placed, refused }) => {
  test.each(nodes.map((each, index) => ({ name: each.metadata.name, each, index })))('$name', ({ each, index }) => {
    const own = pod({ meta: { labels: { app: 'web' } }, spec: { nodeName: '', ...spec } });
    const detail = new Neighbours(own, nodes, placed).refusal(each)?.detail;
    const expected = refused[index];
    if (expected === undefined) expect(detail).toBeUndefined();
    else expect(detail).toMatch(expected);
  });
});
