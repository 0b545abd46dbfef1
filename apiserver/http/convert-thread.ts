// The thread that converts what is large: one text at a time, with memory of its own.

import { parentPort } from 'node:worker_threads';
import { type Conversion, ConversionError, convert } from './convert.ts';

export interface ConversionRequest {
  readonly conversion: Conversion;
  readonly text: string;
}

export type ConversionReply =
  | { readonly text: string }
  | { readonly kind: ConversionError['kind'] | 'failed'; readonly message: string };

function reply({ conversion, text }: ConversionRequest): ConversionReply {
  try {
    return { text: convert(conversion, text) };
  } catch (error) {
    if (error instanceof ConversionError) return { kind: error.kind, message: error.message };
    return { kind: 'failed', message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

parentPort?.on('message', (request: ConversionRequest) => parentPort?.postMessage(reply(request)));
