// Where webhooks are: the rules for URLs and services that admission and conversion have in common
// (k8s.io/apiserver/pkg/util/webhook). Pure.

import { X509Certificate } from 'node:crypto';
import { addErrors, invalid, required } from './field-errors.ts';
import { dns1123Subdomain, portNumber } from './names.ts';
import type { FieldError } from './resource.ts';

/** A webhook's URL, in upstream's words. */
export function validateUrl(field: string, text: string): FieldError[] {
  const form = '; desired format: https://host[/path]';
  // What has no host Go reads, and JavaScript does not.
  const hostless = /^(?:(https?):(?:\/\/)?)?[\w.~/-]*$/i.exec(text);
  if (hostless !== null && !URL.canParse(text) && !text.startsWith('//')) {
    const scheme = hostless[1] ?? '';
    return [
      ...(scheme === 'https' ? [] : [invalid(field, scheme, `'https' is the only allowed URL scheme${form}`)]),
      invalid(field, '', `host must be specified${form}`),
    ];
  }
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

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----\s*\n([^-]*)-----END \1-----[ \t]*(?:\r?\n|$)/g;

/** Why certificates cannot be checked with this bundle (PEM in base64), as client-go words it; undefined where they can. */
function bundleProblem(bundle: string): string | undefined {
  const pem = Buffer.from(bundle, 'base64').toString('utf8');
  const blocks = [...pem.matchAll(PEM_BLOCK)];
  const certificates = blocks.filter(([, type, body = '']) => type === 'CERTIFICATE' && !body.includes(':'));
  if (certificates.some(([block]) => isCertificate(block))) return undefined;
  const last = blocks.at(-1);
  const end = last === undefined ? 0 : last.index + last[0].length;
  if (certificates.length > 0) return 'failed to parse certificate: x509: malformed certificate';
  return end < pem.length ? 'unable to parse bytes as PEM block' : 'no valid certificate authority data seen';
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).subject !== undefined;
  } catch {
    // A block that does not parse is no certificate.
    return false;
  }
}

/** An empty bundle is none: the machine's CAs count. */
export function validateBundle(field: string, bundle: string): FieldError[] {
  const problem = bundle === '' ? undefined : bundleProblem(bundle);
  return problem === undefined ? [] : [invalid(field, bundle, `unable to load root certificates: ${problem}`)];
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
