// `nodelet csi-call`: one call of a CSI driver by hand, request and answer as JSON. For exercises.

import { Command } from 'commander';
import { UserError } from '../../lib/errors.ts';

/** A request as it was typed. Throws UserError. Pure. */
export function parseRequest(text: string): object {
  try {
    const request: unknown = JSON.parse(text);
    if (typeof request === 'object' && request !== null && !Array.isArray(request)) return request;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UserError(`the request is not JSON: ${error.message}`);
  }
  throw new UserError('the request is not an object of JSON');
}

export function csiCallCommand(): Command {
  return new Command('csi-call')
    .description('call a method of a CSI driver, and print its answer')
    .argument('<method>', 'NodeStageVolume, GetPluginInfo, …')
    .argument('[request]', 'JSON with the names of the specification', '{}')
    .option('--endpoint <socket>', 'the driver’s socket; otherwise the variable CSI_ENDPOINT')
    .action(async (method: string, request: string, flags: { readonly endpoint?: string }) => {
      const endpoint = flags.endpoint ?? process.env['CSI_ENDPOINT'];
      if (endpoint === undefined) throw new UserError('which driver? Give --endpoint, or set CSI_ENDPOINT');
      const { connectCsi, isCsiError } = await import('../../csi/client.ts');
      const client = connectCsi(endpoint);
      try {
        const services = [client.identity, client.controller, client.node];
        const methods = new Map<string, unknown>(services.flatMap((service) => Object.entries(service)));
        const call = methods.get(method);
        if (typeof call !== 'function') {
          throw new UserError(`CSI has no method "${method}": ${[...methods.keys()].join(', ')}`);
        }
        const answer: unknown = await call(parseRequest(request));
        process.stdout.write(`${JSON.stringify(answer, undefined, 2)}\n`);
      } catch (error) {
        if (isCsiError(error)) throw new UserError(`${error.call}: ${error.code}: ${error.message}`);
        throw error;
      } finally {
        client.close();
      }
    });
}
