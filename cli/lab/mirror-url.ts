// The URL of --registry-mirror. Pure.

import { UserError } from '../../lib/errors.ts';

/** Of --registry-mirror. Throws UserError for what is no URL of a server. */
export function mirrorUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== '' ||
    url.search !== '' ||
    url.hash !== ''
  ) {
    throw new UserError(
      `--registry-mirror: "${text}" is no URL such as https://mirror.example.com or http://10.0.0.1:5000`,
    );
  }
  return text.replace(/\/$/, '');
}
