// The --requestheader-… flags of `nodelet apiserver`, by kube-apiserver's names.

import type { Command } from 'commander';
import type { RequestHeaderOptions } from '../../apiserver/auth/request-header.ts';

export interface RequestHeaderFlags {
  readonly requestheaderClientCaFile?: string;
  readonly requestheaderAllowedNames?: readonly string[];
  readonly requestheaderUsernameHeaders?: readonly string[];
  readonly requestheaderUidHeaders?: readonly string[];
  readonly requestheaderGroupHeaders?: readonly string[];
  readonly requestheaderExtraHeadersPrefix?: readonly string[];
}

/** Commas between; an empty text is an empty list, as of kube-apiserver's flags. */
function listed(text: string, before: readonly string[] = []): readonly string[] {
  return text === '' ? before : [...before, ...text.split(',')];
}

export function addRequestHeaderFlags(command: Command): void {
  command
    .option(
      '--requestheader-client-ca-file <file>',
      'clients with a certificate of these CAs may name in headers for whom they send a request; read again when it changes',
    )
    .option('--requestheader-allowed-names <names>', 'common names of such certificates (default: any)', listed)
    .option(
      '--requestheader-username-headers <names>',
      'headers with the user, the first that is there: X-Remote-User',
      listed,
    )
    .option('--requestheader-uid-headers <names>', 'headers with the uid: X-Remote-Uid', listed)
    .option('--requestheader-group-headers <names>', 'headers with groups, all of them: X-Remote-Group', listed)
    .option('--requestheader-extra-headers-prefix <names>', 'how headers with extras begin: X-Remote-Extra-', listed);
}

/** Nothing where none of the flags is given. */
export function requestHeaderOptions(flags: RequestHeaderFlags): { readonly requestHeader?: RequestHeaderOptions } {
  const requestHeader: RequestHeaderOptions = {
    ...(flags.requestheaderClientCaFile === undefined ? {} : { clientCaFile: flags.requestheaderClientCaFile }),
    ...(flags.requestheaderAllowedNames === undefined ? {} : { allowedNames: flags.requestheaderAllowedNames }),
    ...(flags.requestheaderUsernameHeaders === undefined
      ? {}
      : { usernameHeaders: flags.requestheaderUsernameHeaders }),
    ...(flags.requestheaderUidHeaders === undefined ? {} : { uidHeaders: flags.requestheaderUidHeaders }),
    ...(flags.requestheaderGroupHeaders === undefined ? {} : { groupHeaders: flags.requestheaderGroupHeaders }),
    ...(flags.requestheaderExtraHeadersPrefix === undefined
      ? {}
      : { extraHeaderPrefixes: flags.requestheaderExtraHeadersPrefix }),
  };
  return Object.keys(requestHeader).length === 0 ? {} : { requestHeader };
}
