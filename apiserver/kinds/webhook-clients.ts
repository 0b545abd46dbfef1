// Where webhooks are: the rules for URLs and services that admission and conversion have in common
// (k8s.io/apiserver/pkg/util/webhook). Pure.

import { addErrors, invalid, required } from './field-errors.ts';
import { dns1123Subdomain, portNumber } from './names.ts';
import type { FieldError } from './resource.ts';

/** A webhook's URL, in upstream's words. */
export function validateUrl(field: string, text: string): FieldError[] {
  const form = '; desired format: https://host[/path]';
  if (!URL.canParse(text)) return [required(field, `url must be a valid URL: ${JSON.stringify(text)}${form}`)];
  const url = new URL(text);
  const errors: FieldError[] = [];
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== 'https') errors.push(invalid(field, scheme, `'https' is the only allowed URL scheme${form}`));
  if (url.host === '') errors.push(invalid(field, url.host, `host must be specified${form}`));
  if (url.username !== '' || url.password !== '') {
    const user = url.password === '' ? url.username : `${url.username}:${url.password}`;
    errors.push(invalid(field, user, 'user information is not permitted in the URL'));
  }
  if (url.hash !== '') errors.push(invalid(field, url.hash.slice(1), 'fragments are not permitted in the URL'));
  if (url.search !== '') {
    errors.push(invalid(field, url.search.slice(1), 'query parameters are not permitted in the URL'));
  }
  return errors;
}

/** The path of a webhook's service. */
export function validatePath(field: string, path: string): FieldError[] {
  if (path === '' || path === '/') return [];
  if (path === '//') return [invalid(field, path, 'segment[0] may not be empty')];
  const errors = path.startsWith('/') ? [] : [invalid(field, path, "must start with a '/'")];
  const steps = path.slice(1).replace(/\/$/, '').split('/');
  for (const [index, step] of steps.entries()) {
    if (step === '') errors.push(invalid(field, path, `segment[${index}] may not be empty`));
    else for (const why of dns1123Subdomain(step)) errors.push(invalid(field, path, `segment[${index}]: ${why}`));
  }
  return errors;
}

/** The service of a conversion webhook. A name that is missing is reported as a namespace, and the other way, as upstream. */
export function validateService(
  field: string,
  service: { readonly name?: string; readonly namespace?: string; readonly path?: string; readonly port?: number },
): FieldError[] {
  const { name = '', namespace = '', path = '', port = 443 } = service;
  const errors: FieldError[] = [];
  if (namespace === '') errors.push(required(`${field}.name`));
  if (name === '') errors.push(required(`${field}.namespace`));
  const problems = portNumber(port);
  if (problems.length > 0) errors.push(invalid(`${field}.port`, port, `port is not valid: ${problems.join(', ')}`));
  addErrors(errors, validatePath(`${field}.path`, path));
  return errors;
}
