// What goes wrong before the runtime is called is an error of the pod or the node, not of the runtime: the error states that.

import { errorMessage } from '../../lib/errors.ts';
import { RuntimeError } from '../ports/runtime.ts';
import { isRuntimeError } from './cri-client.ts';

function asRuntimeError(call: string, error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error;
  return new RuntimeError(call, RuntimeError.NOT_CALLED, errorMessage(error), { cause: error });
}

/** Makes a config or a file for `call`; rejects with RuntimeError as the call would. */
export function preparing<T>(call: string, body: () => T): T {
  try {
    return body();
  } catch (error) {
    throw asRuntimeError(call, error);
  }
}

/** The same for what takes more than one turn of the event loop. */
export async function preparingInTurns<T>(call: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    throw asRuntimeError(call, error);
  }
}

/** Stop and remove of what is gone already have nothing left to do. */
export async function unlessGone(body: () => Promise<unknown>): Promise<void> {
  try {
    await body();
  } catch (error) {
    if (!isRuntimeError(error, 'NOT_FOUND')) throw error;
  }
}
