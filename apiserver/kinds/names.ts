// The syntax of names, labels, ports and paths, each rule as a function from text to what is wrong with it, in the API
// machinery's words (an empty list means nothing is).

// The patterns as the messages print them. They are not executed: nested stars may backtrack exponentially, and a
// client's text may have megabytes.
const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const NAME_PART = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE = `(${NAME_PART})?`;
const DNS_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const CONFIG_KEY = '[-._a-zA-Z0-9]+';

function isLabel(text: string): boolean {
  return text !== '' && !/[^-a-z0-9]/.test(text) && !text.startsWith('-') && !text.endsWith('-');
}

function isSubdomain(text: string): boolean {
  return text !== '' && !/[^-.a-z0-9]/.test(text) && !/^[-.]|[-.]$|\.[-.]|-\./.test(text);
}

function isNamePart(text: string): boolean {
  return text !== '' && !/[^-A-Za-z0-9_.]/.test(text) && !/^[-_.]|[-_.]$/.test(text);
}

const bytes = (text: string): number => Buffer.byteLength(text);

function maxLength(max: number): string {
  return `must be no more than ${max} bytes`;
}

function regexError(message: string, pattern: string, ...examples: string[]): string {
  const list = examples.map((example) => `'${example}'`).join(',  or ');
  return `${message} (e.g. ${list}, regex used for validation is '${pattern}')`;
}

const NOT_LABEL = regexError(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  LABEL,
  'my-name',
  '123-abc',
);
const NOT_SUBDOMAIN = regexError(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  SUBDOMAIN,
  'example.com',
);
const NOT_UNDERSCORED = regexError(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*',
  'example.com',
);
const NOT_DNS_1035 = regexError(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  DNS_1035,
  'my-name',
  'abc-123',
);
const NOT_NAME_PART = `name part ${regexError(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  NAME_PART,
  'MyName',
  'my.name',
  '123-abc',
)}`;
const NOT_LABEL_VALUE = regexError(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  LABEL_VALUE,
  'MyValue',
  'my_value',
  '12345',
);
const NOT_CONFIG_KEY = regexError(
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  CONFIG_KEY,
  'key.name',
  'KEY_NAME',
  'key-name',
);

export type NameRule = (text: string) => string[];

export function dns1123Label(text: string): string[] {
  const errors: string[] = [];
  if (bytes(text) > 63) errors.push(maxLength(63));
  if (!isLabel(text)) errors.push(isSubdomain(text) ? 'must not contain dots' : NOT_LABEL);
  return errors;
}

export function dns1123Subdomain(text: string): string[] {
  const errors: string[] = [];
  if (bytes(text) > 253) errors.push(maxLength(253));
  if (!isSubdomain(text)) errors.push(NOT_SUBDOMAIN);
  return errors;
}

/** As DNS has it for what are no hosts: "_ldap._tcp.example.com". */
export function subdomainWithUnderscores(text: string): string[] {
  const errors: string[] = [];
  if (bytes(text) > 253) errors.push(maxLength(253));
  if (text === '' || /[^-._a-z0-9]/.test(text) || !/[a-z0-9]$/.test(text) || !text.split('.').every(isUnderscored)) {
    errors.push(NOT_UNDERSCORED);
  }
  return errors;
}

function isUnderscored(part: string): boolean {
  return /^_?[a-z0-9]/.test(part) && /[a-z0-9]$/.test(part);
}

/** "*.example.com". */
export function wildcardSubdomain(text: string): string[] {
  const errors: string[] = [];
  if (bytes(text) > 253) errors.push(maxLength(253));
  if (text.startsWith('*.') && isSubdomain(text.slice(2))) return errors;
  return [
    ...errors,
    regexError(
      "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
      `\\*\\.${SUBDOMAIN}`,
      '*.example.com',
    ),
  ];
}

export function dns1035Label(text: string): string[] {
  const errors: string[] = [];
  if (bytes(text) > 63) errors.push(maxLength(63));
  if (!isLabel(text) || /^[0-9]/.test(text)) errors.push(NOT_DNS_1035);
  return errors;
}

/** A name that can stand in a URL path; the rule of kinds without one of their own (bindings, roles). */
export function pathSegment(text: string): string[] {
  if (text === '.' || text === '..') return [`may not be '${text}'`];
  return ['/', '%'].filter((part) => text.includes(part)).map((part) => `may not contain '${part}'`);
}

/** "example.com/name" or "name": label keys, annotation keys, finalizers, resources. */
export function qualifiedName(text: string): string[] {
  const slash = text.indexOf('/');
  if (slash >= 0 && text.includes('/', slash + 1)) {
    return [
      `a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${NAME_PART}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const errors: string[] = [];
  const name = text.slice(slash + 1);
  if (slash === 0) errors.push('prefix part must be non-empty');
  else if (slash > 0) {
    for (const message of dns1123Subdomain(text.slice(0, slash))) errors.push(`prefix part ${message}`);
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (bytes(name) > 63) errors.push(`name part ${maxLength(63)}`);
  if (!isNamePart(name)) errors.push(NOT_NAME_PART);
  return errors;
}

export function labelValue(text: string): string[] {
  const errors: string[] = [];
  if (bytes(text) > 63) errors.push(maxLength(63));
  if (text !== '' && !isNamePart(text)) errors.push(NOT_LABEL_VALUE);
  return errors;
}

/** Since 1.32 nearly anything printable. */
export function envVarName(text: string): string[] {
  if (text !== '' && !/[^ -<>-~]/.test(text)) return [];
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

export function configMapKey(text: string): string[] {
  const errors: string[] = [];
  if (bytes(text) > 253) errors.push('must be no more than 253 characters');
  if (text === '' || /[^-._a-zA-Z0-9]/.test(text)) errors.push(NOT_CONFIG_KEY);
  if (text === '.' || text === '..') errors.push(`must not be '${text}'`);
  else if (text.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}

export function portNumber(port: number): string[] {
  return port >= 1 && port <= 65535 ? [] : ['must be between 1 and 65535, inclusive'];
}

export function portName(text: string): string[] {
  const errors: string[] = [];
  if (bytes(text) > 15) errors.push('must be no more than 15 characters');
  if (/[^-a-z0-9]/.test(text)) errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  if (!/[a-z]/.test(text)) errors.push('must contain at least one letter (a-z)');
  if (text.includes('--')) errors.push('must not contain consecutive hyphens');
  if (text.startsWith('-') || text.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

/** "acme.io/foo": a subdomain, and a path in its scope. */
export function domainPrefixedPath(text: string): string[] {
  const slash = text.indexOf('/');
  const [host, path] = [text.slice(0, Math.max(slash, 0)), text.slice(slash + 1)];
  if (slash < 0 || host === '' || path === '') return ['must be a domain-prefixed path (such as "acme.io/foo")'];
  const errors = dns1123Subdomain(host);
  if (/[^A-Za-z0-9/%._~!$&'()*+,;=:-]/.test(path)) {
    errors.push("Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
  }
  return errors;
}

export function cIdentifier(text: string): string[] {
  if (/^[A-Za-z_]/.test(text) && !/[^A-Za-z0-9_]/.test(text)) return [];
  return [
    regexError(
      "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
      '[A-Za-z_][A-Za-z0-9_]*',
      'my_name',
      'MY_NAME',
      'MyName',
    ),
  ];
}

/** Of a condition: "MinimumReplicasAvailable". */
export function conditionReason(text: string): string[] {
  if (/^[A-Za-z]/.test(text) && /[A-Za-z0-9_]$/.test(text) && !/[^A-Za-z0-9_,:]/.test(text)) return [];
  return [
    regexError(
      "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
      '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?',
      'my_name',
      'MY_NAME',
      'MyName',
      'ReasonA,ReasonB',
      'ReasonA:ReasonB',
    ),
  ];
}

export function percent(text: string): string[] {
  if (/^[0-9]+%$/.test(text)) return [];
  return [
    regexError("a valid percent string must be a numeric string followed by an ending '%'", '[0-9]+%', '1%', '93%'),
  ];
}

export function httpHeaderName(text: string): string[] {
  if (text !== '' && !/[^-A-Za-z0-9]/.test(text)) return [];
  return [
    regexError("a valid HTTP header must consist of alphanumeric characters or '-'", '[-A-Za-z0-9]+', 'X-Header-Name'),
  ];
}

export function ipAddress(text: string): string[] {
  return isIPv4(text) || isIPv6(text) ? [] : ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'];
}

export function isIPv4(text: string): boolean {
  const parts = text.split('.');
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255);
}

export function isIPv6(text: string): boolean {
  return text.includes(':') && URL.canParse(`http://[${text}]/`);
}

/** A path inside a volume: relative and without "..". */
export function localPath(text: string): string[] {
  const errors: string[] = [];
  if (text.startsWith('/')) errors.push('must be a relative path');
  return errors.concat(noBacksteps(text));
}

export function noBacksteps(text: string): string[] {
  return text.split('/').includes('..') ? ["must not contain '..'"] : [];
}
