// The secrets that a StorageClass names for the calls of its driver: `csi.storage.k8s.io/<use>-secret-name` and
// `-secret-namespace`, with templates for the claim's and the volume's names. Names are worked out here; reading the
// secrets is one request.

import type { SecretReference } from 'kubernetes-types/core/v1';
import { resourcePath } from '../../../client/paths.ts';
import type { Secret } from '../../../client/types.ts';
import { getOwn } from '../../../lib/own-property.ts';
import type { ControllerContext } from '../../runtime.ts';

export const RESERVED_PREFIX = 'csi.storage.k8s.io/';

/** What a secret is for, as in the parameter's name. */
export type SecretUse =
  | 'provisioner'
  | 'controller-publish'
  | 'node-stage'
  | 'node-publish'
  | 'controller-expand'
  | 'node-expand';

export interface SecretContext {
  readonly volumeName: string;
  readonly claim: {
    readonly name: string;
    readonly namespace: string;
    readonly annotations: Readonly<Record<string, string>>;
  };
}

/** A StorageClass that makes no sense. */
export class ParameterError extends Error {
  override name = 'ParameterError';
}

/**
 * The secret that `parameters` name for a use; undefined when they name none. Throws ParameterError when only half of
 * it is set, or a template uses an unknown variable.
 */
export function secretReference(
  use: SecretUse,
  parameters: Readonly<Record<string, string>>,
  { volumeName, claim }: SecretContext,
): Required<SecretReference> | undefined {
  const [nameKey, namespaceKey] = [`${RESERVED_PREFIX}${use}-secret-name`, `${RESERVED_PREFIX}${use}-secret-namespace`];
  const [name, namespace] = [getOwn(parameters, nameKey), getOwn(parameters, namespaceKey)];
  if (name === undefined && namespace === undefined) return undefined;
  if (name === undefined || namespace === undefined || name === '' || namespace === '') {
    throw new ParameterError(`either name and namespace for ${use} secrets specified, Both must be specified`);
  }
  const both = { 'pv.name': volumeName, 'pvc.namespace': claim.namespace };
  // The provisioner's secret is needed again when the claim is long gone: it may not hang on the claim's annotations.
  const annotations = Object.entries(claim.annotations).map(([key, value]) => [`pvc.annotations['${key}']`, value]);
  const forName = {
    ...both,
    'pvc.name': claim.name,
    ...(use === 'provisioner' ? {} : Object.fromEntries(annotations)),
  };
  return { name: expand(nameKey, name, forName), namespace: expand(namespaceKey, namespace, both) };
}

function expand(key: string, template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\$\{([^}]*)\}/g, (whole, token: string) => {
    const value = getOwn(values, token);
    if (value === undefined)
      throw new ParameterError(
        `error resolving value "${template}" of ${key}: invalid tokens: ["${whole.slice(2, -1)}"]`,
      );
    return value;
  });
}

/** The secret's values as a driver receives them; {} without a reference. Rejects with ApiError, 404 among others. */
export async function readSecret(
  client: ControllerContext['client'],
  reference: SecretReference | undefined,
): Promise<Record<string, string>> {
  if (reference?.name === undefined) return {};
  const { name, namespace = '' } = reference;
  const secret = await client.get<Secret>(resourcePath('v1', 'secrets', { namespace, name }));
  return Object.fromEntries(
    Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  );
}
