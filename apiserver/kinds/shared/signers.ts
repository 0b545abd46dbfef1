// Names of certificate signers, and of the trust bundles that belong to them.

import { invalid, required, tooLong } from '../field-errors.ts';
import { dns1123Label, dns1123Subdomain } from '../names.ts';
import type { FieldError } from '../resource.ts';

/** "example.com/signer-name" (ValidateSignerName). */
export function validateSignerName(field: string, signer: string): FieldError[] {
  if (signer === '') return [required(field)];
  const [domain = '', path, ...more] = signer.split('/');
  if (path === undefined || more.length > 0) {
    return [invalid(field, signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  }
  const errors: FieldError[] = domain.length > 253 ? [tooLong(field, 253)] : [];
  const check = (whole: string, rule: (label: string) => string[]): void => {
    // The first bad label only: the others' messages would be the same.
    const label = whole.split('.').find((one) => rule(one).length > 0);
    if (label === undefined) return;
    const shown = JSON.stringify(label);
    for (const message of rule(label)) errors.push(invalid(field, whole, `validating label ${shown}: ${message}`));
  };
  check(domain, dns1123Label);
  if (!domain.includes('.')) {
    errors.push(invalid(field, domain, 'should be a domain with at least two segments separated by dots'));
  }
  check(path, dns1123Subdomain);
  // The most that a domain, a name and a namespace may have together.
  const most = 253 + 63 + 1 + 253;
  if (signer.length > most) errors.push(tooLong(field, most));
  return errors;
}

/** A signer's bundle is named after it ("example.com:signer-name:bundle"); other names have no colon. */
export function bundleName(name: string): string[] {
  return dns1123Subdomain(name.slice(name.lastIndexOf(':') + 1));
}
