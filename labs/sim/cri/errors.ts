// How a simulated runtime refuses. It only makes errors.

import { RuntimeError } from '../../../agent/ports/runtime.ts';

/** As the adapter sees a gRPC status: the method, its code by name, and the runtime's words. */
export function criError(call: string, code: string, message: string): RuntimeError {
  return new RuntimeError(call, code, message);
}
