// What the error of a pull means: which of DNS, TCP, TLS and HTTP failed, or what the registry answered. The runtime's words are
// Go's. Pure.

export type PullStep =
  | 'dns'
  | 'tcp'
  | 'timeout'
  | 'tls'
  | 'unauthorized'
  | 'not-found'
  | 'rate'
  | 'http'
  | 'platform'
  | 'disk'
  | 'other';

export interface PullError {
  readonly step: PullStep;
  /** Ends a sentence that begins with the image's name. */
  readonly verdict: string;
  /** Where the request went, where the error has it: a mirror, where the runtime has one. */
  readonly host: string | undefined;
  /** The same as a URL without a path. */
  readonly origin: string | undefined;
  /** The last part of the error: the one that says why. */
  readonly answer: string;
  /** The registry was reached by its name, by TCP and so on. */
  readonly fine: readonly string[];
}

/** The host of the registry of names without one. */
export const DOCKER_HUB = 'registry-1.docker.io';

/** "registry.example.com:5000" of an image name; Docker Hub's for a name without a host. */
export function registryOf(image: string): string {
  const first = image.split('/')[0] ?? '';
  return image.includes('/') && /[.:]|^localhost$/.test(first) ? first : DOCKER_HUB;
}

export function pullError(message: string, image: string): PullError {
  const text =
    /(?:Head|Get|Post) \\?"([^"\\]+)/i.exec(message)?.[1] ??
    /unexpected status(?: code)? (https?:\/\/\S+?):? \d{3} /.exec(message)?.[1];
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
  const host = url?.host;
  const registry = host ?? registryOf(image);
  const answer = message.replace(/^.*failed to (?:do request|pull image|authorize|resolve reference "[^"]*"): /s, '');
  const found = (step: PullStep, verdict: string, ...fine: string[]): PullError => ({
    step,
    verdict,
    host,
    origin: url?.origin,
    answer,
    fine,
  });
  const name = `the name ${registry.replace(/:\d+$/, '')} was found`;
  const reached = `${registry} takes connections`;
  // What has answered may be a mirror of the registry, and the error does not name it.
  const answered = host === undefined ? ['a registry or a mirror of it answered'] : [name, reached];
  if (
    /no such host|server misbehaving|Temporary failure in name resolution|lookup \S+ on .*(i\/o timeout|refused|unreachable)|lookup \S+: /i.test(
      message,
    )
  ) {
    return found('dns', `the name of its registry ${registry} cannot be resolved (DNS)`);
  }
  if (/connection refused/.test(message))
    return found('tcp', `registry ${registry} refuses connections (TCP): nothing listens there`, name);
  if (/no route to host|network is unreachable/.test(message))
    return found('tcp', `registry ${registry} cannot be reached (TCP): no route`, name);
  if (
    /x509|tls:|certificate|server gave HTTP response to HTTPS client|first record does not look like a TLS handshake/i.test(
      message,
    )
  ) {
    const why = /server gave HTTP response|first record/.test(message)
      ? 'it speaks plain HTTP where HTTPS is expected'
      : `its certificate is not accepted: ${/x509: (.*)$/s.exec(message)?.[1] ?? answer}`;
    return found('tls', `registry ${registry} fails in TLS: ${why}`, name, reached);
  }
  if (/i\/o timeout|context deadline exceeded|Client\.Timeout|TLS handshake timeout/i.test(message)) {
    return found('timeout', `registry ${registry} did not answer in time`, name);
  }
  if (/no match for platform|no matching manifest/i.test(message)) {
    return found('platform', 'the registry has it, but not for this node’s processor and system', ...answered);
  }
  if (
    /\b40[13] [A-Z]|unauthorized|authorization failed|denied|no basic auth credentials|insufficient_scope|forbidden/i.test(
      message,
    )
  ) {
    return found('unauthorized', `registry ${registry} refused it`, ...answered);
  }
  if (/not found|manifest unknown|name unknown|\b404 /i.test(message)) {
    return found('not-found', `registry ${registry} has no such image or tag`, ...answered);
  }
  if (/\b429 |toomanyrequests|rate limit/i.test(message)) {
    return found('rate', `registry ${registry} refuses more pulls for now: its rate limit is used up`, ...answered);
  }
  if (/no space left on device/i.test(message))
    return found('disk', 'the node has no room for it: its disk is full', ...answered);
  const status = /unexpected status(?: code)?[^:]*: (\d{3}[^:]*)/i.exec(message)?.[1];
  if (status !== undefined) return found('http', `registry ${registry} answered HTTP ${status}`, ...answered);
  return found('other', 'it cannot be pulled');
}
