// The controller of token Secrets: who makes a Secret of type kubernetes.io/service-account-token for a service account finds a
// token, the CA and the namespace in it; with the account its Secrets go. secret.ts decides.

import { createPrivateKey, createPublicKey } from 'node:crypto';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { objectKey } from '../../../client/store.ts';
import type { Secret } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { keyIdOf, signToken } from '../../../lib/jwt.ts';
import type { Informers, ServiceAccount } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { accountOf, belongsTo, filled, secretClaims } from './secret.ts';

type Needed = Pick<Informers, 'serviceAccounts' | 'tokenSecrets'>;

/** Keys are those of Secrets. */
export class ServiceAccountTokenController implements Controller {
  readonly name = 'serviceaccount-token';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #sign: (claims: object) => string;
  readonly #rootCa: string | undefined;

  /** `key`: PEM of an EC P-256 or RSA key; `rootCa`: PEM. Throws for a key that does not parse. */
  constructor(context: ControllerContext, informers: Needed, key: string, rootCa: string | undefined) {
    this.#context = context;
    this.#informers = informers;
    this.#rootCa = rootCa;
    const signing = createPrivateKey(key);
    const keyId = keyIdOf(createPublicKey(signing));
    this.#sign = (claims) => signToken(signing, keyId, claims);
    this.queue = new WorkQueue({ clock: context.clock });
    informers.tokenSecrets.onChange((changes) => {
      for (const { type, object } of changes) if (type !== 'removed') this.queue.add(objectKey(object));
    });
    informers.serviceAccounts.onChange((changes) => {
      for (const { type, object } of changes) if (type !== 'modified') this.#enqueueSecrets(object);
    });
  }

  #enqueueSecrets({ metadata }: ServiceAccount): void {
    for (const secret of this.#informers.tokenSecrets.list()) {
      if (secret.metadata.namespace !== metadata.namespace) continue;
      if (accountOf(secret)?.name === metadata.name) this.queue.add(objectKey(secret));
    }
  }

  async sync(key: string): Promise<void> {
    const secret = this.#informers.tokenSecrets.get(key);
    const named = secret && accountOf(secret);
    if (secret === undefined || named === undefined || secret.metadata.deletionTimestamp !== undefined) return;
    const account = await this.#account(secret.metadata.namespace ?? '', named.name);
    if (account === undefined || !belongsTo(secret, account.metadata)) await this.#delete(secret);
    else await this.#fill(secret, account);
  }

  /** That an account is gone only the server can say: the Secret may have been seen before it. */
  async #account(namespace: string, name: string): Promise<ServiceAccount | undefined> {
    const known = this.#informers.serviceAccounts.get(`${namespace}/${name}`);
    if (known !== undefined) return known;
    try {
      return await this.#context.client.get<ServiceAccount>(resourcePath('v1', 'serviceaccounts', { namespace, name }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #delete({ metadata }: Secret): Promise<void> {
    const { namespace = '', name, uid } = metadata;
    try {
      await this.#context.client.delete(resourcePath('v1', 'secrets', { namespace, name }), { preconditions: { uid } });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #fill(secret: Secret, { metadata }: ServiceAccount): Promise<void> {
    const object = filled(secret, metadata, this.#rootCa, () => this.#sign(secretClaims(secret, metadata)));
    if (object === undefined) return;
    const { namespace = '', name } = secret.metadata;
    try {
      const path = resourcePath('v1', 'secrets', { namespace, name });
      await this.#context.client.replace(path, { ...object, apiVersion: 'v1', kind: 'Secret' });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
