// A request to the simulated API server that may be too late: its object is gone or has changed meanwhile, or its namespace
// goes. Anything else that is wrong with it is thrown.

import { ApiError } from '../../../client/errors.ts';
import { isNamespaceTerminating } from '../../../controlplane/controllers/shared/namespace-terminating.ts';
import type { SimControlPlaneServer, SimRequest } from './server.ts';

/** What makes a request late: gone, conflict, too many disruptions. */
const LATE: ReadonlySet<number> = new Set([404, 409, 429]);

/** The answer, or undefined where it came too late. */
export async function attempt(server: SimControlPlaneServer, actor: string, request: SimRequest): Promise<unknown> {
  try {
    return await server.execute(actor, request);
  } catch (error) {
    if (error instanceof ApiError && (LATE.has(error.code) || isNamespaceTerminating(error))) return undefined;
    throw error;
  }
}
