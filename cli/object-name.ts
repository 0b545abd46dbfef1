// Names of objects as commands take them: "demo/web", or "web" alone. Pure.

import { UserError } from '../lib/errors.ts';

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

/** `namespace`: of a name without one. Throws UserError. */
export function parseObjectName(text: string, namespace = 'default'): ObjectName {
  const [first = '', second, ...more] = text.split('/');
  if (more.length > 0 || first === '' || second === '') throw new UserError(`"${text}" is not NAMESPACE/NAME`);
  return second === undefined ? { namespace, name: first } : { namespace: first, name: second };
}
