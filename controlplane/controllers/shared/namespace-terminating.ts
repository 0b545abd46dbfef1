// Whether the server refused to create something because the namespace goes: trying again cannot mend it. Pure.

import { ApiError } from '../../../client/errors.ts';

export function isNamespaceTerminating(error: unknown): boolean {
  const causes = error instanceof ApiError ? (error.status.details?.causes ?? []) : [];
  return causes.some(({ reason }) => reason === 'NamespaceTerminating');
}
