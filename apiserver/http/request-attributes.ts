// What the authorizers are given of a request for a resource. Pure.

import type { Attributes } from '../auth/attributes.ts';
import { StatusError } from '../errors.ts';
import { parseFieldSelector } from '../registry/selectors.ts';
import type { ResourceRequest } from './request.ts';

/**
 * The attributes for the authorizer. A list, watch or deletion of a collection whose field selector requires one name is
 * a request for that object, as for a kubelet's secrets. A selector that cannot be parsed restricts nothing here and is
 * 400 later.
 */
export function attributesOf(request: ResourceRequest): Attributes {
  const { verb, group, resource, subresource, namespace, name, query } = request;
  const attributes = { verb, group, resource, subresource, namespace, name };
  const selector = query.get('fieldSelector') ?? '';
  if (selector === '' || !['list', 'watch', 'deletecollection'].includes(verb)) return attributes;
  try {
    const fields = parseFieldSelector(selector);
    const named = fields.find(({ field, equal }) => field === 'metadata.name' && equal)?.value;
    return { ...attributes, name: name === '' ? (named ?? '') : name, fields };
  } catch (error) {
    if (error instanceof StatusError) return attributes;
    throw error;
  }
}
