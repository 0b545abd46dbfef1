// Where the generated requests go: an API server with a namespace that a tenant may do anything in, a custom kind in it, and
// things outside of it that nothing may touch. What is stored is read as text, to be compared.

import { statSync } from 'node:fs';
import { ServerResponse } from 'node:http';
import { queryObjects } from 'node:v8';
import { StatusError } from '../../../apiserver/errors.ts';
import { RESOURCE_KINDS } from '../../../apiserver/kinds/index.ts';
import { View } from '../../../apiserver/registry/registry.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { at, type Credentials, type TestApiServer } from '../../support/api-server.ts';
import { seededRandom } from '../random.ts';
import { EXAMPLES } from './examples.ts';
import { TARGETS, WIDGETS } from './requests.ts';
import { objectOf, SANDBOX, type Target } from './values.ts';

const OUTSIDE = 'outside';
/** Kinds with which the tenant could take its own rights away. Their writes are tried as dry runs. */
const OWN_RIGHTS = ['namespaces', 'roles', 'rolebindings'];
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const FILL_TRIES = 10;

const rootOf = ({ group, version }: Target): string => (group === '' ? `/api/${version}` : `/apis/${group}/${version}`);

const WIDGET_SCHEMA = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer', minimum: 0, default: 1 },
        replicas: { type: 'integer' },
        tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
      'x-kubernetes-validations': [{ rule: '!has(self.size) || self.size < 40', message: 'too large' }],
    },
    status: { type: 'object', properties: { replicas: { type: 'integer' } } },
  },
};
const WIDGET_DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${WIDGETS.plural}.${WIDGETS.group}` },
  spec: {
    group: WIDGETS.group,
    names: { kind: WIDGETS.kind, plural: WIDGETS.plural },
    scope: 'Namespaced',
    versions: [
      {
        name: WIDGETS.version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: WIDGET_SCHEMA },
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
      },
    ],
  },
};

function rulesOf(): object[] {
  return TARGETS.filter(({ namespaced }) => namespaced).map(({ group, plural }) => ({
    apiGroups: [group],
    resources: [plural, `${plural}/*`],
    verbs: OWN_RIGHTS.includes(plural) ? ['get', 'list', 'watch'] : ['*'],
  }));
}

function itemsOf(list: unknown): unknown[] {
  const items = at(list, 'items');
  return Array.isArray(items) ? items : [];
}

interface StoredText {
  readonly path: string;
  /** '' for what is in none. */
  readonly namespace: string;
  readonly kind: string;
  readonly text: string;
}

export interface StoredState {
  /** By path. */
  readonly outside: ReadonlyMap<string, string>;
  /** By group and plural. */
  readonly examples: ReadonlyMap<string, readonly string[]>;
  /** Paths. */
  readonly leftovers: readonly string[];
}

/** Kinds without lists. */
const UNLISTED: ReadonlySet<Target> = new Set(RESOURCE_KINDS.filter(({ verbs }) => verbs?.includes('list') === false));

/** The API server renews it by itself every few seconds. */
const OWN_LEASE = /\/namespaces\/kube-system\/leases\/apiserver-/;

export class FuzzStand {
  readonly #stand: TestApiServer;
  readonly tenant: Credentials;
  /** Paths of what the sandbox has at the start. */
  #empty = new Set<string>();

  private constructor(stand: TestApiServer, tenant: Credentials) {
    this.#stand = stand;
    this.tenant = tenant;
  }

  static async make(stand: TestApiServer, seed: number): Promise<FuzzStand> {
    const fuzz = new FuzzStand(stand, await stand.certificate('tenant'));
    for (const name of [SANDBOX, OUTSIDE]) {
      await stand.admit('POST', '/api/v1/namespaces', { kind: 'Namespace', apiVersion: 'v1', metadata: { name } });
      const account = { kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'default' } };
      await stand.admit('POST', `/api/v1/namespaces/${name}/serviceaccounts`, account);
    }
    const api = { apiVersion: 'rbac.authorization.k8s.io/v1' };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'tenant' };
    await stand.admit('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', WIDGET_DEFINITION);
    await stand.admit('POST', `${RBAC}/clusterroles`, {
      ...{ ...api, kind: 'ClusterRole', metadata: { name: 'tenant' } },
      rules: rulesOf(),
    });
    await stand.admit('POST', `${RBAC}/namespaces/${SANDBOX}/rolebindings`, {
      ...{ ...api, kind: 'RoleBinding', metadata: { name: 'tenant' }, roleRef },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'tenant' }],
    });
    await fuzz.#fillOutside(seed);
    fuzz.#empty = new Set((await fuzz.look()).leftovers);
    return fuzz;
  }

  /** One object of each kind outside of the sandbox: an example, or made as the requests' are, until one is valid. */
  async #fillOutside(seed: number): Promise<void> {
    const random = seededRandom(seed);
    for (const target of new Set(TARGETS)) {
      const example = getOwn(EXAMPLES, `${target.group}/${target.plural}`);
      const place = target.namespaced ? `/namespaces/${OUTSIDE}` : '';
      const path = `${rootOf(target)}${place}/${target.plural}`;
      const apiVersion = target.group === '' ? target.version : `${target.group}/${target.version}`;
      for (let tries = 0; tries < (target.namespaced ? FILL_TRIES : 1); tries++) {
        const made = example ?? objectOf(target, 'keeper', random, { values: 0, fields: 0 });
        const body = { ...made, apiVersion, kind: target.kind, metadata: { name: 'keeper' } };
        if (!target.namespaced && example === undefined) continue;
        const { code, text } = await this.#stand.call({ method: 'POST', path, as: this.#stand.admin, body });
        if (code < 300 || code === 405 || code === 409) break;
        if (example !== undefined) throw new Error(`${path}: ${code} ${text}`);
      }
    }
  }

  async #stored(): Promise<StoredText[]> {
    const found: StoredText[] = [];
    const targets = [...new Set(TARGETS)].filter((target) => !UNLISTED.has(target));
    const lists = await Promise.all(
      targets.map(async (target) => {
        const root = rootOf(target);
        return [target, root, await this.#stand.admit('GET', `${root}/${target.plural}`)] as const;
      }),
    );
    for (const [target, root, list] of lists) {
      for (const item of itemsOf(list)) {
        const namespace = String(at(item, 'metadata', 'namespace') ?? '');
        const place = target.namespaced ? `/namespaces/${namespace}` : '';
        const path = `${root}${place}/${target.plural}/${at(item, 'metadata', 'name')}`;
        const apiVersion = root.replace(/^\/apis?\//, '');
        const text = JSON.stringify({ apiVersion, kind: target.kind, ...Object.assign({}, item) });
        found.push({ path, namespace, kind: `${target.group}/${target.plural}`, text });
      }
    }
    return found;
  }

  /** Everything that is stored: what no request may change, what the sandbox has beyond its start, and examples. */
  async look(): Promise<StoredState> {
    const all = await this.#stored();
    const outside = new Map<string, string>();
    const examples = new Map<string, string[]>();
    const leftovers: string[] = [];
    for (const { path, namespace, kind, text } of all) {
      if (OWN_LEASE.test(path)) continue;
      examples.set(kind, [...(examples.get(kind) ?? []), text]);
      if (namespace !== SANDBOX) outside.set(path, text);
      else if (!this.#empty.has(path)) leftovers.push(path);
    }
    return { outside, examples, leftovers };
  }

  /** Takes everything out of the sandbox, whatever its finalizers. */
  async reset(): Promise<void> {
    const admin = this.#stand.admin;
    const remove = async (path: string): Promise<void> => {
      const gone = await this.#stand.call({ method: 'DELETE', path: `${path}?gracePeriodSeconds=0`, as: admin });
      if (gone.code === 404 || !gone.text.includes('"finalizers"')) return;
      const headers = { 'content-type': 'application/merge-patch+json' };
      const body = { metadata: { finalizers: null } };
      await this.#stand.call({ method: 'PATCH', path, as: admin, headers, body });
    };
    await Promise.all((await this.look()).leftovers.map(remove));
    const body = { kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'default' } };
    await this.#stand.call({ method: 'POST', path: `/api/v1/namespaces/${SANDBOX}/serviceaccounts`, as: admin, body });
  }

  /** Bytes of the store's file. */
  storedBytes(): number {
    return statSync(this.#stand.storePath).size;
  }

  /** Of requests: how many of their parts are still in memory, and all that is. After a garbage collection. */
  retained(): { readonly parts: number; readonly heapBytes: number } {
    const parts = [StatusError, View, ServerResponse].map((each) => queryObjects(each, { format: 'count' }));
    return { parts: parts.reduce((sum, count) => sum + Number(count), 0), heapBytes: process.memoryUsage().heapUsed };
  }
}
